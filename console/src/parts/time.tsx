import { useEffect, useState } from "react";

const UNITS: [number, Intl.RelativeTimeFormatUnit][] = [
  [60, "second"],
  [3600, "minute"],
  [86_400, "hour"],
  [86_400 * 30, "day"],
  [86_400 * 365, "month"],
];
const words = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });

export function formatAgo(time: string, now = Date.now()): string {
  const seconds = (Date.parse(time) - now) / 1000;
  const size = Math.abs(seconds);
  if (size < 5) return "now";
  let below = 1;
  for (const [limit, unit] of UNITS) {
    if (size < limit) return words.format(Math.round(seconds / below), unit);
    below = limit;
  }
  return words.format(Math.round(seconds / below), "year");
}

/** A time as its distance from now, which goes on; the exact one when pointed at. */
export function Ago({ time }: { time: string | null | undefined }) {
  const now = useNow(time ? 10_000 : null);
  if (!time) return <span>never</span>;
  return (
    <time dateTime={time} title={new Date(time).toLocaleString()}>
      {formatAgo(time, now)}
    </time>
  );
}

/** The time, again and again; null: once. */
export function useNow(every: number | null): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (every === null) return;
    const timer = setInterval(() => setNow(Date.now()), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}

/** `8 s`, `2 min 5 s`, `1 h 3 min`. */
export function formatSeconds(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 10) return `${Math.round(seconds * 10) / 10} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

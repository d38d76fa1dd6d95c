/** Stacked bars over time. The table next to it has equal content for screen readers. */
import { useElementSize } from "@mantine/hooks";
import { useState } from "react";
import type { Slot } from "./measures";

interface Props {
  names: string[];
  slots: Slot[];
  label: string;
  format: (value: number) => string;
}

const HEIGHT = 220;
const LEFT = 62;
const BOTTOM = 22;
const TOP = 8;

export const SERIES = ["flume-5", "gate-4", "blue-5", "grape-5", "green-6", "red-5", "gray-5"];
export const seriesColor = (index: number) => `var(--mantine-color-${SERIES[index % SERIES.length]})`;

export function BarChart({ names, slots, label, format }: Props) {
  const { ref, width } = useElementSize();
  const [pointed, setPointed] = useState<number | null>(null);
  const totals = slots.map((slot) => slot.values.reduce((sum, value) => sum + value, 0));
  const top = roundUp(Math.max(...totals, 0));
  const inner = Math.max(width - LEFT, 1);
  const step = inner / Math.max(slots.length, 1);
  const bar = Math.max(Math.min(step * 0.72, 44), 1);
  const y = (value: number) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top);
  const slot = pointed === null ? undefined : slots[pointed];
  return (
    <div className="chart" ref={ref}>
      <Legend names={names} slot={slot} format={format} />
      {width > 0 && (
        <svg width={width} height={HEIGHT} role="img" aria-label={label} onPointerLeave={() => setPointed(null)}>
          {[0, 0.25, 0.5, 0.75, 1].map((part) => (
            <g key={part}>
              <line x1={LEFT} x2={width} y1={y(top * part)} y2={y(top * part)} className="chart-line" />
              <text x={LEFT - 8} y={y(top * part) + 4} textAnchor="end">
                {short(top * part, format)}
              </text>
            </g>
          ))}
          {slots.map((each, index) => (
            <Column
              key={each.when}
              slot={each}
              x={LEFT + step * index + (step - bar) / 2}
              width={bar}
              y={y}
              faded={pointed !== null && pointed !== index}
            />
          ))}
          {ticks(slots.length, inner).map((index) => (
            <text key={index} x={LEFT + step * (index + 0.5)} y={HEIGHT - 5} textAnchor="middle">
              {tick(slots[index]?.when ?? "")}
            </text>
          ))}
          {slots.map((each, index) => (
            <rect
              key={each.when}
              x={LEFT + step * index}
              y={0}
              width={step}
              height={HEIGHT}
              fill="transparent"
              onPointerEnter={() => setPointed(index)}
            />
          ))}
        </svg>
      )}
    </div>
  );
}

interface ColumnProps {
  slot: Slot;
  x: number;
  width: number;
  y: (value: number) => number;
  faded: boolean;
}

function Column({ slot, x, width, y, faded }: ColumnProps) {
  let below = 0;
  return (
    <g opacity={faded ? 0.45 : 1}>
      {slot.values.map((value, series) => {
        if (value <= 0) return null;
        const low = y(below);
        below += value;
        const high = y(below);
        const height = Math.max(low - high, 0.5);
        return (
          <rect
            // biome-ignore lint/suspicious/noArrayIndexKey: a series is its place
            key={series}
            x={x}
            y={high}
            width={width}
            height={height}
            rx={1.5}
            style={{ fill: seriesColor(series) }}
          />
        );
      })}
    </g>
  );
}

function Legend({
  names,
  slot,
  format,
}: {
  names: string[];
  slot: Slot | undefined;
  format: (value: number) => string;
}) {
  return (
    <div className="chart-legend" aria-hidden="true">
      {slot && <strong>{slot.when}</strong>}
      {names.map((name, index) => (
        <span key={name} style={{ "--tone": seriesColor(index) } as React.CSSProperties}>
          {name}
          {slot && ` ${format(slot.values[index] ?? 0)}`}
        </span>
      ))}
    </div>
  );
}

/** The next 1, 2, 2.5 or 5 with zeros. */
function roundUp(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 2.5, 5, 10].find((each) => each * power >= value) ?? 10) * power;
}

function short(value: number, format: (value: number) => string): string {
  if (value < 10_000) return format(value);
  const [size, unit] = value < 1e6 ? [value / 1e3, "k"] : value < 1e9 ? [value / 1e6, "M"] : [value / 1e9, "G"];
  return `${format(1).startsWith("$") ? "$" : ""}${Number(size.toFixed(1))}${unit}`;
}

/** Return the columns that get a label, as many as fit. */
function ticks(count: number, width: number): number[] {
  const every = Math.max(1, Math.ceil((count * 58) / width));
  return Array.from({ length: count }, (_, index) => index).filter((index) => index % every === 0);
}

function tick(when: string): string {
  const time = new Date(when.length === 7 ? `${when}-01` : when);
  if (when.length === 7) return time.toLocaleDateString("en", { month: "short", year: "2-digit", timeZone: "UTC" });
  return time.toLocaleDateString("en", { month: "short", day: "numeric", timeZone: "UTC" });
}

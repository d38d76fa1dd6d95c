/** Days of UTC, as a statement counts them. */
const DAY = 86_400_000;

export interface Range {
  from: string;
  to: string;
}

export const PRESETS: { id: string; label: string }[] = [
  { id: "7", label: "7 days" },
  { id: "30", label: "30 days" },
  { id: "90", label: "90 days" },
  { id: "month", label: "This month" },
  { id: "year", label: "12 months" },
];

export function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

export function presetRange(id: string, now = Date.now()): Range {
  const to = dayOf(now);
  if (id === "month") return { from: `${to.slice(0, 7)}-01`, to };
  if (id === "year") return { from: `${Number(to.slice(0, 4)) - 1}${dayOf(now + 31 * DAY).slice(4, 7)}-01`, to };
  return { from: dayOf(now - (Number(id) - 1) * DAY), to };
}

/** Longer ranges are grouped by month. */
export function isByMonth({ from, to }: Range): boolean {
  return Date.parse(to) - Date.parse(from) > 100 * DAY;
}

/** Every day or month of a range. */
export function stepsOf(range: Range): string[] {
  const steps: string[] = [];
  const last = Date.parse(range.to);
  for (let time = Date.parse(range.from); time <= last && steps.length < 4000; time += DAY) {
    const step = isByMonth(range) ? dayOf(time).slice(0, 7) : dayOf(time);
    if (steps.at(-1) !== step) steps.push(step);
  }
  return steps;
}

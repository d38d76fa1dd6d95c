/** Measures of a statement that can be plotted, and their sums by day and group. */
import type { UsageLine } from "../../api/shapes";
import { WORDS } from "../../vocabulary";
import { formatMoney } from "../money";
import { formatCount } from "../numbers";

export interface Measure {
  id: string;
  title: string;
  of: (line: UsageLine) => number;
  format: (value: number) => string;
}

export const MEASURES: Measure[] = [
  { id: "spend", title: WORDS.spend, of: (line) => Number(line.cost), format: formatMoney },
  { id: "jobs", title: WORDS.jobs, of: (line) => line.jobs, format: formatCount },
  { id: "requests", title: WORDS.requests, of: (line) => line.requests, format: formatCount },
  { id: "tokens", title: WORDS.tokens, of: (line) => line.total_tokens, format: formatCount },
];

export type Group = "model" | "key" | "vendor" | "kind" | "account" | Dimension;
export type Dimension = "tag" | "end_user" | "session";

export const DIMENSIONS: Record<Dimension, { title: string; none: string }> = {
  tag: { title: "tag", none: "without a tag" },
  end_user: { title: "end user", none: "without an end user" },
  session: { title: "session", none: "without a session" },
};

export function isDimension(group: Group): group is Dimension {
  return group in DIMENSIONS;
}

export function titleOf(group: Group): string {
  return isDimension(group) ? DIMENSIONS[group].title : group;
}

/** Return the readable name of a line's group. */
export function labelOf(line: UsageLine, group: Group): string {
  if (isDimension(group)) {
    const part = line[`${group}_part`];
    return part === "none" ? DIMENSIONS[group].none : part === "other" ? "all others" : (line[group] ?? "");
  }
  if (group === "key") return line.key_name || line.key || "no key";
  return line[group] || "unknown";
}

/** Sums of a group's lines over all days. */
export interface Sum {
  label: string;
  /** The id behind the label, where there is one. */
  id: string;
  cost: number;
  jobs: number;
  requests: number;
  failed: number;
  tokens: number;
  unpriced: number;
}

function idOf(line: UsageLine, group: Group): string {
  if (isDimension(group)) return `${line[`${group}_part`]} ${line[group]}`;
  return (group === "account" ? line.account_id : line[group]) ?? "";
}

export function sumsOf(lines: UsageLine[], group: Group): Sum[] {
  const sums = new Map<string, Sum>();
  for (const line of lines) {
    const id = idOf(line, group);
    const sum = sums.get(id) ?? {
      label: labelOf(line, group),
      id,
      cost: 0,
      jobs: 0,
      requests: 0,
      failed: 0,
      tokens: 0,
      unpriced: 0,
    };
    sum.cost += Number(line.cost);
    sum.jobs += line.jobs;
    sum.requests += line.requests;
    sum.failed += line.failed;
    sum.tokens += line.total_tokens;
    sum.unpriced += line.unpriced;
    sums.set(id, sum);
  }
  return [...sums.values()].sort((a, b) => b.cost - a.cost || b.jobs + b.requests - a.jobs - a.requests);
}

/** A column of the plot: one day or month, with a value for each series. */
export interface Slot {
  when: string;
  values: number[];
}

const MOST_SERIES = 6;

/** Columns for every day between, also those without a line; the smallest series are drawn together. */
export function slotsOf(
  lines: UsageLine[],
  days: string[],
  group: Group,
  measure: Measure,
): { names: string[]; slots: Slot[] } {
  const totals = new Map<string, number>();
  for (const line of lines) {
    const label = labelOf(line, group);
    totals.set(label, (totals.get(label) ?? 0) + measure.of(line));
  }
  const ranked = [...totals].filter(([, total]) => total > 0).sort((a, b) => b[1] - a[1]);
  const names = ranked.slice(0, MOST_SERIES).map(([label]) => label);
  if (ranked.length > MOST_SERIES) names.push("others");
  const slots = days.map((when) => ({ when, values: names.map(() => 0) }));
  const at = new Map(days.map((when, index) => [when, index]));
  for (const line of lines) {
    const slot = slots[at.get(line.day ?? line.month ?? "") ?? -1];
    const found = names.indexOf(labelOf(line, group));
    const series = found >= 0 ? found : names.length - 1;
    if (slot && series >= 0 && measure.of(line) > 0)
      slot.values[series] = (slot.values[series] ?? 0) + measure.of(line);
  }
  return { names, slots };
}

import { Group, SegmentedControl, TextInput } from "@mantine/core";
import { WORDS } from "../../vocabulary";
import { useFilters } from "../address_filters";
import { dayOf, PRESETS, presetRange, type Range } from "./range";

/** The range in the address: `range=30`, or `from` and `to`. */
export function useRange(): Range {
  const [search] = useFilters();
  const from = search.get("from");
  const to = search.get("to");
  if (from && to && from <= to) return { from, to };
  return presetRange(search.get("range") ?? "30");
}

export function RangePicker() {
  const [search, change] = useFilters();
  const range = useRange();
  const chosen = search.get("from") ? "" : (search.get("range") ?? "30");
  const today = dayOf(Date.now());
  const set = (next: Range) =>
    change({ ...(next.from <= next.to ? { from: next.from, to: next.to } : {}), range: null });
  return (
    <Group gap="sm" align="end">
      <SegmentedControl
        aria-label="Range"
        size="xs"
        data={PRESETS.map(({ id, label }) => ({ value: id, label }))}
        value={chosen}
        onChange={(id) => change({ range: id === "30" ? null : id, from: null, to: null })}
        className="ranges"
      />
      <TextInput
        type="date"
        size="xs"
        aria-label={WORDS.from}
        max={range.to}
        value={range.from}
        onChange={(event) => event.currentTarget.value && set({ ...range, from: event.currentTarget.value })}
      />
      <TextInput
        type="date"
        size="xs"
        aria-label="To"
        min={range.from}
        max={today}
        value={range.to}
        onChange={(event) => event.currentTarget.value && set({ ...range, to: event.currentTarget.value })}
      />
    </Group>
  );
}

import { Select, SimpleGrid, TextInput } from "@mantine/core";

export interface Wish {
  period: "day" | "month" | "total";
  cap: string;
  time_zone: string;
}

export const NO_BUDGET: Wish = { period: "month", cap: "", time_zone: "UTC" };

export const PERIODS = [
  { value: "day", label: "each day" },
  { value: "month", label: "each month" },
  { value: "total", label: "in total" },
];

const ZONES = ["UTC", ...Intl.supportedValuesOf("timeZone").filter((zone) => zone !== "UTC")];

/** A cap, its period and the zone whose midnights count. */
export function BudgetFields({
  wish,
  onChange,
  required,
}: {
  wish: Wish;
  onChange: (wish: Wish) => void;
  required?: boolean;
}) {
  return (
    <SimpleGrid cols={{ base: 1, xs: 3 }} spacing="sm">
      <TextInput
        label="Budget in USD"
        placeholder={required ? "50.00" : "none"}
        inputMode="decimal"
        required={required ?? false}
        withAsterisk={false}
        value={wish.cap}
        onChange={(event) => onChange({ ...wish, cap: event.currentTarget.value.trim() })}
      />
      <Select
        label="Period"
        data={PERIODS}
        value={wish.period}
        onChange={(period) => onChange({ ...wish, period: (period ?? "month") as Wish["period"] })}
      />
      <Select
        label="Time zone"
        data={ZONES}
        searchable
        limit={60}
        value={wish.time_zone}
        onChange={(zone) => onChange({ ...wish, time_zone: zone ?? "UTC" })}
      />
    </SimpleGrid>
  );
}

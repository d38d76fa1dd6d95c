import { NumberInput, SimpleGrid } from "@mantine/core";
import type { Account } from "../../api/shapes";
import { formatCount } from "../../parts/numbers";

export type Limits = Account["limits"];

export const NO_LIMITS: Limits = {
  requests_per_minute: null,
  tokens_per_minute: null,
  concurrent_jobs: null,
  concurrent_streams: null,
};

export const LIMIT_NAMES: [keyof Limits, string][] = [
  ["requests_per_minute", "Requests per minute"],
  ["tokens_per_minute", "Tokens per minute"],
  ["concurrent_jobs", "Concurrent jobs"],
  ["concurrent_streams", "Concurrent streams"],
];

/** Fields of limits. An empty field means no limit. */
export function LimitsFields({ limits, onChange }: { limits: Limits; onChange: (limits: Limits) => void }) {
  return (
    <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
      {LIMIT_NAMES.map(([name, label]) => (
        <NumberInput
          key={name}
          label={label}
          placeholder="no limit"
          min={1}
          allowDecimal={false}
          hideControls
          value={limits[name] ?? ""}
          onChange={(value) => onChange({ ...limits, [name]: value === "" ? null : Number(value) })}
        />
      ))}
    </SimpleGrid>
  );
}

/** Limits in words; null: there is none. */
export function limitsLine(limits: Limits): string | null {
  const given = LIMIT_NAMES.filter(([name]) => limits[name] !== null);
  return given.length
    ? given.map(([name, label]) => `${formatCount(limits[name])} ${label.toLowerCase()}`).join(", ")
    : null;
}

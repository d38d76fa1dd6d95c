/** The steps that a pipeline would have, with their prices, or what is wrong with each. */
import { Text } from "@mantine/core";
import type { PipelineDryRun } from "../../api/shapes";
import { formatMoney } from "../../parts/money";
import { Prose } from "../../parts/prose";
import { formatSeconds } from "../../parts/time";
import type { DraftStep } from "./draft";

interface Props {
  steps: DraftStep[];
  dry: PipelineDryRun | undefined;
  errors: Map<number | null, string[]>;
}

export function Plan({ steps, dry, errors }: Props) {
  return (
    <ol className="plan" aria-label="Steps to run">
      {steps.map((step, index) => {
        const found = dry?.steps.find((each) => each.name === step.name);
        const problems = errors.get(index) ?? [];
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: steps that are being written may have equal names
          <li key={index} className="plan-step" data-wrong={problems.length > 0 || undefined}>
            <div className="plan-head">
              <b>{step.name || `step ${index + 1}`}</b>
              <span className="mono">{step.model}</span>
              <span className="plan-cost">{found && stepWords(found)}</span>
            </div>
            {found && found.needs.length > 0 && (
              <Text size="xs" c="dimmed">
                after {found.needs.join(", ")}
              </Text>
            )}
            {problems.map((problem) => (
              <div key={problem} className="field-error" role="alert">
                <Prose text={problem} />
              </div>
            ))}
          </li>
        );
      })}
    </ol>
  );
}

function stepWords({ jobs, cost, expected_seconds }: PipelineDryRun["steps"][number]): string {
  const parts = [
    jobs > 1 && `${jobs} jobs`,
    cost.estimated === null ? "unknown price" : Number(cost.estimated) === 0 ? "free" : formatMoney(cost.estimated),
    expected_seconds && `usually ${formatSeconds(expected_seconds.p50)}`,
  ];
  return parts.filter(Boolean).join(" · ");
}

/** Price and time of the whole. */
export function planWords(dry: PipelineDryRun | undefined): string {
  if (!dry) return "…";
  const cost = dry.cost.estimated;
  const parts = [
    `${dry.jobs} ${dry.jobs === 1 ? "job" : "jobs"}`,
    cost === null ? "unknown price" : Number(cost) === 0 ? "free" : `at most ${formatMoney(cost)}`,
    dry.expected_seconds === null ? "time unknown" : `usually ${formatSeconds(dry.expected_seconds)}`,
    dry.budget_left !== null && `${formatMoney(dry.budget_left)} of your budget left`,
  ];
  return parts.filter(Boolean).join(" · ");
}

/** Events of a job, with the time between them. */
import { Text } from "@mantine/core";
import type { Job } from "../../api/shapes";
import { ErrorNotice } from "../../parts/error_notice";
import { formatSeconds, useNow } from "../../parts/time";
import { WORDS } from "../../vocabulary";
import { type Step, stepsOf, stretchesOf, useHappenings } from "./events";

const TONES: Record<string, string> = {
  queued: "var(--mantine-color-gray-5)",
  throttled: "var(--mantine-color-gate-4)",
  fetching: "var(--mantine-color-blue-4)",
  dispatching: "var(--mantine-color-flume-3)",
  generating: "var(--mantine-color-flume-5)",
  storing: "var(--mantine-color-green-5)",
  reconciling: "var(--mantine-color-red-4)",
  canceling: "var(--mantine-color-gate-6)",
};
const ENDS: Record<string, string> = {
  "job.succeeded": "var(--mantine-color-green-6)",
  "job.failed": "var(--mantine-color-red-6)",
  "job.expired": "var(--mantine-color-red-4)",
  "job.canceled": "var(--mantine-color-gray-6)",
};
const tone = (phase: string) => TONES[phase] ?? "var(--mantine-color-gray-5)";

export function Timeline({ job }: { job: Job }) {
  const { events, error } = useHappenings(job.id);
  const now = useNow(job.done ? null : 500);
  if (error) return <ErrorNotice error={error} />;
  if (events.length === 0) {
    return (
      <Text size="sm" c="dimmed" role="status">
        Loading events…
      </Text>
    );
  }
  const stretches = stretchesOf(events, now);
  const total = stretches.reduce((sum, stretch) => sum + stretch.seconds, 0) || 1;
  return (
    <>
      <div className="phases" aria-hidden="true">
        {stretches.map((stretch, index) => (
          <span
            // biome-ignore lint/suspicious/noArrayIndexKey: stretches are only ever added
            key={index}
            title={`${stretch.phase}: ${formatSeconds(stretch.seconds)}`}
            style={{ flexGrow: (100 * stretch.seconds) / total, flexBasis: 0, background: tone(stretch.phase) }}
          />
        ))}
      </div>
      <ul className="phase-names" aria-label="Time in each phase">
        {sums(stretches).map(([phase, seconds]) => (
          <li key={phase} style={{ "--tone": tone(phase) } as React.CSSProperties}>
            {phase} {formatGap(seconds)}
          </li>
        ))}
      </ul>
      <ol className="timeline" aria-label={WORDS.events}>
        {stepsOf(events).map((step, index, steps) => (
          <Row key={step.first.id} step={step} before={steps[index - 1]} />
        ))}
      </ol>
    </>
  );
}

function sums(stretches: { phase: string; seconds: number }[]): [string, number][] {
  const total = new Map<string, number>();
  for (const { phase, seconds } of stretches) total.set(phase, (total.get(phase) ?? 0) + seconds);
  return [...total];
}

function Row({ step, before }: { step: Step; before: Step | undefined }) {
  const { first, last } = step;
  const gap = before ? (Date.parse(first.at) - Date.parse(before.first.at)) / 1000 : null;
  return (
    <li style={{ "--tone": ENDS[first.type] ?? tone(first.job.phase) } as React.CSSProperties}>
      <span className="gap">{gap === null ? "" : `+${formatGap(gap)}`}</span>
      <span className="dot" />
      <span>
        <strong>{first.type.replace("job.", "")}</strong>
        {first.type === "job.progress" && ` · ${first.job.phase}`}
        <Text size="xs" c="dimmed" component="div">
          {explain(step)}
        </Text>
      </span>
      <time dateTime={last.at} title={new Date(last.at).toLocaleString()}>
        {new Date(first.at).toLocaleTimeString([], { hour12: false })}
      </time>
    </li>
  );
}

function formatGap(seconds: number): string {
  return seconds < 1 ? `${Math.round(seconds * 1000)} ms` : formatSeconds(seconds);
}

function explain({ first, last, count }: Step): string {
  const { job } = last;
  if (first.type === "job.queued") return "accepted and stored";
  if (first.type === "job.started") return `started at ${job.vendor}`;
  if (job.error) return job.error.message;
  if (job.done)
    return job.outputs.length
      ? `${job.outputs.length === 1 ? "1 output" : `${job.outputs.length} outputs`} stored and checked`
      : "";
  const from = Math.round(first.job.progress * 100);
  const to = Math.round(job.progress * 100);
  const parts = [
    to > 0 && (from === to ? `${to} %` : `${from} % to ${to} %`),
    count > 1 && `${count} updates`,
    job.queue_position && `${job.queue_position} ahead of it`,
  ];
  return parts.filter(Boolean).join(" · ");
}

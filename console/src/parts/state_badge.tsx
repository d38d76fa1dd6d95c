import type { JobState } from "../api/shapes";

const TONES: Record<string, string> = {
  waiting: "var(--mantine-color-gray-4)",
  queued: "var(--mantine-color-gray-5)",
  running: "var(--mantine-color-flume-4)",
  canceling: "var(--mantine-color-gate-5)",
  succeeded: "var(--mantine-color-green-6)",
  delivered: "var(--mantine-color-green-6)",
  active: "var(--mantine-color-green-6)",
  failed: "var(--mantine-color-red-6)",
  expired: "var(--mantine-color-red-4)",
  revoked: "var(--mantine-color-red-6)",
  canceled: "var(--mantine-color-gray-6)",
  closed: "var(--mantine-color-gray-6)",
  deactivated: "var(--mantine-color-gray-6)",
  pending: "var(--mantine-color-gate-5)",
  hold: "var(--mantine-color-gate-5)",
  settle: "var(--mantine-color-green-6)",
  release: "var(--mantine-color-gray-5)",
  refund: "var(--mantine-color-flume-4)",
  resting: "var(--mantine-color-red-6)",
  probing: "var(--mantine-color-gate-5)",
  failing: "var(--mantine-color-red-6)",
  disabled: "var(--mantine-color-gray-6)",
};
const OPEN = new Set(["queued", "running", "canceling", "pending"]);

/** A state, of a job or of anything else, with its colour and its name. */
export function StateBadge({ state }: { state: JobState | string }) {
  return (
    <span
      className="state"
      data-open={OPEN.has(state) || undefined}
      style={{ "--tone": TONES[state] ?? "var(--mantine-color-gray-5)" } as React.CSSProperties}
    >
      {state}
    </span>
  );
}

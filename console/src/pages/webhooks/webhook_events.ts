/** Events that a webhook can receive. */
import type { Webhook } from "../../api/shapes";

export const EVENTS: { type: string; about: string }[] = [
  { type: "job.succeeded", about: "the job succeeded and its outputs are stored" },
  { type: "job.failed", about: "the job failed" },
  { type: "job.canceled", about: "the job was canceled" },
  { type: "job.expired", about: "the job ran out of time" },
  { type: "job.queued", about: "the job was accepted" },
  { type: "job.started", about: "the job was started" },
  { type: "job.progress", about: "any other change; many events" },
  { type: "budget.threshold", about: "50, 80 or 100 % of a budget is used" },
];

/** Default events. */
export const USUAL = ["job.succeeded", "job.failed", "job.canceled", "job.expired"];

/** A webhook's state in a word, and why. */
export function standingOf(webhook: Webhook): { state: string; why: string | null } {
  if (webhook.disabled) {
    const reasons: Record<string, string> = {
      asked: "as you asked",
      gone: "it answered 410, gone",
      failing: "it failed for five days",
    };
    return { state: "disabled", why: reasons[webhook.disabled_reason ?? ""] ?? null };
  }
  if (webhook.failing_since) return { state: "failing", why: "every attempt since then failed" };
  return { state: "active", why: null };
}

/** Events that a webhook can receive. */
import type { Webhook } from "../../api/shapes";

export const EVENTS: { type: string; about: string }[] = [
  { type: "job.succeeded", about: "its outputs are here" },
  { type: "job.failed", about: "it cannot be done" },
  { type: "job.canceled", about: "it was stopped" },
  { type: "job.expired", about: "its time ran out" },
  { type: "job.queued", about: "it was accepted" },
  { type: "job.started", about: "it was taken up" },
  { type: "job.progress", about: "anything else changed; often" },
  { type: "budget.threshold", about: "50, 80 or 100 % of a budget are used" },
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

/** A job's params as they can be sent again, or why they cannot. */
import type { Job, Model } from "../../api/shapes";

export type Rerun = { params: Record<string, unknown>; hasSeed: boolean } | { reason: string };

/** What the record adds to a file, which a request must not have. */
const ADDED = new Set(["sha256", "bytes", "content_type", "width", "height"]);
const SOURCES = ["url", "file_token", "object"];

export function rerunOf(job: Job, model: Model | undefined): Rerun {
  if (!model) return { reason: "This key may not use the model, or it is no longer on offer." };
  const params: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(job.input)) {
    if (value === null) continue;
    const sent = isFile(value) ? given(value) : value;
    if (sent === null) {
      return {
        reason:
          "Its picture was sent inside the request (a data: URI), and the API takes a picture only by url, upload or stored object. Send it again from where you have it.",
      };
    }
    params[name] = sent;
  }
  return { params, hasSeed: "model_seed" in params || "seed" in params };
}

/** The same params with the seed left to chance. */
export function withoutSeed(params: Record<string, unknown>): Record<string, unknown> {
  const { model_seed: _, seed: __, ...rest } = params;
  return rest;
}

function isFile(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && "sha256" in value && "bytes" in value;
}

function given(file: Record<string, unknown>): Record<string, unknown> | null {
  const sent = Object.fromEntries(Object.entries(file).filter(([name, value]) => !ADDED.has(name) && value !== null));
  return SOURCES.some((name) => name in sent) ? sent : null;
}

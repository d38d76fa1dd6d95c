/** A job's params as they can be sent again, or why they cannot. */
import type { Job, Model } from "../../api/shapes";

export type Rerun = { params: Record<string, unknown>; hasSeed: boolean } | { reason: string };

const SOURCES = ["url", "file_token", "object"];

export function rerunOf(job: Job, model: Model | undefined): Rerun {
  if (!model) return { reason: "This key may not use the model, or the model was removed." };
  const params = paramsOf(job);
  if (Object.keys(job.input).some((name) => job.input[name] !== null && !(name in params))) {
    return {
      reason: "Its picture was sent inside the request and not stored. Start a new job with the picture.",
    };
  }
  return { params, hasSeed: "model_seed" in params || "seed" in params };
}

/** Return a job's params without those that are null, and without a file that is not kept. */
export function paramsOf(job: Job): Record<string, unknown> {
  const params: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(job.input)) {
    const sent = isFile(value) ? given(value) : value;
    if (sent !== null) params[name] = sent;
  }
  return params;
}

/** Return the params without the seed. */
export function withoutSeed(params: Record<string, unknown>): Record<string, unknown> {
  const { model_seed: _, seed: __, ...rest } = params;
  return rest;
}

function isFile(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && ("sha256" in value || SOURCES.some((name) => name in value));
}

/** Return the job's own copy of the file, which outlasts uploads and URLs, or the original source. */
function given({ type, copy_token, ...file }: Record<string, unknown>): Record<string, unknown> | null {
  const kind = type ? { type } : {};
  if (copy_token) return { ...kind, file_token: copy_token };
  const sources = Object.entries(file).filter(([name, value]) => SOURCES.includes(name) && value);
  return sources.length ? { ...kind, ...Object.fromEntries(sources) } : null;
}

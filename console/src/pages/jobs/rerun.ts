/** A job's params as they can be sent again, or why they cannot. */
import type { Job, Model } from "../../api/shapes";
import { isFile } from "../../parts/input_file";

export type Rerun = { params: Record<string, unknown>; hasSeed: boolean } | { reason: string };

const SOURCES = ["url", "file_token", "object", "job"];

export function rerunOf(job: Job, model: Model | undefined): Rerun {
  if (!model) return { reason: "This key may not use the model, or the model was removed." };
  const { params, lost } = sentParams(job);
  if (lost > 0) {
    return { reason: "Its file was sent inside the request and not stored. Start a new job with the file." };
  }
  return { params, hasSeed: "model_seed" in params || "seed" in params };
}

/** Return a job's params without those that are null, and without files that are not kept. */
export function paramsOf(job: Job): Record<string, unknown> {
  return sentParams(job).params;
}

function sentParams(job: Job): { params: Record<string, unknown>; lost: number } {
  const params: Record<string, unknown> = {};
  let lost = 0;
  const sent = (value: unknown): unknown => {
    const found = isFile(value) ? given(value) : value;
    if (found === null && value !== null) lost += 1;
    return found;
  };
  for (const [name, value] of Object.entries(job.input)) {
    const found = Array.isArray(value) ? value.map(sent).filter((each) => each !== null) : sent(value);
    if (found !== null && !(Array.isArray(value) && value.some(isFile) && (found as unknown[]).length === 0)) {
      params[name] = found;
    }
  }
  return { params, lost };
}

/** Return the params without the seed. */
export function withoutSeed(params: Record<string, unknown>): Record<string, unknown> {
  const { model_seed: _, seed: __, ...rest } = params;
  return rest;
}

/** Return the job's own copy of the file, which outlasts uploads and URLs, or the original source. */
function given({ type, role, output, copy_token, ...file }: Record<string, unknown>): Record<string, unknown> | null {
  const about = { ...(type ? { type } : {}), ...(role ? { role } : {}) };
  if (copy_token) return { ...about, file_token: copy_token };
  const sources = Object.entries(file).filter(([name, value]) => SOURCES.includes(name) && value);
  if (sources.length === 0) return null;
  const which = file.job && output !== undefined && output !== null ? { output } : {};
  return { ...about, ...Object.fromEntries(sources), ...which };
}

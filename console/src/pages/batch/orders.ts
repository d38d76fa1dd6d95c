/** One request to several models. Each has an idempotency key that a repetition sends again. */
import type { QueryClient } from "@tanstack/react-query";
import { call } from "../../api/call";
import { ApiError } from "../../api/errors";
import { rememberJob } from "../../api/live";
import type { Job } from "../../api/shapes";
import { addJobs, changeDrafts, getDrafts } from "../playground/drafts";
import { newKey } from "../playground/new_key";
import type { Params } from "../playground/params_form";

/** Why a model has no job, as it can be stored. */
export interface Refusal {
  /** 0: there was no answer. */
  status: number;
  body: Record<string, unknown>;
  retryAfter: number | null;
}

export interface Batch {
  key: string;
  created: string;
  /** Params of each model's request. */
  params: Record<string, Params>;
  /** Id of the job, by model. */
  jobs: Record<string, string>;
  refusals: Record<string, Refusal>;
  /** No model has accepted it yet, so that sending equal params is a repetition. */
  isOpen: boolean;
}

const MOST_BATCHES = 8;

/** Return the batch of these requests. If equal ones were sent and none arrived, it is that batch. */
export function openBatch(params: Record<string, Params>): Batch {
  const text = JSON.stringify(params);
  const known = getDrafts().batches.find((each) => each.isOpen && JSON.stringify(each.params) === text);
  if (known) return known;
  const created = new Date().toISOString();
  const batch: Batch = { key: newKey(), created, params, jobs: {}, refusals: {}, isOpen: true };
  changeDrafts(({ batches }) => ({ batches: [batch, ...batches].slice(0, MOST_BATCHES) }));
  return batch;
}

export function findBatch(key: string): Batch | undefined {
  return getDrafts().batches.find((each) => each.key === key);
}

/** Send a batch to all of its models. A refusal of one does not stop the others. */
export async function sendBatch(client: QueryClient, key: string): Promise<Batch | undefined> {
  const models = Object.keys(findBatch(key)?.params ?? {});
  await Promise.all(models.map((model) => sendTo(client, key, model)));
  const isDone = Object.keys(findBatch(key)?.jobs ?? {}).length > 0;
  if (isDone) change(key, () => ({ isOpen: false }));
  return findBatch(key);
}

/** Send a batch to one of its models. Return the id of the job, or null if the model refused. */
export async function sendTo(client: QueryClient, key: string, model: string): Promise<string | null> {
  const batch = findBatch(key);
  if (!batch) return null;
  const headers = { "idempotency-key": `${key}-${Object.keys(batch.params).indexOf(model)}` };
  const body = { model, input: [{ params: batch.params[model] }] };
  try {
    const job = await call<Job>("/model/v1/generation", { body, headers });
    rememberJob(client, job);
    addJobs([{ id: job.id, model }]);
    change(key, ({ jobs, refusals }) => ({ jobs: { ...jobs, [model]: job.id }, refusals: without(refusals, model) }));
    return job.id;
  } catch (error) {
    change(key, ({ refusals }) => ({ refusals: { ...refusals, [model]: refusalOf(error) } }));
    return null;
  }
}

/** Return a stored refusal as an error to show. */
export function errorOfRefusal({ status, body, retryAfter }: Refusal): ApiError {
  return new ApiError(status, body, retryAfter);
}

function change(key: string, how: (batch: Batch) => Partial<Batch>): void {
  changeDrafts(({ batches }) => ({
    batches: batches.map((each) => (each.key === key ? { ...each, ...how(each) } : each)),
  }));
}

function refusalOf(error: unknown): Refusal {
  if (error instanceof ApiError) return { status: error.status, body: error.body, retryAfter: error.retryAfter };
  const message = error instanceof Error ? error.message : String(error);
  return { status: 0, body: { message, retryable: true }, retryAfter: null };
}

function without(refusals: Record<string, Refusal>, model: string): Record<string, Refusal> {
  const { [model]: _, ...rest } = refusals;
  return rest;
}

/** A job in few words. */
import type { Job } from "../../api/shapes";
import { inputFile } from "../../parts/input_file";

/** The prompt; else the name of the input's file; else the step; else the model. */
export function nameOf(job: Job): string {
  const prompt = job.input.prompt || job.input.text;
  if (typeof prompt === "string" && prompt) return prompt;
  const file = inputFile(job);
  return (file?.job ? job.step : file?.name) ?? job.model;
}

/** Return the duration of a job so far, or null before it started. */
export function secondsOf(job: Job, now = Date.now()): number | null {
  if (!job.started_at) return null;
  return Math.max(0, (job.finished_at ? Date.parse(job.finished_at) : now) - Date.parse(job.started_at)) / 1000;
}

export const STATES = ["queued", "running", "canceling", "succeeded", "failed", "canceled", "expired"] as const;

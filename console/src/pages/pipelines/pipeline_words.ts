/** A pipeline in few words. */
import type { Pipeline, PipelineStep } from "../../api/shapes";

/** Its prompt, else its template, else its steps. */
export function nameOfPipeline(pipeline: Pipeline): string {
  const { params, template, steps } = pipeline;
  const text = params.prompt ?? params.text ?? Object.values(params).find((value) => typeof value === "string");
  if (typeof text === "string" && text) return text;
  return template ?? steps.map((step) => step.name).join(", ");
}

/** Such as `picture → model → film`. */
export function chainOf(pipeline: Pipeline): string {
  const names = pipeline.steps.map((step) => step.name + (step.is_fan_out ? ` × ${step.job_ids.length}` : ""));
  return names.length > 6 ? `${names.slice(0, 5).join(" → ")} and ${names.length - 5} more` : names.join(" → ");
}

/** Return the duration of a pipeline so far, in seconds. */
export function secondsOfPipeline(pipeline: Pipeline, now: number): number {
  const end = pipeline.finished_at ? Date.parse(pipeline.finished_at) : now;
  return Math.max(0, end - Date.parse(pipeline.created_at)) / 1000;
}

/** Return how many jobs of a step have ended. */
export function doneOf(step: PipelineStep): number {
  return (step.jobs ?? []).filter((job) => job.done).length;
}

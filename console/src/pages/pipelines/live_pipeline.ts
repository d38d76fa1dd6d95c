/** One pipeline, kept true by its own stream of events. */
import { type QueryClient, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { call } from "../../api/call";
import { ApiError } from "../../api/errors";
import type { Job, JobEvent, Pipeline, PipelineStep } from "../../api/shapes";
import { follow } from "../../api/sse";

const AGAIN_MS = 250;

export function usePipeline(id: string) {
  const client = useQueryClient();
  const query = useQuery({
    queryKey: ["pipeline", id],
    queryFn: ({ signal }) => call<Pipeline>(`/api/v1/pipelines/${encodeURIComponent(id)}`, { signal }),
    refetchInterval: ({ state }) => (state.data && !state.data.done ? 10_000 : false),
  });
  const isOpen = query.data?.done === false;
  useEffect(() => {
    if (!isOpen) return;
    const ending = new AbortController();
    let timer = 0;
    const askAgain = () => {
      if (timer) return;
      timer = window.setTimeout(() => {
        timer = 0;
        void client.invalidateQueries({ queryKey: ["pipeline", id] });
      }, AGAIN_MS);
    };
    void follow(`/api/v1/pipelines/${encodeURIComponent(id)}/events`, {
      signal: ending.signal,
      onEvent: ({ data }) => {
        const event = JSON.parse(data) as JobEvent;
        if (event.type === "job.progress") noteJob(client, id, event.data as Job);
        else askAgain();
      },
      onCut: (error) => {
        if (error instanceof ApiError && !error.retryable) ending.abort();
        else askAgain();
      },
    });
    return () => {
      ending.abort();
      window.clearTimeout(timer);
    };
  }, [client, id, isOpen]);
  return query;
}

/** Progress is put into the record that is shown; all other changes are read from the server. */
function noteJob(client: QueryClient, id: string, job: Job): void {
  client.setQueryData<Pipeline>(["pipeline", id], (known) =>
    known && !known.done ? { ...known, steps: known.steps.map((step) => withJob(step, job)) } : known,
  );
}

function withJob(step: PipelineStep, job: Job): PipelineStep {
  const before = step.jobs?.find((each) => each.id === job.id);
  if (!step.jobs || !before || before.done || before.progress > job.progress) return step;
  const jobs = step.jobs.map((each) => (each.id === job.id ? { ...job, outputs: each.outputs } : each));
  const progress = jobs.reduce((sum, each) => sum + (each.done ? 1 : each.progress), 0) / jobs.length;
  const isRunning = job.status === "running" && (step.status === "queued" || step.status === "waiting");
  return { ...step, jobs, progress, status: isRunning ? "running" : step.status };
}

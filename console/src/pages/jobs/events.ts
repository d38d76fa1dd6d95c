/** A job's own events, from its first, and on while it is open. */
import { useEffect, useState } from "react";
import { ApiError } from "../../api/errors";
import type { Job, JobEvent } from "../../api/shapes";
import { follow } from "../../api/sse";

/** An event of a job, never one of a budget. */
export interface Happening {
  id: string;
  type: string;
  at: string;
  job: Job;
}

/** Return the events so far, or an error if the server refuses. A cut stream reconnects automatically. */
export function useHappenings(id: string): { events: Happening[]; error: ApiError | null } {
  const [error, setError] = useState<ApiError | null>(null);
  const [events, setEvents] = useState<Happening[]>([]);
  useEffect(() => {
    const ending = new AbortController();
    const seen: Happening[] = [];
    let timer = 0;
    setEvents([]);
    setError(null);
    void follow(`/api/v1/jobs/${encodeURIComponent(id)}/events`, {
      signal: ending.signal,
      onEvent: (event) => {
        const { type, id: eventId, created_at, data } = JSON.parse(event.data) as JobEvent;
        const job = data as Job;
        seen.push({ id: eventId, type, at: created_at, job });
        window.clearTimeout(timer);
        timer = window.setTimeout(() => setEvents([...seen]), 60);
        if (job.done) setTimeout(() => ending.abort(), 100);
      },
      onCut: (cut) => {
        if (!(cut instanceof ApiError) || cut.retryable) return;
        ending.abort();
        setError(cut);
      },
    });
    return () => {
      ending.abort();
      window.clearTimeout(timer);
    };
  }, [id]);
  return { events, error };
}

/** A period in one phase. */
export interface Stretch {
  phase: string;
  seconds: number;
}

export function stretchesOf(events: Happening[], now: number): Stretch[] {
  const stretches: Stretch[] = [];
  events.forEach((event, index) => {
    if (event.job.done) return;
    const next = events[index + 1];
    const seconds = Math.max(0, (next ? Date.parse(next.at) : now) - Date.parse(event.at)) / 1000;
    const last = stretches.at(-1);
    if (last?.phase === event.job.phase) last.seconds += seconds;
    else stretches.push({ phase: event.job.phase, seconds });
  });
  return stretches;
}

/** A step of the timeline: one event, or several progress events of one phase. */
export interface Step {
  first: Happening;
  last: Happening;
  count: number;
}

export function stepsOf(events: Happening[]): Step[] {
  const steps: Step[] = [];
  for (const event of events) {
    const before = steps.at(-1);
    const goesOn =
      before?.last.type === "job.progress" &&
      event.type === "job.progress" &&
      before.last.job.phase === event.job.phase &&
      before.last.job.status === event.job.status;
    if (before && goesOn) {
      before.last = event;
      before.count += 1;
    } else steps.push({ first: event, last: event, count: 1 });
  }
  return steps;
}

/** One stream of the account's events for the whole tab: it keeps every shown job true. */
import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";
import { useSession } from "../session";
import { ApiError } from "./errors";
import type { Job, JobEvent } from "./shapes";
import { follow } from "./sse";

let isLive = false;
const listeners = new Set<() => void>();

function setLive(next: boolean): void {
  if (next === isLive) return;
  isLive = next;
  for (const listener of listeners) listener();
}

/** True while the event stream is connected. Without it, open views poll. */
export function useIsLive(): boolean {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => isLive,
  );
}

/** Put a record where `useJob` finds it, unless a later one is there. */
export function rememberJob(client: QueryClient, job: Job): void {
  client.setQueryData<Job>(["job", job.id], (known) => (known && !isLater(job, known) ? known : job));
}

function isLater(job: Job, known: Job): boolean {
  if (known.done) return job.done;
  return job.done || job.progress >= known.progress;
}

/** Mounted once, in the shell. */
export function useAccountFeed(): void {
  const client = useQueryClient();
  const { account } = useSession();
  useEffect(() => {
    if (!account) return;
    const ending = new AbortController();
    follow("/api/v1/events", {
      signal: ending.signal,
      onOpen: () => {
        setLive(true);
        void client.invalidateQueries({
          queryKey: ["job"],
          predicate: (query) => !(query.state.data as Job | undefined)?.done,
        });
        void client.invalidateQueries({ queryKey: ["jobs"] });
      },
      onEvent: (event) => note(client, JSON.parse(event.data) as JobEvent),
      onCut: (error) => {
        setLive(false);
        if (error instanceof ApiError && (error.status === 401 || error.status === 403)) ending.abort();
      },
    });
    return () => {
      ending.abort();
      setLive(false);
    };
  }, [account, client]);
}

function note(client: QueryClient, event: JobEvent): void {
  if (event.type.startsWith("pipeline.")) {
    askAgain(client, "pipelines");
    return;
  }
  if (!event.type.startsWith("job.")) {
    askAgain(client, "usage");
    return;
  }
  const job = event.data as Job;
  if (client.getQueryData(["job", job.id])) rememberJob(client, job);
  if (event.type !== "job.progress") {
    askAgain(client, "jobs");
    if (job.done) askAgain(client, "usage");
  }
}

const waiting = new Map<string, number>();

/** Lists are asked for again a moment later: many events at once are one question. */
function askAgain(client: QueryClient, list: string): void {
  if (waiting.has(list)) return;
  const ask = () => {
    waiting.delete(list);
    void client.invalidateQueries({ queryKey: [list] });
  };
  waiting.set(list, window.setTimeout(ask, 400));
}

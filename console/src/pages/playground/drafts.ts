/** Drafts of the playground: params, conversations and jobs of this tab, kept when you leave the page. */
import { useSyncExternalStore } from "react";
import { getSession, publicPart, subscribe } from "../../session";
import type { Batch } from "../batch/orders";
import type { Params } from "./params_form";

export interface Turn {
  role: "user" | "assistant";
  content: string;
  /** Of an answer: what it took. */
  tokens?: { prompt: number; completion: number; cached: number; writes?: number; writes1h?: number };
  cost?: number | null;
  seconds?: number;
  first?: number;
  /** Of an answer: how it ended, if not well. */
  ending?: "stopped" | "cut" | "length" | "content_filter";
}

export interface ChatSettings {
  system?: string;
  temperature?: number;
  top_p?: number;
  max_tokens?: number;
  seed?: number;
  stop?: string;
}

export interface Drafts {
  model: string | null;
  kind: string;
  params: Record<string, Params>;
  /** What is missing of a job that is edited, by model. */
  notices: Record<string, string | null>;
  jobs: { id: string; model: string }[];
  /** Requests of one prompt to several models, newest first. */
  batches: Batch[];
  turns: Record<string, Turn[]>;
  settings: Record<string, ChatSettings>;
}

const NOTHING: Drafts = {
  model: null,
  kind: "3d",
  params: {},
  notices: {},
  jobs: [],
  batches: [],
  turns: {},
  settings: {},
};
const MOST_JOBS = 20;
const listeners = new Set<() => void>();
let place = placeOf();
let current = read();

subscribe(() => {
  place = placeOf();
  current = read();
  tell();
});

/** Each key has its own. */
function placeOf(): string {
  const { account } = getSession();
  return `penstock.playground.${account ? publicPart(account) : ""}`;
}

function read(): Drafts {
  try {
    return { ...NOTHING, ...JSON.parse(sessionStorage.getItem(place) ?? "{}") };
  } catch {
    return NOTHING;
  }
}

function tell(): void {
  for (const listener of listeners) listener();
}

export function getDrafts(): Drafts {
  return current;
}

export function changeDrafts(change: (drafts: Drafts) => Partial<Drafts>): void {
  current = { ...current, ...change(current) };
  try {
    sessionStorage.setItem(place, JSON.stringify(current));
  } catch {
    // A full storage is no reason to stop: what is in memory still counts.
  }
  tell();
}

export function useDrafts(): Drafts {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => current,
  );
}

export function addJobs(jobs: { id: string; model: string }[]): void {
  const isOther = ({ id }: { id: string }) => jobs.every((job) => job.id !== id);
  changeDrafts((drafts) => ({ jobs: [...jobs, ...drafts.jobs.filter(isOther)].slice(0, MOST_JOBS) }));
}

export function dropJob(id: string): void {
  changeDrafts((drafts) => ({ jobs: drafts.jobs.filter((job) => job.id !== id) }));
}

/** Set or clear the notice above the form of a model. */
export function notify(model: string, notice: string | null): void {
  if ((current.notices[model] ?? null) !== notice) {
    changeDrafts((drafts) => ({ notices: { ...drafts.notices, [model]: notice } }));
  }
}

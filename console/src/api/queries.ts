/** Queries of several pages. Query keys: ["models"], ["job", id], ["jobs", filters], ["usage", …], ["admin", …]. */
import { QueryClient, queryOptions, useMutation, useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { getSession, subscribe } from "../session";
import { call } from "./call";
import { ApiError } from "./errors";
import { rememberJob, useIsLive } from "./live";
import type { ChatModel, Job, Model, Page } from "./shapes";

export function createQueryClient(): QueryClient {
  const client = new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 10_000,
        refetchOnWindowFocus: true,
        retry: (failures, error) => failures < 2 && !(error instanceof ApiError && !error.retryable),
      },
    },
  });
  forgetWithKeys(client);
  return client;
}

/** Clear the cache when the key changes. */
function forgetWithKeys(client: QueryClient): void {
  let before = getSession();
  subscribe(() => {
    const now = getSession();
    const gone = (["account", "admin"] as const).filter((role) => before[role] !== now[role]);
    before = now;
    for (const role of gone) {
      client.removeQueries({ predicate: ({ queryKey }) => (queryKey[0] === "admin") === (role === "admin") });
    }
  });
}

/** Every model that the key may use, chat included. */
export const MODELS = queryOptions({
  queryKey: ["models"],
  queryFn: ({ signal }) => readModels(signal),
  staleTime: 60_000,
});

export function useModels() {
  return useQuery(MODELS);
}

async function readModels(signal: AbortSignal): Promise<Model[]> {
  try {
    return (await call<{ data: Model[] }>("/api/v1/models", { signal })).data;
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "scope_not_allowed") throw error;
    const chat = await call<{ data: ChatModel[] }>("/llm/models", { signal });
    return chat.data.map(chatModel);
  }
}

/** Model fields visible to a key that may only chat. */
function chatModel({ id, owned_by, description, kind }: ChatModel): Model {
  const unknown = { params: {}, defaults: {}, example: {}, price: null, prices: [], typical_seconds: null };
  const chat = ["/llm/chat/completions", "/v1/messages", "/v1/responses"];
  const endpoints = kind === "embedding" ? ["/llm/embeddings"] : chat;
  return { id, object: "model", kind, title: id, description, vendors: [owned_by], endpoints, ...unknown };
}

/** A job, kept true by the feed; without it, asked for again as its record says. */
export function useJob(id: string | null, initial?: Job) {
  const live = useIsLive();
  return useQuery({ ...jobQuery(id, live), ...(initial ? { initialData: initial } : {}) });
}

/** Several jobs, each like `useJob`, in the order of their ids. */
export function useJobs(ids: string[]) {
  const live = useIsLive();
  return useQueries({ queries: ids.map((id) => jobQuery(id, live)) });
}

function jobQuery(id: string | null, live: boolean) {
  return queryOptions({
    queryKey: ["job", id],
    queryFn: ({ signal }) => call<Job>(`/api/v1/jobs/${encodeURIComponent(id ?? "")}`, { signal }),
    enabled: id !== null,
    staleTime: 5_000,
    refetchInterval: ({ state }) => {
      if (!state.data || state.data.done) return false;
      return live ? 10_000 : Math.max(state.data.poll_after_ms ?? 2000, 1000);
    },
  });
}

export function useCancelJob() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (id: string) => call<Job>(`/api/v1/jobs/${id}/cancel`, { method: "POST" }),
    onSuccess: (job) => rememberJob(client, job),
  });
}

/** A page of any list of the API, such as "/admin/v1/keys". */
export function fetchPage<T>(
  path: string,
  query: Record<string, string | number | null | undefined>,
  signal: AbortSignal,
) {
  return call<Page<T>>(path, { query, signal });
}

/** Conversations that go on while one looks elsewhere: the stream belongs to the tab, not to the page. */
import { useSyncExternalStore } from "react";
import { ask } from "../../api/call";
import { BrokenOff } from "../../api/errors";
import type { Model } from "../../api/shapes";
import { eventsOf } from "../../api/sse";
import { getSession, subscribe } from "../../session";
import { type ChatSettings, changeDrafts, getDrafts, type Turn } from "./drafts";

interface Running {
  /** Text received so far. */
  turn: Turn;
  stop: AbortController;
}

const running = new Map<string, Running>();
const failed = new Map<string, unknown>();
const listeners = new Set<() => void>();
let version = 0;
let isTold = false;

subscribe(() => {
  if (getSession().account) return;
  for (const { stop } of running.values()) stop.abort();
  failed.clear();
});

/** Some fifteen times a second at most, however fast tokens come: the whole answer is laid out again each time. */
function tell(): void {
  if (isTold) return;
  isTold = true;
  setTimeout(() => {
    isTold = false;
    version += 1;
    for (const listener of listeners) listener();
  }, 66);
}

export function useChatStream(model: string): { turn: Turn | null; error: unknown } {
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => version,
  );
  return { turn: running.get(model)?.turn ?? null, error: failed.get(model) ?? null };
}

export function stopChat(model: string): void {
  running.get(model)?.stop.abort();
}

export function forgetError(model: string): void {
  failed.delete(model);
  tell();
}

export function chatBody(model: string, turns: Turn[], settings: ChatSettings): Record<string, unknown> {
  const { system, stop, ...numbers } = settings;
  const messages = turns.map(({ role, content }) => ({ role, content }));
  const given = Object.fromEntries(Object.entries(numbers).filter(([, value]) => value !== undefined));
  return {
    model,
    messages: system ? [{ role: "system", content: system }, ...messages] : messages,
    ...given,
    ...(stop ? { stop } : {}),
  };
}

/** Ask for the next answer to what stands there. */
export async function answer(model: Model): Promise<void> {
  if (running.has(model.id)) return;
  const stop = new AbortController();
  const state: Running = { turn: { role: "assistant", content: "" }, stop };
  running.set(model.id, state);
  failed.delete(model.id);
  tell();
  const began = performance.now();
  const drafts = getDrafts();
  const body = chatBody(model.id, drafts.turns[model.id] ?? [], drafts.settings[model.id] ?? {});
  try {
    const streamed = { ...body, stream: true, stream_options: { include_usage: true } };
    const response = await ask("/llm/chat/completions", { body: streamed, signal: stop.signal });
    let isWhole = false;
    for await (const event of eventsOf(response)) {
      isWhole = event.data === "[DONE]";
      if (isWhole) break;
      state.turn = { ...state.turn, ...take(JSON.parse(event.data), state.turn, (performance.now() - began) / 1000) };
      tell();
    }
    if (!isWhole) throw new BrokenOff();
  } catch (error) {
    state.turn = { ...state.turn, ending: stop.signal.aborted ? "stopped" : "cut" };
    if (!stop.signal.aborted) failed.set(model.id, error instanceof TypeError ? new BrokenOff() : error);
  }
  running.delete(model.id);
  const done = { ...state.turn, seconds: (performance.now() - began) / 1000, cost: costOf(model, state.turn) };
  if (done.content)
    changeDrafts(({ turns }) => ({ turns: { ...turns, [model.id]: [...(turns[model.id] ?? []), done] } }));
  tell();
}

interface Chunk {
  error?: { message?: string };
  choices?: { delta?: { content?: string | null; refusal?: string | null }; finish_reason?: string | null }[];
  usage?: {
    prompt_tokens: number;
    completion_tokens: number;
    prompt_tokens_details?: { cached_tokens?: number; cache_write_tokens?: number; cache_write_1h_tokens?: number };
  } | null;
}

function take(chunk: Chunk, turn: Turn, seconds: number): Partial<Turn> {
  if (chunk.error) throw new Error(chunk.error.message ?? "The stream ended early.");
  const [choice] = chunk.choices ?? [];
  const text = choice?.delta?.content ?? choice?.delta?.refusal ?? "";
  const next: Partial<Turn> = {};
  if (text) next.content = turn.content + text;
  if (text && turn.first === undefined) next.first = seconds;
  const reason = choice?.finish_reason;
  if (reason === "length" || reason === "content_filter") next.ending = reason;
  if (chunk.usage) {
    const { prompt_tokens: prompt, completion_tokens: completion, prompt_tokens_details: inner } = chunk.usage;
    next.tokens = {
      prompt,
      completion,
      cached: inner?.cached_tokens ?? 0,
      writes: inner?.cache_write_tokens ?? 0,
      writes1h: inner?.cache_write_1h_tokens ?? 0,
    };
  }
  return next;
}

/** By the model's price as it is published: a stream's own cost is in the usage page a moment later. */
function costOf(model: Model, { tokens }: Turn): number | null {
  const price = model.price as Record<string, string | null> | null;
  if (!price || !tokens || price.input_per_million === undefined) return null;
  const rate = (name: string, other: number) =>
    price[name] === null || price[name] === undefined ? other : Number(price[name]);
  const input = rate("input_per_million", 0);
  const write = rate("cache_write_per_million", input);
  const { cached, writes = 0, writes1h = 0 } = tokens;
  const sum =
    (tokens.prompt - cached - writes) * input +
    cached * rate("cached_input_per_million", input) +
    (writes - writes1h) * write +
    writes1h * rate("cache_write_1h_per_million", write) +
    tokens.completion * rate("output_per_million", 0);
  return sum / 1e6 + rate("per_request", 0);
}

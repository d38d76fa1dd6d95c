/** Server-sent events by fetch, as an EventSource cannot send a key. */
import { ask } from "./call";

export interface ServerEvent {
  id: string;
  type: string;
  data: string;
}

/** The events of one response, in order. */
export async function* eventsOf(response: Response): AsyncGenerator<ServerEvent> {
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    while (true) {
      const { value, done } = await reader.read();
      if (done) return;
      const parts = (rest + value).split(/\r?\n\r?\n/);
      rest = parts.pop() ?? "";
      for (const part of parts) {
        const event = parse(part);
        if (event) yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

function parse(block: string): ServerEvent | null {
  const event: ServerEvent = { id: "", type: "message", data: "" };
  const lines: string[] = [];
  for (const line of block.split(/\r?\n/)) {
    const [, field, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
    if (field === "data") lines.push(value ?? "");
    else if (field === "id") event.id = value ?? "";
    else if (field === "event") event.type = value ?? "";
  }
  event.data = lines.join("\n");
  return lines.length ? event : null;
}

export interface Following {
  signal: AbortSignal;
  onEvent: (event: ServerEvent) => void;
  /** The stream stands, again or for the first time. */
  onOpen?: () => void;
  /** It was cut; it is tried again after some time. */
  onCut?: (error: unknown) => void;
}

/** A browser has six connections to a server for all of its tabs: who is out of sight for long gives theirs back. */
const OUT_OF_SIGHT = 10_000;

/** Follow a stream until the signal, resuming after a cut. It ends when the server closes it for good. */
export async function follow(path: string, { signal, onEvent, onOpen, onCut }: Following): Promise<void> {
  let last = "";
  let pause = 500;
  while (!signal.aborted) {
    await untilSeen(signal);
    const unseen = new AbortController();
    const forget = whenUnseen(() => unseen.abort());
    try {
      const headers: Record<string, string> = { accept: "text/event-stream" };
      if (last) headers["last-event-id"] = last;
      const response = await ask(path, { headers, signal: AbortSignal.any([signal, unseen.signal]) });
      if (response.status === 204) return;
      onOpen?.();
      for await (const event of eventsOf(response)) {
        if (event.id) last = event.id;
        pause = 500;
        onEvent(event);
      }
      onCut?.(null);
    } catch (error) {
      if (signal.aborted) return;
      onCut?.(error);
    } finally {
      forget();
    }
    if (unseen.signal.aborted) continue;
    await rest(pause + Math.random() * 250, signal);
    pause = Math.min(pause * 2, 15_000);
  }
}

/** Call when the page has been out of sight for a while; returns how to stop watching. */
function whenUnseen(act: () => void): () => void {
  let timer = 0;
  const look = () => {
    clearTimeout(timer);
    if (document.hidden) timer = window.setTimeout(act, OUT_OF_SIGHT);
  };
  look();
  document.addEventListener("visibilitychange", look);
  return () => {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", look);
  };
}

function untilSeen(signal: AbortSignal): Promise<void> {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => {
    const look = () => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener("visibilitychange", look);
      signal.removeEventListener("abort", look);
      resolve();
    };
    document.addEventListener("visibilitychange", look);
    signal.addEventListener("abort", look);
  });
}

function rest(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    const end = () => {
      clearTimeout(timer);
      resolve();
    };
    signal.addEventListener("abort", end, { once: true });
  });
}

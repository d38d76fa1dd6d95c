/** Which model a newcomer sees first. */
import type { Model } from "../api/shapes";

/** The order of the menu of kinds. */
export const KINDS: Record<string, string> = {
  "3d": "3D",
  video: "Video",
  image: "Image",
  audio: "Audio",
  text: "Text",
  chat: "Chat",
  embedding: "Embeddings",
  speech: "Speech",
  transcription: "Transcripts",
};

/** Kinds that answer at once, without a job. */
export const DIRECT_KINDS: ReadonlySet<string> = new Set(["chat", "embedding", "speech", "transcription"]);

/** Return whether the playground has a page for the model: it chats, or makes jobs. */
export function isPlayable(model: Model): boolean {
  return model.kind === "chat" || !DIRECT_KINDS.has(model.kind);
}

const BUILT_IN = new Set(["embedded", "local", "local_large", "minilm", "hibari", "whisper"]);
const SIMULATED = new Set(["sim"]);

/** Return whether a vendor is neither built in nor simulated. */
export function isHosted(vendor: string): boolean {
  return !BUILT_IN.has(vendor) && !SIMULATED.has(vendor);
}

export function kindOrder(kind: string): number {
  const place = Object.keys(KINDS).indexOf(kind);
  return place < 0 ? 99 : place;
}

/**
 * Model shown before one is chosen: what a hosted vendor serves, else the built-in engines at their best, else the
 * simulator. Of the built-in engines 3D makes the best first result: a picture of a round object becomes a model to turn
 * in seconds. Films are illustrations, and the small chat model is often wrong.
 */
export function firstOf(models: Model[]): Model | undefined {
  return models.toSorted((a, b) => rank(a) - rank(b) || kindOrder(a.kind) - kindOrder(b.kind))[0];
}

function rank({ vendors }: Model): number {
  if (vendors.some(isHosted)) return 0;
  return vendors.some((vendor) => BUILT_IN.has(vendor)) ? 1 : 2;
}

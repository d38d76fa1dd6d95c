/** Requests as complete programs: install line, key from the environment, upload, wait, download, errors. */
import type { Model } from "../../api/shapes";
import { chatInJavaScript, generateInJavaScript } from "./javascript";
import { chatInPython, generateInPython } from "./python";
import { generationCode, type Params } from "./request";
import { chatInShell, generateInShell } from "./shell";

export type Samples = Record<string, string>;

export function generationSamples(
  origin: string,
  model: Model,
  params: Params,
  nameOf?: (token: string) => string | undefined,
): Samples {
  const code = generationCode(origin, model, params, nameOf);
  return { curl: generateInShell(code), Python: generateInPython(code), JavaScript: generateInJavaScript(code) };
}

/** Programs that wait for a job and download its outputs. */
export function jobSamples(origin: string, job: string): Samples {
  const code = { origin, job, body: null, files: [] };
  return { curl: generateInShell(code), Python: generateInPython(code), JavaScript: generateInJavaScript(code) };
}

interface Dialect {
  title: string;
  samples: (origin: string, body: Record<string, unknown>) => Samples;
}

/** Samples for each path that answers a chat. Only those that the server lists for the model are shown. */
const DIALECTS: Record<string, Dialect> = {
  "/llm/chat/completions": {
    title: "OpenAI Chat Completions",
    samples: (origin, { stream: _, stream_options: __, ...body }) => ({
      curl: chatInShell(origin, body),
      Python: chatInPython(origin, body),
      JavaScript: chatInJavaScript(origin, body),
    }),
  },
};

/** Samples by the title of a dialect that the server speaks for this model. */
export function chatSamples(origin: string, model: Model, body: Record<string, unknown>): Record<string, Samples> {
  const known = model.endpoints.flatMap((path) => DIALECTS[path] ?? []);
  return Object.fromEntries(known.map(({ title, samples }) => [title, samples(origin, body)]));
}

/** Requests as complete programs: install line, key from the environment, upload, wait, download, errors. */
import type { Model } from "../../api/shapes";
import { type Body, CHAT_DIALECTS, type ChatDialect } from "./chat_dialects";
import { chatInJavaScript, runInJavaScript } from "./javascript";
import { mediaSamples } from "./media_dialects";
import { pipelineInCommandLine, pipelineInPython } from "./pipelines";
import { chatInPython, generateInPython } from "./python";
import { generationCode, jobCode, type NameOf, type Params, pipelineCode } from "./request";
import { chatInShell, runInShell } from "./shell";

export type Samples = Record<string, string>;

export function generationSamples(origin: string, model: Model, params: Params, nameOf?: NameOf): Samples {
  const code = generationCode(origin, model, params, nameOf);
  return { curl: runInShell(code), Python: generateInPython(code), JavaScript: runInJavaScript(code) };
}

/** Samples by the title of a dialect: this server's own first. Others cannot upload files as it does. */
export function generationDialects(
  origin: string,
  model: Model,
  params: Params,
  nameOf?: NameOf,
): Record<string, Samples> {
  const { files, body } = generationCode(origin, model, params, nameOf);
  const own = { Penstock: generationSamples(origin, model, params, nameOf) };
  const [first] = (body as { input: { params: Params }[] }).input;
  return files.length || !first ? own : { ...own, ...mediaSamples(origin, model, first.params) };
}

/** `body`: steps and params. */
export function pipelineSamples(origin: string, body: Params, nameOf?: NameOf): Samples {
  const code = pipelineCode(origin, body, nameOf);
  return {
    curl: runInShell(code),
    Python: pipelineInPython(code),
    "Command line": pipelineInCommandLine(code),
    JavaScript: runInJavaScript(code),
  };
}

/** Programs that wait for a job and download its outputs. */
export function jobSamples(origin: string, job: string): Samples {
  const code = jobCode(origin, job);
  return { curl: runInShell(code), Python: generateInPython(code), JavaScript: runInJavaScript(code) };
}

/** Samples by the title of a dialect that the server speaks for this model. */
export function chatSamples(origin: string, model: Model, body: Body): Record<string, Samples> {
  const known = CHAT_DIALECTS.filter(({ path }) => model.endpoints.includes(path));
  return Object.fromEntries(known.map((dialect) => [dialect.title, write(origin, dialect, dialect.body(body))]));
}

function write(origin: string, dialect: ChatDialect, body: Body): Samples {
  return {
    curl: chatInShell(origin, dialect, body),
    Python: chatInPython(origin, dialect, body),
    JavaScript: chatInJavaScript(origin, dialect, body),
  };
}

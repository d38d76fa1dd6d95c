/** A request as code shows it: uploads by the names of their files instead of tokens that end. */
import type { Model } from "../../api/shapes";
import { SAMPLE_PICTURE } from "./sample_picture";

export type Params = Record<string, unknown>;

/** Before the name of a file that the code uploads: a character that nobody types. */
export const UPLOAD = "\uE000";

/** What code starts, waits for and downloads. */
export interface Target {
  noun: "job" | "pipeline";
  /** Path that starts one. */
  start: string;
  /** Path of all records. */
  records: string;
}

const JOB: Target = { noun: "job", start: "/model/v1/generation", records: "/api/v1/jobs" };
const PIPELINE: Target = { noun: "pipeline", start: "/api/v1/pipelines", records: "/api/v1/pipelines" };

export interface RequestCode {
  origin: string;
  target: Target;
  body: unknown;
  /** Names of the files to upload. */
  files: string[];
  /** A job that was started already, instead of the body of a new one. */
  job?: string;
}

/** Return the file's name of an upload's token, if this tab knows it. */
export type NameOf = (token: string) => string | undefined;

const UNKNOWN: NameOf = () => undefined;

export function generationCode(origin: string, model: Model, params: Params, nameOf = UNKNOWN): RequestCode {
  const { value, files } = withNames(withExample(model, params), nameOf, isNoPicture);
  return { origin, target: JOB, body: { model: model.id, input: [{ params: value }] }, files };
}

/** `body`: steps and params, as a request has them. */
export function pipelineCode(origin: string, body: Params, nameOf = UNKNOWN): RequestCode {
  const { value, files } = withNames(body, nameOf);
  return { origin, target: PIPELINE, body: value, files };
}

/** Code that waits for a job. */
export function jobCode(origin: string, job: string): RequestCode {
  return { origin, target: JOB, job, body: null, files: [] };
}

/** Replace tokens of uploads by marked names of files, and what `isSample` by the sample picture's. */
function withNames(
  params: Params,
  nameOf: NameOf,
  isSample: (value: unknown) => boolean = () => false,
): { value: Params; files: string[] } {
  const files: string[] = [];
  const upload = (name: string) => {
    if (!files.includes(name)) files.push(name);
    return { file_token: UPLOAD + name };
  };
  const walk = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(walk);
    if (typeof value !== "object" || value === null) return value;
    const { file_token: token } = value as { file_token?: unknown };
    if (isSample(value)) return { ...roleOf(value), ...upload(SAMPLE_PICTURE) };
    if (typeof token === "string") return { ...roleOf(value), ...upload(nameOf(token) || "picture.png") };
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, walk(inner)]));
  };
  return { value: Object.fromEntries(Object.entries(params).map(([name, value]) => [name, walk(value)])), files };
}

/** Required params that are not filled in yet are those of the model's example. */
function withExample(model: Model, params: Params): Params {
  const example = (model.example.input as { params: Params }[] | undefined)?.[0]?.params ?? {};
  const required = (model.params.required as string[] | undefined) ?? [];
  const missing = required.filter((name) => params[name] === undefined && example[name] !== undefined);
  return { ...Object.fromEntries(missing.map((name) => [name, example[name]])), ...params };
}

/** An example's address of a picture that is nowhere. */
function isNoPicture(value: unknown): boolean {
  const { url } = (typeof value === "object" && value !== null ? value : {}) as { url?: unknown };
  return typeof url === "string" && /^https?:\/\/([\w-]+\.)*example\.(com|org|net)\/.*\.(png|jpe?g|webp)$/.test(url);
}

function roleOf(value: object): object {
  return "role" in value ? { role: value.role } : {};
}

/** A generation as code shows it: uploads by the names of their files instead of tokens that end. */
import type { Model } from "../../api/shapes";
import { SAMPLE_PICTURE } from "./sample_picture";

export type Params = Record<string, unknown>;

/** Before the name of a file that the code uploads: a character that nobody types. */
export const UPLOAD = "\uE000";

export interface GenerationCode {
  origin: string;
  body: unknown;
  /** Names of the files to upload. */
  files: string[];
  /** A job that was started already, instead of the body of a new one. */
  job?: string;
}

/** `nameOf`: the file's name of an upload's token, if this tab knows it. */
export function generationCode(
  origin: string,
  model: Model,
  params: Params,
  nameOf: (token: string) => string | undefined = () => undefined,
): GenerationCode {
  const files: string[] = [];
  const upload = (name: string) => {
    if (!files.includes(name)) files.push(name);
    return { file_token: UPLOAD + name };
  };
  const walk = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(walk);
    if (typeof value !== "object" || value === null) return value;
    const { file_token: token } = value as { file_token?: unknown };
    if (isNoPicture(value)) return { ...roleOf(value), ...upload(SAMPLE_PICTURE) };
    if (typeof token === "string") return { ...roleOf(value), ...upload(nameOf(token) || "picture.png") };
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, walk(inner)]));
  };
  const whole = withExample(model, params);
  const input = Object.entries(whole).map(([name, value]) => [name, walk(value)]);
  return { origin, body: { model: model.id, input: [{ params: Object.fromEntries(input) }] }, files };
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

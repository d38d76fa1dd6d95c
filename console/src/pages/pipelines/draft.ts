/** A pipeline that is written: its text, its steps, and the form of its own params. */
import type { RJSFSchema } from "@rjsf/utils";
import type { ErrorDetail, Model } from "../../api/shapes";
import { planForm } from "../playground/form_schema";
import type { Params } from "../playground/params_form";

/** What the editor holds: all of a request but its params. */
export interface Draft {
  text: string;
  params: Params;
}

export interface DraftStep {
  name: string;
  model: string;
  params: Record<string, unknown>;
  for_each?: unknown;
}

export interface Parsed {
  body: Record<string, unknown>;
  steps: DraftStep[];
}

/** Return the parsed text, or what is wrong with it. */
export function parse(text: string): Parsed | { problem: string } {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    return { problem: `This is not valid JSON. ${error instanceof Error ? error.message : ""}` };
  }
  if (Array.isArray(body)) body = { steps: body };
  if (typeof body !== "object" || body === null) return { problem: 'Write an object with "steps".' };
  const { steps } = body as { steps?: unknown };
  const list = Array.isArray(steps)
    ? steps
    : typeof steps === "object" && steps !== null
      ? Object.entries(steps).map(([name, step]) => ({ name, ...(step as object) }))
      : null;
  if (list === null) return { problem: '"steps" is missing: a list of steps.' };
  return { body: body as Record<string, unknown>, steps: list.map(stepOf) };
}

function stepOf(step: unknown): DraftStep {
  const { name, model, params, for_each } = (step ?? {}) as Partial<DraftStep>;
  const own = { name: String(name ?? ""), model: String(model ?? ""), params: params ?? {} };
  return for_each === undefined ? own : { ...own, for_each };
}

export function textOf(given: Record<string, unknown>): string {
  const { on_error, ...rest } = given;
  const short = on_error === "stop" || on_error === undefined ? rest : { on_error, ...rest };
  return compact(JSON.stringify(short, null, 2));
}

/** Small objects and lists on one line, as people write them. */
function compact(json: string): string {
  return json.replace(
    /([[{])\n\s+([^[\]{}]{1,90}?)\n\s+([\]}])/g,
    (_, open, inner, close) => `${open}${inner.replace(/\n\s+/g, " ")}${close}`,
  );
}

const ANYTHING: RJSFSchema = { type: "string", maxLength: 4000 };

/** A schema with the params that the steps refer to, each as the model's param in its place. */
export function paramsSchema(steps: DraftStep[], models: Model[]): RJSFSchema {
  const properties: Record<string, RJSFSchema> = {};
  const note = (name: string, schema: RJSFSchema) => {
    properties[name] ??= { ...schema };
  };
  for (const step of steps) {
    const model = models.find((each) => each.id === step.model);
    const form = model ? planForm(model.params).schema : {};
    for (const [name, value] of Object.entries(step.params)) {
      walk(value, (form.properties?.[name] as RJSFSchema | undefined) ?? ANYTHING, note);
    }
    const list = referenceIn(step.for_each);
    if (list) note(list, { type: "array", items: { type: "string" }, description: `one job of ${step.name} for each` });
  }
  return { type: "object", properties, required: Object.keys(properties) };
}

function walk(value: unknown, schema: RJSFSchema, note: (name: string, schema: RJSFSchema) => void): void {
  const name = referenceIn(value);
  if (name) note(name, schema);
  else if (Array.isArray(value)) {
    for (const each of value) walk(each, (schema.items as RJSFSchema | undefined) ?? ANYTHING, note);
  } else if (typeof value === "object" && value !== null) {
    for (const [inner, each] of Object.entries(value)) {
      walk(each, (schema.properties?.[inner] as RJSFSchema | undefined) ?? ANYTHING, note);
    }
  }
}

/** Return the name in `{"param": "name"}`. */
function referenceIn(value: unknown): string | null {
  if (typeof value !== "object" || value === null || !("param" in value)) return null;
  return typeof value.param === "string" && Object.keys(value).length === 1 ? value.param : null;
}

/** Return the params that the steps still refer to. */
export function usedParams(schema: RJSFSchema, params: Params): Params {
  return Object.fromEntries(Object.entries(params).filter(([name]) => name in (schema.properties ?? {})));
}

/** Errors of the server by the number of the step that they name; null: of the whole. */
export function errorsByStep(details: ErrorDetail[], steps: DraftStep[]): Map<number | null, string[]> {
  const found = new Map<number | null, string[]>();
  for (const { loc, message } of details) {
    const [start, which = "", ...rest] = loc.split(".");
    const named = steps.findIndex((step) => step.name === which);
    const number = start !== "steps" ? null : /^\d+$/.test(which) ? Number(which) : named < 0 ? null : named;
    const place = rest.join(".").replace(/^params\./, "");
    const plain = message.replace(/^[\w.]+: (?=Step `)/, "").replace(/^Step `[^`]*`: /, "");
    const text = place && !plain.includes(place) ? `${place}: ${plain}` : plain;
    found.set(number, [...(found.get(number) ?? []), text]);
  }
  return found;
}

const PLACE = "penstock.pipeline";

export function keptDraft(): Draft | null {
  try {
    return JSON.parse(sessionStorage.getItem(PLACE) ?? "null") as Draft | null;
  } catch {
    return null;
  }
}

export function keepDraft(draft: Draft): void {
  try {
    sessionStorage.setItem(PLACE, JSON.stringify(draft));
  } catch {
    // A full storage: the draft is lost by a reload.
  }
}

/** The params that several models share, as one schema. */
import type { RJSFSchema } from "@rjsf/utils";
import type { Model } from "../../api/shapes";
import { isFileObject, planForm } from "../playground/form_schema";
import type { Params } from "../playground/params_form";

/** Return a schema with the params that all models take, narrowed to the values that all accept. */
export function sharedSchema(models: Model[]): RJSFSchema {
  const schemas = models.map((model) => planForm(model.params).schema);
  const properties: Record<string, RJSFSchema> = {};
  for (const name of Object.keys(schemas[0]?.properties ?? {})) {
    const fields = schemas.map((schema) => schema.properties?.[name] as RJSFSchema | undefined);
    const merged = fields.reduce((a, b) => a && b && mergeFields(a, b));
    if (merged) properties[name] = merged;
  }
  const required = [...new Set(models.flatMap(requiredOf))].filter((name) => name in properties);
  return { type: "object", properties, required };
}

export interface Unshared {
  model: string;
  params: string[];
}

/** Return the params that a model needs and the others do not take. */
export function unsharedOf(models: Model[]): Unshared | null {
  const names = Object.keys(sharedSchema(models).properties ?? {});
  for (const model of models) {
    const params = requiredOf(model).filter((name) => !names.includes(name));
    if (params.length) return { model: model.id, params };
  }
  return null;
}

export function unsharedWords({ model, params }: Unshared): string {
  return `${model} needs ${params.join(", ")}, which not all chosen models take`;
}

/** Return the params that are in the schema. */
export function pickShared(schema: RJSFSchema, params: Params): Params {
  return Object.fromEntries(Object.entries(params).filter(([name]) => name in (schema.properties ?? {})));
}

function requiredOf(model: Model): string[] {
  return (model.params.required as string[] | undefined) ?? [];
}

/** Return what fits both fields, or undefined if nothing does. */
function mergeFields(a: RJSFSchema, b: RJSFSchema): RJSFSchema | undefined {
  if (isFileObject(a) && isFileObject(b)) return a;
  if (isNested(a) || isNested(b)) return JSON.stringify(a) === JSON.stringify(b) ? a : undefined;
  const type = commonType(a.type, b.type);
  if (type === undefined) return undefined;
  const merged: RJSFSchema = { ...a, type, ...bounds(a, b) };
  if (a.default !== b.default) delete merged.default;
  if (a.description !== b.description) delete merged.description;
  const values = commonValues(a, b);
  if (values) merged.enum = values;
  return values?.length === 0 ? undefined : merged;
}

function isNested({ type, anyOf, oneOf, allOf }: RJSFSchema): boolean {
  return type === "object" || type === "array" || Array.isArray(type) || Boolean(anyOf ?? oneOf ?? allOf);
}

function commonType(a: RJSFSchema["type"], b: RJSFSchema["type"]): RJSFSchema["type"] {
  if (a === b) return a;
  const isNumber = [a, b].every((type) => type === "integer" || type === "number");
  return isNumber ? "integer" : undefined;
}

function bounds(a: RJSFSchema, b: RJSFSchema): RJSFSchema {
  const narrowed: Record<string, number> = {};
  for (const name of ["minimum", "exclusiveMinimum", "minLength"] as const) {
    if (a[name] !== undefined || b[name] !== undefined) {
      narrowed[name] = Math.max(a[name] ?? Number.NEGATIVE_INFINITY, b[name] ?? Number.NEGATIVE_INFINITY);
    }
  }
  for (const name of ["maximum", "exclusiveMaximum", "maxLength"] as const) {
    if (a[name] !== undefined || b[name] !== undefined) {
      narrowed[name] = Math.min(a[name] ?? Number.POSITIVE_INFINITY, b[name] ?? Number.POSITIVE_INFINITY);
    }
  }
  return narrowed;
}

/** Return the values that both lists have. A field without a list takes those within its bounds. */
function commonValues(a: RJSFSchema, b: RJSFSchema): RJSFSchema["enum"] {
  const lists = [a.enum, b.enum].filter((list) => list !== undefined) as NonNullable<RJSFSchema["enum"]>[];
  if (lists.length === 0) return undefined;
  const { minimum, maximum } = bounds(a, b);
  return lists
    .reduce((some, others) => some.filter((value) => others.includes(value)))
    .filter((value) => typeof value !== "number" || (value >= (minimum ?? value) && value <= (maximum ?? value)));
}

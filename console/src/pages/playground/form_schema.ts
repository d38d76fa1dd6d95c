/** A model's published schema, made ready for a form: what may be null is simply optional, names read as words. */
import type { RJSFSchema, UiSchema } from "@rjsf/utils";
import { resolve } from "./form_validator";

const LONG = 300;
const DEEP = 4;

export interface FormPlan {
  schema: RJSFSchema;
  ui: UiSchema;
}

export function planForm(published: Record<string, unknown>): FormPlan {
  const root = published as RJSFSchema;
  const schema = simplify(root, root, 0);
  const names = Object.keys(schema.properties ?? {});
  const required = schema.required ?? [];
  const rank = (name: string) => {
    if (required.includes(name)) return 0;
    if (name === "prompt") return 1;
    return takesFiles(schema.properties?.[name] as RJSFSchema) ? 2 : 3;
  };
  const order = names.toSorted((a, b) => rank(a) - rank(b));
  const ui: UiSchema = { "ui:order": order, "ui:title": "", "ui:description": "" };
  for (const name of names) ui[name] = uiOf(schema.properties?.[name] as RJSFSchema, required.includes(name));
  return { schema, ui };
}

function uiOf(field: RJSFSchema, isRequired: boolean): UiSchema {
  if (takesFiles(field)) return { "ui:field": "file" };
  if (isOpen(field)) return { "ui:field": "json" };
  if (field.type === "object" && field.properties) {
    const inner = Object.entries(field.properties).map(([name, each]) => [name, uiOf(each as RJSFSchema, false)]);
    return Object.fromEntries(inner);
  }
  const isLong = field.type === "string" && !field.enum && (isRequired || (field.maxLength ?? 0) >= LONG);
  return isLong && !field.format ? { "ui:widget": "textarea" } : {};
}

/** Schemas without a form, such as any object or value. They are edited as JSON. */
function isOpen(field: RJSFSchema): boolean {
  if (field.type === "object") return Object.keys(field.properties ?? {}).length === 0;
  if (field.type === "array") return !field.items || isOpen(field.items as RJSFSchema);
  return !field.type && !field.enum && field.const === undefined && !field.anyOf && !field.allOf;
}

function takesFiles(field: RJSFSchema): boolean {
  return isFileObject(field) || (field.type === "array" && isFileObject((field.items ?? {}) as RJSFSchema));
}

/** Where a file goes: the one shape of all models. */
export function isFileObject(field: RJSFSchema): boolean {
  return Boolean(field.properties && "file_token" in field.properties && "url" in field.properties);
}

/** Resolve references. A recursive schema ends at a depth that no one fills in. */
function simplify(given: RJSFSchema, root: RJSFSchema, depth: number): RJSFSchema {
  const { $defs: _, ...done } = withoutNull(resolve(given, root), root);
  if (depth > DEEP) return {};
  if (done.default === null) delete done.default;
  if (Array.isArray(done.enum)) done.enum = done.enum.filter((value) => value !== null);
  if (Array.isArray(done.type)) done.type = oneType(done.type);
  const inner = (each: unknown) => simplify(each as RJSFSchema, root, depth + 1);
  if (done.properties) {
    const fields = Object.entries(done.properties).map(([name, each]) => [
      name,
      { ...inner(each), title: words(name) },
    ]);
    done.properties = Object.fromEntries(fields);
  }
  if (done.items && !Array.isArray(done.items)) done.items = inner(done.items);
  if (done.anyOf) chooseAmong(done, done.anyOf.map(inner));
  if (done.enum && !done.type) done.type = typeof done.enum[0] as "string";
  if (done.allOf) done.allOf = done.allOf.map(inner);
  return done;
}

/** Alternatives: plain values become a choice of values, others are distinguished by type. */
function chooseAmong(field: RJSFSchema, forms: RJSFSchema[]): void {
  delete field.anyOf;
  if (forms.every((form) => form.const !== undefined)) field.enum = forms.map((form) => form.const ?? null);
  else field.anyOf = forms.map((form) => ({ ...form, title: form.enum ? "from a list" : typeName(form.type) }));
}

function typeName(type: RJSFSchema["type"]): string {
  const words: Record<string, string> = {
    object: "in parts",
    string: "text",
    integer: "number",
    number: "number",
    array: "list",
  };
  return words[String(type)] ?? String(type ?? "anything");
}

function oneType(types: NonNullable<RJSFSchema["type"]>[] | RJSFSchema["type"]): RJSFSchema["type"] {
  const real = [types].flat().filter((type) => type !== "null") as string[];
  return (real.length === 1 ? real[0] : real) as RJSFSchema["type"];
}

/** `X or null` is an optional X. */
function withoutNull(field: RJSFSchema, root: RJSFSchema): RJSFSchema {
  const forms = field.anyOf ?? field.oneOf;
  if (!forms) return field;
  const real = forms.map((form) => resolve(form as RJSFSchema, root)).filter((form) => form.type !== "null");
  const { anyOf: _, oneOf: __, ...beside } = field;
  if (real.length === 1) return withoutNull({ ...real[0], ...beside }, root);
  return { ...beside, anyOf: real };
}

const SHORT = /^(pbr|url|id|fps)$/;

/** `durationSeconds` and `model_seed` as `Duration seconds` and `Model seed`; what is short for words is in capitals. */
export function words(name: string): string {
  const text = name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replaceAll("_", " ")
    .toLowerCase()
    .split(" ")
    .map((word) => (SHORT.test(word) ? word.toUpperCase() : word))
    .join(" ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

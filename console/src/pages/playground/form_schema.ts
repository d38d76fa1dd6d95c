/** A model's published schema, made ready for a form: what may be null is simply optional, names read as words. */
import type { RJSFSchema, UiSchema } from "@rjsf/utils";
import { resolve } from "./form_validator";

const LONG = 300;

export interface FormPlan {
  schema: RJSFSchema;
  ui: UiSchema;
}

export function planForm(published: Record<string, unknown>): FormPlan {
  const root = published as RJSFSchema;
  const schema = simplify(root, root, 0);
  const names = Object.keys(schema.properties ?? {});
  const required = schema.required ?? [];
  const order = [
    ...names.filter((name) => required.includes(name)),
    ...names.filter((name) => !required.includes(name)),
  ];
  const ui: UiSchema = { "ui:order": order, "ui:title": "", "ui:description": "" };
  for (const name of names) ui[name] = uiOf(schema.properties?.[name] as RJSFSchema, required.includes(name));
  return { schema, ui };
}

function uiOf(field: RJSFSchema, isRequired: boolean): UiSchema {
  if (isPicture(field)) return { "ui:field": "picture" };
  if (field.type === "object" && field.properties) {
    const inner = Object.entries(field.properties).map(([name, each]) => [name, uiOf(each as RJSFSchema, false)]);
    return Object.fromEntries(inner);
  }
  const isLong = field.type === "string" && !field.enum && (isRequired || (field.maxLength ?? 0) >= LONG);
  return isLong && !field.format ? { "ui:widget": "textarea" } : {};
}

/** Where a picture goes: the one shape of all models. */
export function isPicture(field: RJSFSchema): boolean {
  return Boolean(field.properties && "file_token" in field.properties && "url" in field.properties);
}

/** References are replaced by what they lead to; they do not go in circles in what we publish, and `depth` sees to it. */
function simplify(given: RJSFSchema, root: RJSFSchema, depth: number): RJSFSchema {
  const field = withoutNull(resolve(given, root), root);
  if (depth > 8) return field;
  const { $defs: _, ...rest } = field;
  const done: RJSFSchema = { ...rest };
  if (done.default === null) delete done.default;
  if (Array.isArray(done.enum)) done.enum = done.enum.filter((value) => value !== null);
  if (done.properties) {
    const fields = Object.entries(done.properties).map(([name, each]) => {
      const inner = simplify(each as RJSFSchema, root, depth + 1);
      return [name, { ...inner, title: words(name) }];
    });
    done.properties = Object.fromEntries(fields);
  }
  if (done.items && !Array.isArray(done.items) && typeof done.items === "object") {
    done.items = simplify(done.items as RJSFSchema, root, depth + 1);
  }
  return done;
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

/** `durationSeconds` and `model_seed` as `Duration seconds` and `Model seed`. */
export function words(name: string): string {
  const text = name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replaceAll("_", " ")
    .toLowerCase();
  return text.charAt(0).toUpperCase() + text.slice(1);
}

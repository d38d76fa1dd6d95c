/**
 * Validator for react-jsonschema-form. It does not compile schemas, because the page's policy forbids eval.
 * Only the question "which of these forms is it?" is answered here; whether params are right, the server's dry run says.
 */
import type { RJSFSchema, ValidatorType } from "@rjsf/utils";

export function fits(schema: RJSFSchema | boolean, value: unknown, root: RJSFSchema): boolean {
  if (typeof schema === "boolean") return schema;
  const whole = resolve(schema, root);
  if (whole.const !== undefined && whole.const !== value) return false;
  if (whole.enum && !whole.enum.includes(value as never)) return false;
  if (whole.type && ![whole.type].flat().some((type) => isOfType(type, value))) return false;
  if (whole.anyOf && !whole.anyOf.some((form) => fits(form as RJSFSchema, value, root))) return false;
  if (whole.oneOf && !whole.oneOf.some((form) => fits(form as RJSFSchema, value, root))) return false;
  if (whole.allOf && !whole.allOf.every((form) => fits(form as RJSFSchema, value, root))) return false;
  if (value === null || typeof value !== "object" || Array.isArray(value)) return true;
  const fields = value as Record<string, unknown>;
  if (whole.required?.some((name) => fields[name] === undefined)) return false;
  return Object.entries(whole.properties ?? {}).every(
    ([name, form]) => fields[name] === undefined || fits(form as RJSFSchema, fields[name], root),
  );
}

/** Resolve a reference within the document. */
export function resolve(schema: RJSFSchema, root: RJSFSchema): RJSFSchema {
  if (!schema.$ref?.startsWith("#/")) return schema;
  const steps = schema.$ref.slice(2).split("/");
  const found = steps.reduce<unknown>((place, step) => (place as Record<string, unknown> | undefined)?.[step], root);
  const { $ref: _, ...beside } = schema;
  return { ...(found as RJSFSchema | undefined), ...beside };
}

function isOfType(type: string, value: unknown): boolean {
  if (type === "integer") return Number.isInteger(value);
  if (type === "array") return Array.isArray(value);
  if (type === "null") return value === null || value === undefined;
  if (type === "object") return typeof value === "object" && value !== null && !Array.isArray(value);
  return typeof value === type;
}

export const validator: ValidatorType = {
  validateFormData: () => ({ errors: [], errorSchema: {} }),
  isValid: (schema, value, root) => fits(schema, value, root),
  rawValidation: () => ({ errors: [] }),
};

export default validator;

/** The lines of a table out of a JSON Schema. */
type Schema = Record<string, unknown>;

export interface ParamRow {
  name: string;
  type: string;
  required: boolean;
  fallback: string | null;
  allowed: string;
  about: string;
}

export function rowsOf(schema: Schema, defaults: Record<string, unknown>): ParamRow[] {
  return walk(schema, schema, "", defaults);
}

function walk(root: Schema, schema: Schema, prefix: string, defaults: Record<string, unknown>): ParamRow[] {
  const properties = (schema.properties ?? {}) as Record<string, Schema>;
  const required = new Set((schema.required ?? []) as string[]);
  return Object.entries(properties).flatMap(([name, given]) => {
    const chosen = branches(root, given);
    const main = chosen[0] ?? {};
    const path = prefix + name;
    const fallback = defaults[name] ?? given.default ?? main.default;
    const row: ParamRow = {
      name: path,
      type: [...new Set(chosen.map(typeOf))].join(" or "),
      required: required.has(name),
      fallback: fallback === undefined || fallback === null ? null : written(fallback),
      allowed: [allowed(given), ...chosen.filter((branch) => branch !== given).map(allowed)].filter(Boolean).join("; "),
      about: String(given.description ?? main.description ?? ""),
    };
    const inner = chosen.find((branch) => branch.properties);
    const items = branches(root, (main.items ?? {}) as Schema).find((branch) => branch.properties);
    const depth = path.split(".").length;
    if (inner && depth < 3) return [row, ...walk(root, inner, `${path}.`, {})];
    if (items && depth < 3) return [row, ...walk(root, items, `${path}[].`, {})];
    return [row];
  });
}

/** Return the alternatives of a param without null, with references resolved. */
function branches(root: Schema, given: Schema): Schema[] {
  const reference = given.$ref as string | undefined;
  if (reference) {
    const target = reference
      .replace("#/", "")
      .split("/")
      .reduce<unknown>((at, step) => (at as Schema | undefined)?.[step], root);
    return branches(root, (target ?? {}) as Schema);
  }
  const several = (given.anyOf ?? given.oneOf) as Schema[] | undefined;
  if (!several) return given.type === "null" ? [] : [given];
  return several.flatMap((branch) => branches(root, branch));
}

function typeOf(schema: Schema): string {
  if (Array.isArray(schema.type)) return schema.type.filter((type) => type !== "null").join(" or ");
  return String(schema.type ?? (schema.properties ? "object" : "any"));
}

function allowed(schema: Schema): string {
  const parts: string[] = [];
  const choices = (schema.enum as unknown[] | undefined)?.filter((choice) => choice !== null);
  if (choices) parts.push(choices.map(written).join(", "));
  if (schema.const !== undefined) parts.push(written(schema.const));
  parts.push(range(schema.minimum ?? schema.exclusiveMinimum, schema.maximum ?? schema.exclusiveMaximum, ""));
  parts.push(range(schema.minLength, schema.maxLength, " characters"));
  parts.push(range(schema.minItems, schema.maxItems, " items"));
  if (schema.pattern) parts.push(`matches ${schema.pattern}`);
  return parts.filter(Boolean).join("; ");
}

function range(least: unknown, most: unknown, unit: string): string {
  if (least === undefined && most === undefined) return "";
  if (most === undefined) return least === 1 && unit ? "" : `at least ${written(least)}${unit}`;
  if (least === undefined) return `at most ${written(most)}${unit}`;
  return `${written(least)} to ${written(most)}${unit}`;
}

function written(value: unknown): string {
  if (typeof value === "number" && Math.abs(value) >= 10_000) return value.toLocaleString("en-US");
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Fields for the options of a vendor, drawn from the JSON Schema that the server publishes. */
import { Checkbox, Group, NumberInput, PasswordInput, Select, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import type { ErrorDetail, VendorType } from "../../../api/shapes";
import { capital } from "../../../parts/prose";
import { WORDS } from "../../../vocabulary";
import { isKept, type Options } from "./run_time";
import "./settings.css";

interface Schema {
  type?: string;
  title?: string;
  description?: string;
  default?: unknown;
  enum?: string[];
  const?: string;
  anyOf?: Schema[];
  $ref?: string;
  minimum?: number;
  exclusiveMinimum?: number;
  "x-presets"?: Record<string, string>;
}

interface Props {
  kind: VendorType;
  options: Options;
  /** Errors of the server, whose `loc` ends with the option. */
  details: ErrorDetail[];
  onChange: (options: Options) => void;
}

export function OptionFields({ kind, options, details, onChange }: Props) {
  const schema = kind.options as { properties?: Record<string, Schema>; required?: string[] };
  const names = Object.keys(schema.properties ?? {});
  const isFirst = (name: string) =>
    kind.secrets.includes(name) || name === "base_url" || (schema.required ?? []).includes(name);
  const field = (name: string) => (
    <OptionField
      key={name}
      name={name}
      schema={flatten(schema.properties?.[name] ?? {})}
      isSecret={kind.secrets.includes(name)}
      value={options[name]}
      error={details.find(({ loc }) => loc.endsWith(`.${name}`))?.message}
      onChange={(value) => onChange(withOption(options, name, value))}
    />
  );
  const first = names.filter(isFirst).toSorted((a, b) => rank(kind, a) - rank(kind, b));
  const rest = names.filter((name) => !isFirst(name));
  return (
    <Stack gap="sm">
      {first.map(field)}
      {rest.length > 0 && (
        <details className="more-options">
          <summary>{WORDS.moreOptions}</summary>
          <Stack gap="sm">{rest.map(field)}</Stack>
        </details>
      )}
    </Stack>
  );
}

/** A secret first, then the address. */
function rank(kind: VendorType, name: string): number {
  return kind.secrets.includes(name) ? 0 : name === "base_url" ? 1 : 2;
}

function withOption(options: Options, name: string, value: unknown): Options {
  const { [name]: _, ...others } = options;
  return value === undefined || value === "" ? others : { ...others, [name]: value };
}

/** `X or null` is X that may be left out. */
function flatten(schema: Schema): Schema {
  const one = schema.anyOf?.filter(({ type }) => type !== "null");
  return one?.length === 1 ? { ...schema, ...one[0] } : schema;
}

interface FieldProps {
  name: string;
  schema: Schema;
  isSecret: boolean;
  value: unknown;
  error: string | undefined;
  onChange: (value: unknown) => void;
}

function OptionField(props: FieldProps) {
  const { schema } = props;
  if (props.isSecret) return <SecretField {...props} />;
  if (schema.type === "boolean") return <YesNo {...props} />;
  if (schema.enum) return <Choice {...props} />;
  if (schema.type === "integer" || schema.type === "number") return <Amount {...props} />;
  if (schema.type === "object" || schema.type === "array" || schema.$ref) return <Document {...props} />;
  return <Line {...props} />;
}

function frame({ name, schema, error }: FieldProps) {
  return { label: labelOf(name), description: capital(schema.description ?? ""), error };
}

/** `api_key` as `API key`. */
function labelOf(name: string): string {
  const words = name.replaceAll("_", " ").replace(/\b(api|url|uri)\b/g, (word) => word.toUpperCase());
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function SecretField(props: FieldProps) {
  const kept = isKept(props.value);
  const [wasKept] = useState(kept);
  return (
    <PasswordInput
      {...frame(props)}
      description={wasKept ? "One is stored. Leave this empty to keep it, or enter another." : props.schema.description}
      placeholder={kept ? "kept" : ""}
      autoComplete="off"
      spellCheck={false}
      value={kept ? "" : String(props.value ?? "")}
      onChange={({ currentTarget }) => props.onChange(currentTarget.value || (wasKept ? { $secret: "kept" } : ""))}
      visibilityToggleButtonProps={{ "aria-label": `Show ${labelOf(props.name)}` }}
    />
  );
}

function Line(props: FieldProps) {
  const { schema, value, onChange } = props;
  const presets = Object.entries(schema["x-presets"] ?? {});
  return (
    <div>
      <TextInput
        {...frame(props)}
        placeholder={String(schema.default ?? "")}
        spellCheck={false}
        value={String(value ?? "")}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
      {presets.length > 0 && (
        <Group gap={6} mt={6}>
          <Text size="xs" c="dimmed" span>
            Usual ones:
          </Text>
          {presets.map(([title, address]) => (
            <button key={title} type="button" className="tag preset" onClick={() => onChange(address)}>
              {title}
            </button>
          ))}
        </Group>
      )}
    </div>
  );
}

function YesNo({ name, schema, value, error, onChange }: FieldProps) {
  return (
    <Checkbox
      label={labelOf(name)}
      description={schema.description}
      error={error}
      checked={Boolean(value ?? schema.default)}
      onChange={({ currentTarget: { checked } }) => onChange(checked === schema.default ? undefined : checked)}
    />
  );
}

function Choice(props: FieldProps) {
  return (
    <Select
      {...frame(props)}
      data={props.schema.enum ?? []}
      value={String(props.value ?? props.schema.default ?? "")}
      onChange={(chosen) => props.onChange(chosen === props.schema.default ? undefined : (chosen ?? undefined))}
    />
  );
}

function Amount(props: FieldProps) {
  const { schema, value, onChange } = props;
  return (
    <NumberInput
      {...frame(props)}
      placeholder={schema.default === undefined || schema.default === null ? "" : String(schema.default)}
      allowDecimal={schema.type === "number"}
      min={schema.minimum ?? 0}
      hideControls
      value={typeof value === "number" ? value : ""}
      onChange={(given) => onChange(given === "" ? undefined : Number(given))}
    />
  );
}

/** A table or a list, as JSON. What is not JSON yet is kept as it was typed, and the server says so. */
function Document(props: FieldProps) {
  const [text, setText] = useState(props.value === undefined ? "" : JSON.stringify(props.value, null, 2));
  const change = (typed: string) => {
    setText(typed);
    try {
      props.onChange(typed.trim() ? JSON.parse(typed) : undefined);
    } catch {
      props.onChange(typed);
    }
  };
  return (
    <Textarea
      {...frame(props)}
      autosize
      minRows={2}
      maxRows={12}
      spellCheck={false}
      placeholder="{ … } as JSON"
      value={text}
      onChange={(event) => change(event.currentTarget.value)}
    />
  );
}

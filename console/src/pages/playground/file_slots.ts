/** The params of a model that take files, read from its published schema. */
import type { RJSFSchema } from "@rjsf/utils";
import type { Model } from "../../api/shapes";
import { FILE_KINDS, type FileKind } from "../../parts/file_kinds";
import { isFileObject, planForm } from "./form_schema";

/** A file as a request gives it, by one source. */
export interface FileValue {
  url?: string;
  file_token?: string;
  job?: string;
  output?: number | string;
  role?: string;
  type?: string;
}

export interface FileSlot {
  name: string;
  kinds: FileKind[];
  isList: boolean;
  most: number;
  roles: string[];
  /** Endings of the files' names, such as `.glb`. */
  endings: string[];
  /** Such as "up to 20 MB, each side 20 to 6000 pixels". */
  limits: string;
}

/** Return the slot of a field of a form's schema, or null if it takes no files. */
export function slotOf(name: string, field: RJSFSchema): FileSlot | null {
  const isList = field.type === "array";
  const file = (isList ? field.items : field) as RJSFSchema | undefined;
  if (!file || !isFileObject(file)) return null;
  const inner = (file.properties ?? {}) as Record<string, RJSFSchema>;
  const types = ((inner.type?.enum ?? []) as unknown[]).map(String);
  const named = FILE_KINDS.filter((kind) => types.includes(kind));
  return {
    name,
    kinds: named.length ? named : ["image"],
    isList,
    most: isList ? (field.maxItems ?? 99) : 1,
    roles: ((inner.role?.enum ?? []) as unknown[]).map(String),
    endings: types.filter((type) => !FILE_KINDS.some((kind) => kind === type)).map((type) => `.${type}`),
    limits: limitsOf(`${inner.type?.description ?? ""} ${inner.url?.description ?? ""}`),
  };
}

/** The server's words on the limits. */
function limitsOf(text: string): string {
  const size = /at most (\d+ MB)/.exec(text)?.[1];
  const sides = /each side (\d+ to \d+ pixels)/.exec(text)?.[1];
  return [size && `up to ${size}`, sides && `sides of ${sides}`].filter(Boolean).join(", ");
}

const known = new WeakMap<object, FileSlot[]>();

export function slotsOf(model: Model): FileSlot[] {
  const before = known.get(model.params);
  if (before) return before;
  const fields = Object.entries(planForm(model.params).schema.properties ?? {});
  const slots = fields.flatMap(([name, field]) => slotOf(name, field as RJSFSchema) ?? []);
  known.set(model.params, slots);
  return slots;
}

/** Return the files that are given for a slot. */
export function valuesOf(slot: FileSlot, value: unknown): FileValue[] {
  if (Array.isArray(value)) return value as FileValue[];
  return typeof value === "object" && value !== null && (slot.isList || Object.keys(value).length) ? [value] : [];
}

/** Return the first role that no file has yet. */
export function freeRole(slot: FileSlot, values: FileValue[]): string | undefined {
  const taken = values.map((value) => value.role ?? slot.roles[0]);
  return slot.roles.find((role) => !taken.includes(role));
}

/** Return the value of the param with one more file. A file of an equal role, or the last of a full list, is replaced. */
export function withFile(slot: FileSlot, value: unknown, file: FileValue): unknown {
  if (!slot.isList) return file;
  const before = valuesOf(slot, value);
  const role = file.role ?? freeRole(slot, before);
  const others = before.filter((each) => !slot.roles.length || !role || (each.role ?? slot.roles[0]) !== role);
  return [...others.slice(0, slot.most - 1), { ...file, ...(role ? { role } : {}) }];
}

/** A model's params as a form, drawn from its published schema. */
import Form, { type IChangeEvent } from "@rjsf/core";
import type { ErrorSchema } from "@rjsf/utils";
import { useMemo } from "react";
import type { ErrorDetail, Model } from "../../api/shapes";
import { FileField } from "./file_field";
import { planForm } from "./form_schema";
import { Field, Fields, Item, Items } from "./form_templates";
import { validator } from "./form_validator";
import { BaseInput, Choice, LongText, YesNo } from "./form_widgets";
import { JsonField } from "./json_field";

export type Params = Record<string, unknown>;

const WIDGETS = {
  TextareaWidget: LongText,
  SelectWidget: Choice,
  CheckboxesWidget: Choice,
  CheckboxWidget: YesNo,
  RadioWidget: Choice,
};
const TEMPLATES = {
  FieldTemplate: Field,
  ObjectFieldTemplate: Fields,
  ArrayFieldTemplate: Items,
  ArrayFieldItemTemplate: Item,
  BaseInputTemplate: BaseInput,
};
const FIELDS = { file: FileField, json: JsonField };

interface Props {
  model: Model;
  params: Params;
  /** Errors of the server for some params. */
  details: ErrorDetail[];
  onChange: (params: Params) => void;
}

export function ParamsForm({ model, params, details, onChange }: Props) {
  const plan = useMemo(() => planForm(model.params), [model.params]);
  const errors = useMemo(() => toTree(details), [details]);
  return (
    <Form
      key={model.id}
      idPrefix="params"
      tagName="div"
      schema={plan.schema}
      uiSchema={plan.ui}
      formData={params}
      validator={validator}
      widgets={WIDGETS}
      templates={TEMPLATES}
      fields={FIELDS}
      extraErrors={errors}
      noValidate
      showErrorList={false}
      experimental_defaultFormStateBehavior={{ emptyObjectFields: "skipDefaults", allOf: "skipDefaults" }}
      onChange={(event: IChangeEvent) => onChange(withoutEmpty(event.formData as Params))}
    >
      <span />
    </Form>
  );
}

/** `input.0.params.file.url` as `{file: {url: {__errors: […]}}}`. */
function toTree(details: ErrorDetail[]): ErrorSchema {
  const tree: Record<string, unknown> = {};
  for (const { loc, message } of details) {
    if (!loc.startsWith("input.0.params.")) continue;
    let place = tree;
    for (const step of loc.split(".").slice(3)) {
      place[step] ??= {};
      place = place[step] as Record<string, unknown>;
    }
    place.__errors = [...((place.__errors as string[]) ?? []), message];
  }
  return tree as ErrorSchema;
}

/** Emptied fields are not sent. */
function withoutEmpty(params: Params): Params {
  const kept = Object.entries(params).filter(([, value]) => {
    if (value === undefined || value === null || value === "") return false;
    return !(
      typeof value === "object" &&
      !Array.isArray(value) &&
      Object.keys(withoutEmpty(value as Params)).length === 0
    );
  });
  return Object.fromEntries(kept);
}

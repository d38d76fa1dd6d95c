/** Form fields in Mantine. An unset field is empty and shows its default. */
import { MultiSelect, NumberInput, SegmentedControl, Select, Switch, Textarea, TextInput } from "@mantine/core";
import { type BaseInputTemplateProps, enumOptionsValueForIndex, type WidgetProps } from "@rjsf/utils";
import { formatCount } from "../../parts/numbers";
import { Prose } from "../../parts/prose";

function inputProps(props: WidgetProps) {
  return {
    id: props.id,
    label: props.label,
    description: props.schema.description ? <Prose text={props.schema.description} /> : undefined,
    error: props.rawErrors?.join(" "),
    required: props.required ?? false,
    disabled: props.disabled || props.readonly,
  };
}

function standard(schema: WidgetProps["schema"]): string | undefined {
  return schema.default === undefined ? undefined : `${JSON.stringify(schema.default).replaceAll('"', "")} by default`;
}

/** Text and numbers. */
export function BaseInput(props: BaseInputTemplateProps) {
  const isNumber = props.schema.type === "number" || props.schema.type === "integer";
  if (!isNumber) {
    return (
      <TextInput
        {...inputProps(props)}
        value={props.value ?? ""}
        placeholder={standard(props.schema)}
        onChange={(event) => props.onChange(event.currentTarget.value || undefined)}
      />
    );
  }
  const { minimum, maximum } = props.schema;
  const range =
    minimum !== undefined && maximum !== undefined ? `${formatCount(minimum)} to ${formatCount(maximum)}` : undefined;
  return (
    <NumberInput
      {...inputProps(props)}
      value={props.value ?? ""}
      placeholder={standard(props.schema) ?? range}
      min={minimum}
      max={maximum}
      clampBehavior="none"
      allowDecimal={props.schema.type === "number"}
      thousandSeparator=","
      onChange={(value) => props.onChange(value === "" ? undefined : value)}
    />
  );
}

/** Text over the limit is reported, not cut: a truncated prompt would also be charged. */
export function LongText(props: WidgetProps) {
  const most = props.schema.maxLength ?? Number.POSITIVE_INFINITY;
  const excess = [...String(props.value ?? "").trim()].length - most;
  const common = inputProps(props);
  return (
    <Textarea
      {...common}
      error={excess > 0 ? tooLong(excess, most) : common.error}
      data-shortcut="/"
      value={props.value ?? ""}
      autosize
      minRows={3}
      maxRows={12}
      onChange={(event) => props.onChange(event.currentTarget.value || undefined)}
    />
  );
}

function tooLong(excess: number, most: number): string {
  return `${formatCount(excess)} ${excess === 1 ? "character" : "characters"} too many; at most ${formatCount(most)} are taken.`;
}

/** One of a few: all in sight if they are short, else a list. */
export function Choice(props: WidgetProps) {
  const options = props.options.enumOptions ?? [];
  const data = options.map((option, index) => ({ value: String(index), label: option.label }));
  const at = (value: unknown) => options.findIndex((option) => option.value === value);
  const chosen = at(props.value ?? props.schema.default);
  const choose = (index: string | null) => props.onChange(enumOptionsValueForIndex(index ?? "", options));
  if (props.multiple) return <Several {...props} />;
  const letters = options.reduce((sum, option) => sum + option.label.length + 3, 0);
  if (letters > 34 || options.length > 5) {
    const select = {
      data,
      value: chosen < 0 ? null : String(chosen),
      onChange: choose,
      checkIconPosition: "right" as const,
    };
    return (
      <Select
        {...inputProps(props)}
        {...select}
        placeholder="model's default"
        clearable={!props.required && props.schema.default === undefined}
      />
    );
  }
  return (
    <Labelled {...inputProps(props)}>
      <SegmentedControl
        aria-label={props.label}
        size="xs"
        fullWidth
        data={data}
        value={chosen < 0 ? "" : String(chosen)}
        onChange={choose}
      />
    </Labelled>
  );
}

function Several(props: WidgetProps) {
  const options = props.options.enumOptions ?? [];
  const chosen = (props.value as unknown[] | undefined) ?? [];
  return (
    <MultiSelect
      {...inputProps(props)}
      data={options.map((option) => option.label)}
      value={options.filter((option) => chosen.includes(option.value)).map((option) => option.label)}
      onChange={(labels) => {
        const values = options.filter((option) => labels.includes(option.label)).map((option) => option.value);
        props.onChange(values.length ? values : undefined);
      }}
    />
  );
}

/** A switch where the default is known; else the choice of leaving it open. */
export function YesNo(props: WidgetProps) {
  const common = inputProps(props);
  if (typeof props.schema.default === "boolean") {
    return (
      <Switch
        {...common}
        mt={4}
        checked={props.value ?? props.schema.default}
        onChange={(event) => props.onChange(event.currentTarget.checked)}
      />
    );
  }
  return (
    <Labelled {...common}>
      <SegmentedControl
        aria-label={props.label}
        size="xs"
        fullWidth
        data={[
          { value: "", label: "auto" },
          { value: "true", label: "on" },
          { value: "false", label: "off" },
        ]}
        value={props.value === undefined ? "" : String(props.value)}
        onChange={(value) => props.onChange(value === "" ? undefined : value === "true")}
      />
    </Labelled>
  );
}

function Labelled(props: ReturnType<typeof inputProps> & { children: React.ReactNode }) {
  return (
    <div id={props.id} className="labelled">
      <div className="field-label">
        {props.label}
        {props.required && <span aria-hidden="true"> *</span>}
      </div>
      {props.description && <div className="field-about">{props.description}</div>}
      {props.children}
      {props.error && <div className="field-error">{props.error}</div>}
    </div>
  );
}

/** Fields of a key, for creating and editing. */
import { Checkbox, Group, MultiSelect, Select, TagsInput, TextInput } from "@mantine/core";
import type { Key } from "../../api/shapes";
import { WORDS } from "../../vocabulary";
import { type Limits, LimitsFields, NO_LIMITS } from "./limits_fields";
import { useServedModels } from "./questions";

export interface KeyWish {
  name: string;
  models: string[];
  endpoints: string[];
  /** Seconds from now; "never"; "keep": as it is; or a day. */
  expiry: string;
  /** Of all its requests. */
  tags: string[];
  limits: Limits;
  /** Null: as its account has it. */
  content_log: boolean | null;
}

export const NEW_KEY: KeyWish = {
  name: "",
  models: [],
  endpoints: [],
  expiry: "never",
  tags: [],
  limits: NO_LIMITS,
  content_log: null,
};

export function wishOf(key: Key): KeyWish {
  const { name, models, endpoints, tags, limits, content_log } = key;
  return { name, models, endpoints, expiry: "keep", tags, limits, content_log };
}

/** As the API takes it. */
export function bodyOf({ expiry, ...wish }: KeyWish): Record<string, unknown> {
  if (expiry === "keep") return wish;
  if (expiry === "never") return { ...wish, expires_at: null };
  return { ...wish, expires_in: Number(expiry) };
}

const DAY = 86_400;
const EXPIRIES = [
  { value: "never", label: "never" },
  { value: String(DAY), label: "in a day" },
  { value: String(7 * DAY), label: "in a week" },
  { value: String(30 * DAY), label: "in 30 days" },
  { value: String(90 * DAY), label: "in 90 days" },
  { value: String(365 * DAY), label: "in a year" },
];

const LOGS = [
  { value: "null", label: "as its account" },
  { value: "true", label: "on" },
  { value: "false", label: "off" },
];

const SCOPES = [
  { value: "generate", label: "generate", about: "create and follow jobs" },
  { value: "chat", label: "chat", about: "chat with models" },
  { value: "read", label: "read", about: "read only" },
];

interface Props {
  wish: KeyWish;
  onChange: (wish: KeyWish) => void;
  /** When the key that is changed ends now. */
  ends?: string | null;
}

export function KeyFields({ wish, onChange, ends }: Props) {
  const models = useServedModels();
  const keep = { value: "keep", label: ends ? `keep: ${new Date(ends).toLocaleDateString()}` : "keep: never" };
  const unknown = wish.models.filter((model) => !models.includes(model));
  return (
    <>
      <TextInput
        label={WORDS.name}
        description="Purpose of the key"
        placeholder="website"
        value={wish.name}
        onChange={(event) => onChange({ ...wish, name: event.currentTarget.value })}
      />
      <Checkbox.Group
        label={WORDS.endpoints}
        description="Empty: all endpoints"
        value={wish.endpoints}
        onChange={(endpoints) => onChange({ ...wish, endpoints })}
      >
        <Group mt="xs" gap="lg">
          {SCOPES.map(({ value, label, about }) => (
            <Checkbox key={value} value={value} label={label} description={about} />
          ))}
        </Group>
      </Checkbox.Group>
      <MultiSelect
        label={WORDS.models}
        description="Empty: all models"
        data={[...models, ...unknown]}
        searchable
        clearable
        clearButtonProps={{ "aria-label": "All models" }}
        value={wish.models}
        onChange={(chosen) => onChange({ ...wish, models: chosen })}
      />
      <Select
        label={WORDS.expires}
        data={ends === undefined ? EXPIRIES : [keep, ...EXPIRIES]}
        value={wish.expiry}
        onChange={(expiry) => onChange({ ...wish, expiry: expiry ?? "never" })}
      />
      <TagsInput
        label={WORDS.tags}
        description="Count for all its requests. Callers cannot remove them"
        placeholder={wish.tags.length ? "" : "team-search"}
        maxTags={8}
        acceptValueOnBlur
        clearable
        clearButtonProps={{ "aria-label": "No tags" }}
        value={wish.tags}
        onChange={(tags) => onChange({ ...wish, tags })}
      />
      <Select
        label={WORDS.contentLog}
        description="Whether prompts and answers are kept, redacted"
        data={LOGS}
        allowDeselect={false}
        value={String(wish.content_log)}
        onChange={(value) => onChange({ ...wish, content_log: value === "null" ? null : value === "true" })}
      />
      <LimitsFields limits={wish.limits} onChange={(limits) => onChange({ ...wish, limits })} />
    </>
  );
}

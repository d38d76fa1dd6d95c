import { Button, Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { useModels } from "../../api/queries";
import { useFilters } from "../../parts/address_filters";
import { SearchField } from "../../parts/search_field";
import { Icon } from "../../shell/icons";
import { WORDS } from "../../vocabulary";
import { STATES } from "./job_words";

export const FILTERS = ["q", "status", "model", "client_ref", "created_after", "created_before"] as const;

/** Filters of the list. All of them are in the URL. */
export function JobFilters() {
  const [search, change] = useFilters();
  const models = useModels();
  const [all, setAll] = useState(false);
  const given = Boolean(FILTERS.some((name) => search.get(name)) || search.get("batch"));
  const isMoreGiven = ["client_ref", "created_after", "created_before"].some((name) => search.get(name));
  const ids = (models.data ?? []).filter((model) => model.kind !== "chat").map((model) => model.id);
  const chosen = search.get("model");
  return (
    <search
      className="job-filters"
      aria-label="Filter jobs"
      data-given={given || undefined}
      data-all={all || isMoreGiven || undefined}
    >
      <SearchField
        className="job-search"
        label={WORDS.search}
        placeholder="Prompt, file name, id or ref"
        data-shortcut="/"
        leftSection={<Icon name="search" size={15} />}
        maxLength={200}
        value={search.get("q") ?? ""}
        onSettle={(value) => change({ q: value })}
      />
      <Select
        label={WORDS.status}
        placeholder={WORDS.any}
        data={[...STATES]}
        value={search.get("status")}
        onChange={(value) => change({ status: value })}
        clearable
        clearButtonProps={{ "aria-label": "Any status" }}
      />
      <Select
        label={WORDS.model}
        placeholder={WORDS.any}
        data={chosen && !ids.includes(chosen) ? [...ids, chosen] : ids}
        value={chosen}
        onChange={(value) => change({ model: value })}
        searchable
        clearable
        clearButtonProps={{ "aria-label": "Any model" }}
      />
      <SearchField
        className="job-filter"
        label={WORDS.clientRef}
        placeholder="order-17"
        value={search.get("client_ref") ?? ""}
        onSettle={(value) => change({ client_ref: value })}
      />
      <Moment name="created_after" label="Created after" search={search} change={change} />
      <Moment name="created_before" label="Created before" search={search} change={change} />
      <Button className="job-filters-more" variant="default" size="xs" onClick={() => setAll(true)}>
        More filters
      </Button>
      {given && (
        <Button
          variant="subtle"
          onClick={() => change(Object.fromEntries([...FILTERS, "batch"].map((name) => [name, null])))}
        >
          {WORDS.clear}
        </Button>
      )}
    </search>
  );
}

interface MomentProps {
  name: string;
  label: string;
  search: URLSearchParams;
  change: (changes: Record<string, string | null>) => void;
}

/** A time in the reader's zone, kept in the address as one of UTC. */
function Moment({ name, label, search, change }: MomentProps) {
  return (
    <TextInput
      className="job-filter"
      type="datetime-local"
      label={label}
      value={localOf(search.get(name))}
      onChange={(event) => {
        const { value } = event.currentTarget;
        change({ [name]: value ? new Date(value).toISOString() : null });
      }}
    />
  );
}

function localOf(time: string | null): string {
  const moment = time ? Date.parse(time) : Number.NaN;
  if (Number.isNaN(moment)) return "";
  const zone = new Date(moment).getTimezoneOffset() * 60_000;
  return new Date(moment - zone).toISOString().slice(0, 16);
}

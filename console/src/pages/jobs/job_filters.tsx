import { Button, Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { useFilters } from "../../parts/address_filters";
import { JobSearch, ModelFilter } from "../../parts/job_search";
import { SearchField } from "../../parts/search_field";
import { WORDS } from "../../vocabulary";
import { STATES } from "./job_words";

export const FILTERS = ["q", "status", "model", "client_ref", "created_after", "created_before"] as const;

/** Filters of the list. All of them are in the URL. */
export function JobFilters() {
  const [search, change] = useFilters();
  const [all, setAll] = useState(false);
  const given = Boolean(FILTERS.some((name) => search.get(name)) || search.get("batch"));
  const isMoreGiven = ["client_ref", "created_after", "created_before"].some((name) => search.get(name));
  return (
    <search
      className="job-filters"
      aria-label="Filter jobs"
      data-given={given || undefined}
      data-all={all || isMoreGiven || undefined}
    >
      <JobSearch className="job-search" />
      <Select
        label={WORDS.status}
        placeholder={WORDS.any}
        data={[...STATES]}
        value={search.get("status")}
        onChange={(value) => change({ status: value })}
        clearable
        clearButtonProps={{ "aria-label": "Any status" }}
      />
      <ModelFilter />
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

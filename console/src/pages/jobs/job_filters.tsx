import { Button, Select, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { fetchPage } from "../../api/queries";
import type { Pipeline } from "../../api/shapes";
import { useFilters } from "../../parts/address_filters";
import { JobSearch, ModelFilter } from "../../parts/job_search";
import { SearchField } from "../../parts/search_field";
import { WORDS } from "../../vocabulary";
import { nameOfPipeline } from "../pipelines/pipeline_words";
import { STATES } from "./job_words";

export const FILTERS = ["q", "status", "model", "client_ref", "pipeline", "created_after", "created_before"] as const;
const MORE = ["client_ref", "pipeline", "created_after", "created_before"];
const MOST = 50;

/** Filters of the list. All of them are in the URL. */
export function JobFilters() {
  const [search, change] = useFilters();
  const [all, setAll] = useState(false);
  const given = Boolean(FILTERS.some((name) => search.get(name)) || search.get("batch"));
  const isMoreGiven = MORE.some((name) => search.get(name));
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
      <PipelineFilter value={search.get("pipeline")} onChange={(value) => change({ pipeline: value })} />
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

interface PipelineFilterProps {
  value: string | null;
  onChange: (value: string | null) => void;
}

/** The newest pipelines by name, read when the list is opened. */
function PipelineFilter({ value, onChange }: PipelineFilterProps) {
  const [opened, setOpened] = useState(false);
  const pipelines = useQuery({
    queryKey: ["pipelines", "newest"],
    queryFn: ({ signal }) => fetchPage<Pipeline>("/api/v1/pipelines", { limit: MOST }, signal),
    enabled: opened || value !== null,
  });
  const known = (pipelines.data?.data ?? []).map((each) => ({ value: each.id, label: labelOf(each) }));
  const data = value && !known.some((each) => each.value === value) ? [...known, { value, label: value }] : known;
  return (
    <Select
      className="job-filter"
      label={WORDS.pipeline}
      placeholder={WORDS.any}
      data={data}
      nothingFoundMessage={pipelines.isLoading ? "Loading" : "No pipeline"}
      value={value}
      onChange={onChange}
      onDropdownOpen={() => setOpened(true)}
      comboboxProps={{ width: 300, position: "bottom-start" }}
      searchable
      clearable
      clearButtonProps={{ "aria-label": "Any pipeline" }}
    />
  );
}

function labelOf(pipeline: Pipeline): string {
  return `${nameOfPipeline(pipeline)} · ${new Date(pipeline.created_at).toLocaleString()}`;
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

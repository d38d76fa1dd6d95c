/** Select jobs of the list to compare. The address holds the selection, so it survives turning the page. */
import { Button, Checkbox, Text } from "@mantine/core";
import { Link, useSearchParams } from "wouter";
import type { Job } from "../../api/shapes";
import type { Column } from "../../parts/data_table";
import { Icon } from "../../shell/icons";
import { nameOf } from "../jobs/job_words";
import { compareAddress, FEWEST, idsOf, MOST } from "./address";
import "./selection.css";
import { WORDS } from "../../vocabulary";

export interface Selection {
  ids: string[];
  change: (ids: string[]) => void;
}

export function useSelection(): Selection {
  const [search, setSearch] = useSearchParams();
  const ids = idsOf(search.get("compare")).slice(0, MOST);
  const change = (next: string[]) =>
    setSearch(
      (before) => {
        const after = new URLSearchParams(before);
        if (next.length) after.set("compare", next.join(","));
        else after.delete("compare");
        return after;
      },
      { replace: true },
    );
  return { ids, change };
}

/** The column with the check boxes. */
export function selectColumn({ ids, change }: Selection): Column<Job> {
  const toggle = (id: string) => change(ids.includes(id) ? ids.filter((each) => each !== id) : [...ids, id]);
  const cell = (job: Job) => (
    <Checkbox
      size="xs"
      aria-label={`Select ${nameOf(job)}`}
      checked={ids.includes(job.id)}
      disabled={ids.length >= MOST && !ids.includes(job.id)}
      onChange={() => toggle(job.id)}
    />
  );
  return { title: "Select", cell, tight: true, bare: true };
}

/** What is selected, and the way to compare it. Nothing while nothing is selected. */
export function SelectionBar({ ids, change }: Selection) {
  if (ids.length === 0) return null;
  const words = [
    `${ids.length} of ${MOST} selected`,
    ids.length < FEWEST && "select one more to compare",
    ids.length === MOST && "the most that can be compared",
  ];
  return (
    <section className="card selection" aria-label="Selection">
      <Text size="sm" role="status">
        {words.filter(Boolean).join(", ")}
      </Text>
      <div className="deeds">
        <Button variant="subtle" size="compact-sm" color="gray" onClick={() => change([])}>
          Clear selection
        </Button>
        {ids.length >= FEWEST ? (
          <CompareLink ids={ids} label={WORDS.compare} />
        ) : (
          <Button size="compact-sm" disabled leftSection={<Icon name="compare" size={15} />}>
            {WORDS.compare}
          </Button>
        )}
      </div>
    </section>
  );
}

/** Compare a batch with one click, if it is not too large. */
export function CompareBatch({ jobs }: { jobs: Job[] }) {
  if (jobs.length < FEWEST || jobs.length > MOST) return null;
  return (
    <div className="compare-batch">
      <CompareLink ids={jobs.map((job) => job.id)} label={`Compare the ${jobs.length} jobs of this batch`} />
    </div>
  );
}

function CompareLink({ ids, label }: { ids: string[]; label: string }) {
  return (
    <Button
      component={Link}
      href={compareAddress(ids)}
      size="compact-sm"
      leftSection={<Icon name="compare" size={15} />}
    >
      {label}
    </Button>
  );
}

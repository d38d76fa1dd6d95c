import { Text } from "@mantine/core";
import { Link } from "wouter";
import { useIsLive } from "../../api/live";
import { useModels } from "../../api/queries";
import type { Job } from "../../api/shapes";
import { useFilters } from "../../parts/address_filters";
import { type Column, DataTable } from "../../parts/data_table";
import { EmptyState } from "../../parts/empty_state";
import { InputThumb, inputFile } from "../../parts/input_file";
import { Listing } from "../../parts/listing";
import { Money } from "../../parts/money";
import { Page } from "../../parts/page";
import { useListPage } from "../../parts/paging";
import { StateBadge } from "../../parts/state_badge";
import { Ago, formatSeconds, useNow } from "../../parts/time";
import { WORDS } from "../../vocabulary";
import { CompareBatch, SelectionBar, selectColumn, useSelection } from "../compare/selection";
import { FILTERS, JobFilters } from "./job_filters";
import { nameOf, secondsOf } from "./job_words";
import { Thumbnail } from "./thumbnail";

export function JobList() {
  const [search, change] = useFilters();
  const names = [...FILTERS, "batch"];
  const filters = Object.fromEntries(names.map((name) => [name, search.get(name)]));
  const live = useIsLive();
  const jobs = useListPage<Job>(["jobs"], "/api/v1/jobs", filters, live ? false : 5000);
  const isFiltered = names.some((name) => search.get(name));
  const text = search.get("q");
  const mayFollow = Boolean(jobs.data?.has_more);
  const selection = useSelection();
  const clear = () => change(Object.fromEntries(names.map((name) => [name, null])));
  return (
    <Page title={WORDS.jobs} about="Generations of this account, newest first." actions={<Live />}>
      <JobFilters />
      <Listing query={jobs} empty={isFiltered ? <NoneMatch {...{ text, mayFollow }} onClear={clear} /> : <NoneYet />}>
        {(rows, stale) => (
          <>
            {filters.batch && !jobs.data?.has_more && <CompareBatch jobs={rows} />}
            <JobTable jobs={rows} stale={stale} selection={selectColumn(selection)} />
          </>
        )}
      </Listing>
      <SelectionBar {...selection} />
    </Page>
  );
}

function Live() {
  const live = useIsLive();
  return (
    <span className="live" data-on={live || undefined} role="status">
      {live ? "Live" : "Connecting"}
    </span>
  );
}

function JobTable({ jobs, stale, selection }: { jobs: Job[]; stale: boolean; selection: Column<Job> }) {
  const models = useModels();
  const kinds = new Map(models.data?.map((model) => [model.id, model.kind]));
  const columns: Column<Job>[] = [
    selection,
    { title: WORDS.output, cell: (job) => <Thumbnail job={job} kind={kinds.get(job.model)} />, tight: true },
    { title: WORDS.job, cell: (job) => <Name job={job} /> },
    { title: WORDS.status, cell: (job) => <Standing job={job} />, tight: true },
    {
      title: WORDS.clientRef,
      cell: (job) => job.client_ref && <span className="mono">{job.client_ref}</span>,
      wide: true,
    },
    { title: WORDS.duration, cell: (job) => <Took job={job} />, end: true, wide: true },
    { title: WORDS.cost, cell: (job) => <JobCost job={job} />, end: true, wide: true },
    { title: WORDS.created, cell: (job) => <Ago time={job.created_at} />, end: true, wide: true },
  ];
  return <DataTable label={WORDS.jobs} columns={columns} rows={jobs} rowKey={(job) => job.id} stale={stale} />;
}

function Name({ job }: { job: Job }) {
  const name = nameOf(job);
  const file = inputFile(job)?.name;
  const under = [name !== job.model && job.model, job.vendor, file !== name && file];
  return (
    <div className="job-cell">
      <InputThumb job={job} />
      <div className="job-words">
        <Link className="job-name" href={`/jobs/${job.id}`} title={name}>
          {name}
        </Link>
        <span className="job-under">{under.filter(Boolean).join(" · ")}</span>
      </div>
    </div>
  );
}

function Standing({ job }: { job: Job }) {
  if (job.error) {
    return (
      <span title={job.error.message}>
        <StateBadge state={job.status} />
        <span className="job-under">{job.error.code}</span>
      </span>
    );
  }
  if (job.done) return <StateBadge state={job.status} />;
  const percent = Math.round(job.progress * 100);
  return (
    <>
      <StateBadge state={job.status} />
      <span className="job-under">
        {job.phase !== job.status && job.phase}
        {job.queue_position ? ` ${job.queue_position} ahead of it` : percent > 0 && ` ${percent} %`}
      </span>
      {percent > 0 && (
        <div className="job-progress">
          <div style={{ width: `${percent}%` }} />
        </div>
      )}
    </>
  );
}

function Took({ job }: { job: Job }) {
  const now = useNow(job.done ? null : 1000);
  return <span>{formatSeconds(secondsOf(job, now))}</span>;
}

function JobCost({ job }: { job: Job }) {
  if (job.cost.final !== null) return <Money amount={job.cost.final} />;
  if (job.cost.estimated === null)
    return (
      <Text span size="sm" c="dimmed">
        unknown
      </Text>
    );
  return (
    <Text span size="sm" c="dimmed">
      about <Money amount={job.cost.estimated} />
    </Text>
  );
}

function NoneYet() {
  const code = `curl ${location.origin}/model/v1/generation \\
  -H "Authorization: Bearer $PENSTOCK_API_KEY" -H "Content-Type: application/json" \\
  -d '{"model": "vendorb_video_31", "input": [{"params": {"prompt": "A paper boat in the rain"}}]}'`;
  return (
    <EmptyState
      title="No jobs yet"
      icon="jobs"
      code={code}
      action={{ label: WORDS.openThePlayground, to: "/playground" }}
    >
      A job is one generation: a video, an image or a 3D model. It continues when you close the page, and appears here
      automatically.
    </EmptyState>
  );
}

interface NoneMatchProps {
  text: string | null;
  /** Only a part of the jobs was searched. */
  mayFollow: boolean;
  onClear: () => void;
}

function NoneMatch({ text, mayFollow, onClear }: NoneMatchProps) {
  if (text) {
    return (
      <EmptyState
        title={`No job matches “${text}”`}
        icon="search"
        action={{ label: "Clear the search", onClick: onClear }}
      >
        {mayFollow
          ? "Only the newest jobs were searched. Choose Older to search the others."
          : "Words of the prompt, the name of the input file, the job id and the client ref are searched. Use fewer or shorter words, or clear the search."}
      </EmptyState>
    );
  }
  return (
    <EmptyState title="No matching jobs" icon="search" action={{ label: WORDS.clearFilters, onClick: onClear }}>
      Finished jobs are deleted when their retention ends. Change or clear the filters.
    </EmptyState>
  );
}

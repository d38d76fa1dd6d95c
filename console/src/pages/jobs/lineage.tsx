/** The jobs that led to a job, and those that were made from its outputs. */
import { Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { call } from "../../api/call";
import { useJobs } from "../../api/queries";
import type { Job, Lineage as LineageRecord } from "../../api/shapes";
import { Panel } from "../../parts/facts";
import { StateBadge } from "../../parts/state_badge";
import { WORDS } from "../../vocabulary";
import { words } from "../playground/form_schema";
import { nameOf } from "./job_words";
import { Thumbnail } from "./thumbnail";

const MOST = 12;

/** A job in one direction, at its shortest distance. */
interface Relative {
  id: string;
  distance: number;
  /** Where the file lies among the params of the one that took it. */
  param: string;
}

export function Lineage({ job }: { job: Job }) {
  const lineage = useQuery({
    queryKey: ["jobs", "lineage", job.id],
    queryFn: ({ signal }) => call<LineageRecord>(`/api/v1/jobs/${encodeURIComponent(job.id)}/lineage`, { signal }),
  });
  if (!lineage.data) return null;
  const { parents, children, jobs, truncated } = lineage.data;
  if (parents.length + children.length === 0) return null;
  const kept = new Set(jobs.map((each) => each.id));
  const up = nearest(parents.map(({ parent, distance, param }) => ({ id: parent, distance, param })));
  const down = nearest(children.map(({ child, distance, param }) => ({ id: child, distance, param })));
  return (
    <Panel title={WORDS.lineage}>
      <Relatives title="Made from" relatives={up} kept={kept} />
      <Relatives title="Used by" relatives={down} kept={kept} />
      {truncated && (
        <Text size="sm" c="dimmed">
          There are more.
        </Text>
      )}
    </Panel>
  );
}

function nearest(all: Relative[]): Relative[] {
  const sorted = all.toSorted((a, b) => a.distance - b.distance);
  return sorted.filter((each, index) => sorted.findIndex(({ id }) => id === each.id) === index);
}

function Relatives({ title, relatives, kept }: { title: string; relatives: Relative[]; kept: Set<string> }) {
  const shown = relatives.slice(0, MOST);
  const queries = useJobs(shown.filter(({ id }) => kept.has(id)).map(({ id }) => id));
  const jobs = new Map(queries.flatMap(({ data }) => (data ? [[data.id, data] as const] : [])));
  if (relatives.length === 0) return null;
  return (
    <section aria-label={title} className="lineage">
      <Title order={3}>{title}</Title>
      <ul>
        {shown.map((relative) => (
          <li key={relative.id}>
            <RelativeLine relative={relative} job={jobs.get(relative.id)} isKept={kept.has(relative.id)} />
          </li>
        ))}
      </ul>
      {relatives.length > MOST && (
        <Text size="xs" c="dimmed">
          and {relatives.length - MOST} more
        </Text>
      )}
    </section>
  );
}

interface LineProps {
  relative: Relative;
  job: Job | undefined;
  isKept: boolean;
}

function RelativeLine({ relative: { id, distance, param }, job, isKept }: LineProps) {
  const place = `as ${words(param.replace(/\.\d+$/, "")).toLowerCase()}`;
  const about = distance === 1 ? place : `${distance} steps away`;
  if (!isKept) {
    return (
      <Text size="sm" c="dimmed">
        a job that was deleted · {about}
      </Text>
    );
  }
  return (
    <Link className="lineage-job" href={`/jobs/${id}`} title={id}>
      {job && <Thumbnail job={job} kind={undefined} />}
      <span className="lineage-words">
        <span className="lineage-name">{job ? nameOf(job) : id}</span>
        <small>
          {job?.model} · {about}
        </small>
      </span>
      {job && job.status !== "succeeded" && <StateBadge state={job.status} />}
    </Link>
  );
}

/** The pipeline that a job is part of. */
export function pipelineFact(job: Job): [string, React.ReactNode] {
  return [
    WORDS.pipeline,
    job.pipeline_id && (
      <Link key="p" href={`/pipelines/${job.pipeline_id}`}>
        step {job.step}
      </Link>
    ),
  ];
}

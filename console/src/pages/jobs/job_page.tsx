/** One job, with everything that is known of it. */
import { Anchor, Stack } from "@mantine/core";
import { Link } from "wouter";
import { ApiError } from "../../api/errors";
import { useJob } from "../../api/queries";
import type { Job } from "../../api/shapes";
import { Identifier } from "../../parts/code_block";
import { DataTable } from "../../parts/data_table";
import { ErrorNotice } from "../../parts/error_notice";
import { BackTo, Facts, Panel } from "../../parts/facts";
import { InputFiles, paramsToShow } from "../../parts/input_file";
import { JsonView } from "../../parts/json_view";
import { formatMoney } from "../../parts/money";
import { Page, PageLoading } from "../../parts/page";
import { StateBadge } from "../../parts/state_badge";
import { Ago, formatSeconds, useNow } from "../../parts/time";
import { WarningList } from "../../parts/warning_list";
import { WORDS } from "../../vocabulary";
import { JobActions } from "./job_actions";
import { JobDeliveries } from "./job_deliveries";
import { JobOutputs } from "./job_outputs";
import { nameOf, secondsOf } from "./job_words";
import { Lineage, pipelineFact } from "./lineage";
import { Timeline } from "./timeline";

export default function JobPage({ id }: { id: string }) {
  const job = useJob(id);
  if (job.data) return <Whole job={job.data} />;
  if (!job.error) return <PageLoading />;
  return (
    <Page title={WORDS.job} back={<BackTo to="/jobs">{WORDS.jobs}</BackTo>}>
      <ErrorNotice error={job.error} onRetry={() => void job.refetch()} />
    </Page>
  );
}

function Whole({ job }: { job: Job }) {
  const name = nameOf(job);
  return (
    <Page
      back={<BackTo to="/jobs">{WORDS.jobs}</BackTo>}
      title={name.length > 80 ? `${name.slice(0, 79)}…` : name}
      about={<StateBadge state={job.status} />}
      actions={<JobActions job={job} />}
    >
      <div className="split">
        <div>
          {job.error && <Failure job={job} />}
          {!job.done && <Progress job={job} />}
          <Panel title={WORDS.outputs}>
            <JobOutputs job={job} />
          </Panel>
          <Panel title="Timeline">
            <Timeline job={job} />
          </Panel>
          {job.attempts.length > 0 && <Attempts job={job} />}
          <Panel title="Webhook deliveries">
            <JobDeliveries job={job} />
          </Panel>
        </div>
        <div>
          <Panel title={WORDS.details}>
            <JobFacts job={job} />
          </Panel>
          <Panel title={WORDS.cost}>
            <CostFacts job={job} />
          </Panel>
          {job.warnings.length > 0 && <Warnings job={job} />}
          <Panel title={WORDS.input}>
            <InputFiles job={job} />
            <JsonView value={paramsToShow(job)} label="Input params" maxHeight={320} />
          </Panel>
          <Lineage job={job} />
          {job.metadata && (
            <Panel title="Metadata">
              <Facts facts={Object.entries(job.metadata)} />
            </Panel>
          )}
        </div>
      </div>
    </Page>
  );
}

function Failure({ job }: { job: Job }) {
  const { error } = job;
  if (!error) return null;
  const facts: [string, React.ReactNode][] = [
    ["Stage", error.stage],
    ["Vendor error code", error.upstream?.code],
    ["Vendor message", error.upstream?.message],
    ["Vendor job id", error.upstream?.id && <span className="mono">{error.upstream.id}</span>],
    [WORDS.retry, error.retryable ? "A retry can help." : "A retry alone will not help."],
  ];
  return (
    <Stack gap="xs">
      <ErrorNotice error={new ApiError(0, error)} title={`It ${job.status}: ${error.code}`} />
      <div className="card panel">
        <Facts facts={facts} />
      </div>
    </Stack>
  );
}

function Progress({ job }: { job: Job }) {
  const percent = Math.round(job.progress * 100);
  const words = [
    job.phase,
    job.queue_position && `${job.queue_position} ahead of it`,
    `${percent} %`,
    job.eta_seconds && `about ${formatSeconds(Math.ceil(job.eta_seconds))} left`,
  ];
  return (
    <section className="card panel" aria-label={WORDS.progress}>
      <progress
        aria-label={WORDS.progress}
        value={job.progress}
        max={1}
        style={{ width: "100%", accentColor: "var(--mantine-color-flume-5)" }}
      />
      <div aria-live="polite">{words.filter(Boolean).join(" · ")}</div>
    </section>
  );
}

function JobFacts({ job }: { job: Job }) {
  const now = useNow(job.done ? null : 1000);
  const seconds = secondsOf(job, now);
  const waited = job.started_at ? (Date.parse(job.started_at) - Date.parse(job.created_at)) / 1000 : null;
  return (
    <Facts
      facts={[
        [WORDS.id, <Identifier key="id" id={job.id} />],
        [
          WORDS.model,
          <Anchor key="m" component={Link} href={`/models/${job.model}`} size="sm" underline="always">
            {job.model}
          </Anchor>,
        ],
        [WORDS.vendor, job.vendor],
        [WORDS.clientRef, job.client_ref && <span className="mono">{job.client_ref}</span>],
        [WORDS.seed, job.seed === null ? null : String(job.seed)],
        [WORDS.created, <Ago key="c" time={job.created_at} />],
        ["Waiting time", waited === null ? null : formatSeconds(waited)],
        [job.done ? "Duration" : "Running for", seconds === null ? null : formatSeconds(seconds)],
        ["Finished", job.finished_at && <Ago key="f" time={job.finished_at} />],
        [WORDS.keptUntil, job.expires_at && new Date(job.expires_at).toLocaleString()],
        [
          "Batch",
          job.batch_id && (
            <Anchor key="b" component={Link} href={`/jobs?batch=${job.batch_id}`} size="sm" underline="always">
              {job.batch_id}
            </Anchor>
          ),
        ],
        pipelineFact(job),
        [
          WORDS.request,
          <span key="r" className="mono">
            {job.request_id}
          </span>,
        ],
      ]}
    />
  );
}

function CostFacts({ job }: { job: Job }) {
  const { estimated, final } = job.cost;
  const charged =
    job.charged === null ? (job.done ? "unknown so far" : "when the job ends") : job.charged ? "yes" : "no";
  return (
    <Facts
      facts={[
        ["Estimated", estimated === null ? "no price is known" : formatMoney(estimated)],
        ["Final", final === null ? (job.done ? "unknown" : "when the job ends") : formatMoney(final)],
        ["Charged", charged],
      ]}
    />
  );
}

function Warnings({ job }: { job: Job }) {
  return (
    <Panel title={WORDS.warnings}>
      <WarningList job={job} />
    </Panel>
  );
}

function Attempts({ job }: { job: Job }) {
  return (
    <DataTable
      label={WORDS.attempts}
      rows={job.attempts}
      rowKey={(attempt) => String(attempt.number)}
      columns={[
        { title: "Attempt", cell: (attempt) => attempt.number, tight: true },
        { title: WORDS.vendor, cell: (attempt) => attempt.vendor },
        { title: "Outcome", cell: (attempt) => <StateBadge state={attempt.outcome ?? "pending"} /> },
        { title: "Vendor job id", cell: (attempt) => <span className="mono">{attempt.upstream_id}</span>, wide: true },
        { title: "Started", cell: (attempt) => <Ago time={attempt.started_at} />, end: true },
      ]}
    />
  );
}

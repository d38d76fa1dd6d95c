/** One pipeline: its graph, live, and what can be done with it. */
import { Anchor, Button, Group, Modal, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { call } from "../../api/call";
import { ApiError } from "../../api/errors";
import type { Job, Pipeline, PipelineStep } from "../../api/shapes";
import { Identifier } from "../../parts/code_block";
import { ConfirmButton } from "../../parts/confirm";
import { DataTable } from "../../parts/data_table";
import { ErrorNotice } from "../../parts/error_notice";
import { BackTo, Facts, Panel } from "../../parts/facts";
import { JsonView } from "../../parts/json_view";
import { formatMoney, Money } from "../../parts/money";
import { Page, PageLoading } from "../../parts/page";
import { Prose } from "../../parts/prose";
import { StateBadge } from "../../parts/state_badge";
import { Ago, formatSeconds, useNow } from "../../parts/time";
import { toast } from "../../parts/toasts";
import { Icon } from "../../shell/icons";
import { WORDS } from "../../vocabulary";
import { secondsOf } from "../jobs/job_words";
import { newKey } from "../playground/new_key";
import { Graph } from "./graph";
import { usePipeline } from "./live_pipeline";
import { PipelineCode } from "./pipeline_code";
import { nameOfPipeline, secondsOfPipeline } from "./pipeline_words";
import { addressOfTemplate } from "./template_list";

export default function PipelinePage({ id }: { id: string }) {
  const pipeline = usePipeline(id);
  if (pipeline.data) return <Whole pipeline={pipeline.data} />;
  if (!pipeline.error) return <PageLoading />;
  return (
    <Page title={WORDS.pipeline} back={<BackTo to="/pipelines">{WORDS.pipelines}</BackTo>}>
      <ErrorNotice error={pipeline.error} onRetry={() => void pipeline.refetch()} />
    </Page>
  );
}

function Whole({ pipeline }: { pipeline: Pipeline }) {
  const name = nameOfPipeline(pipeline);
  const [retried, setRetried] = useState<string | null>(null);
  return (
    <Page
      back={<BackTo to="/pipelines">{WORDS.pipelines}</BackTo>}
      title={name.length > 80 ? `${name.slice(0, 79)}…` : name}
      about={<StateBadge state={pipeline.status} />}
      actions={<Deeds pipeline={pipeline} onRetry={() => setRetried("")} />}
    >
      {pipeline.error && <Failure pipeline={pipeline} />}
      <Graph pipeline={pipeline} onRetry={setRetried} />
      <div className="split pipeline-below">
        <div>
          <StepTable pipeline={pipeline} />
        </div>
        <div>
          <Panel title={WORDS.details}>
            <PipelineFacts pipeline={pipeline} />
          </Panel>
          {Object.keys(pipeline.params).length > 0 && (
            <Panel title={WORDS.params}>
              <JsonView value={pipeline.params} label={WORDS.pipelineParams} maxHeight={260} />
            </Panel>
          )}
        </div>
      </div>
      {retried !== null && <Retry pipeline={pipeline} from={retried} onClose={() => setRetried(null)} />}
    </Page>
  );
}

function Deeds({ pipeline, onRetry }: { pipeline: Pipeline; onRetry: () => void }) {
  const client = useQueryClient();
  const [, navigate] = useLocation();
  const path = `/api/v1/pipelines/${pipeline.id}`;
  const cancel = async () => {
    client.setQueryData(["pipeline", pipeline.id], await call<Pipeline>(`${path}/cancel`, { method: "POST" }));
  };
  const remove = async () => {
    await call(path, { method: "DELETE" });
    toast("The pipeline was deleted.");
    navigate("/pipelines");
    client.removeQueries({ queryKey: ["pipeline", pipeline.id] });
    await client.invalidateQueries({ queryKey: ["pipelines"] });
  };
  return (
    <>
      <PipelineCode body={{ ...pipeline.given, params: pipeline.params }} />
      <Button
        component={Link}
        href={`/pipelines/new?from=${pipeline.id}`}
        variant="default"
        leftSection={<Icon name="settings" size={16} />}
      >
        Run again with changes
      </Button>
      {pipeline.done && pipeline.status !== "succeeded" && (
        <Button variant="default" leftSection={<Icon name="refresh" size={16} />} onClick={onRetry}>
          Retry what failed
        </Button>
      )}
      {pipeline.done ? (
        <ConfirmButton
          label={WORDS.delete}
          question="Delete this pipeline?"
          deed="Delete permanently"
          leftSection={<Icon name="trash" size={16} />}
          onConfirm={remove}
        >
          Its jobs are deleted permanently, with their outputs. Jobs of other pipelines that it used again stay.
        </ConfirmButton>
      ) : (
        <ConfirmButton
          label={WORDS.cancel}
          question="Cancel this pipeline?"
          deed="Cancel the pipeline"
          disabled={pipeline.status === "canceling"}
          leftSection={<Icon name="stop" size={16} />}
          onConfirm={cancel}
        >
          Waiting jobs end at once. Vendors are asked to stop the others. Results that are ready stay.
        </ConfirmButton>
      )}
    </>
  );
}

/** The failed step's own error, in words. */
function Failure({ pipeline }: { pipeline: Pipeline }) {
  const { error } = pipeline;
  if (!error) return null;
  const failed = pipeline.steps.filter((step) => error.steps.includes(step.name));
  const errors = failed.flatMap((step) => {
    const job = step.jobs?.find((each) => each.error && each.error.code !== "parent_failed");
    return job?.error ? [{ step, job, error: job.error }] : [];
  });
  if (errors.length === 0) return <ErrorNotice error={new Error(error.message)} title="It failed" />;
  return errors.map(({ step, job, error: cause }) => (
    <div key={step.name} className="pipeline-failure">
      <ErrorNotice error={new ApiError(0, cause)} title={`Step ${step.name} ${job.status}: ${cause.code}`} />
    </div>
  ));
}

function Retry({ pipeline, from, onClose }: { pipeline: Pipeline; from: string; onClose: () => void }) {
  const [, navigate] = useLocation();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const key = useRef(newKey());
  const send = async () => {
    setBusy(true);
    setError(null);
    try {
      const body = from ? { from } : {};
      const headers = { "idempotency-key": key.current };
      const made = await call<Pipeline>(`/api/v1/pipelines/${pipeline.id}/retry`, { body, headers });
      onClose();
      navigate(`/pipelines/${made.id}`);
    } catch (caught) {
      setError(caught);
      key.current = newKey();
    } finally {
      setBusy(false);
    }
  };
  return (
    <Modal
      opened
      onClose={onClose}
      title={from ? `Retry from ${from}?` : "Retry what failed?"}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <Text size="sm">
        {from
          ? `A new pipeline repeats ${from}, all steps that need it, and all that did not succeed.`
          : "A new pipeline repeats all steps that did not succeed."}{" "}
        It uses the other outputs again, without a charge.
      </Text>
      {error !== null && <ErrorNotice error={error} />}
      <Group justify="flex-end" gap="xs" mt="md">
        <Button variant="default" onClick={onClose}>
          {WORDS.cancel}
        </Button>
        <Button onClick={() => void send()} loading={busy}>
          {WORDS.retry}
        </Button>
      </Group>
    </Modal>
  );
}

interface Row {
  step: PipelineStep;
  job: Job;
  number: number;
}

function StepTable({ pipeline }: { pipeline: Pipeline }) {
  const rows = pipeline.steps.flatMap((step) =>
    (step.jobs ?? []).map((job, index): Row => ({ step, job, number: index + 1 })),
  );
  const now = useNow(pipeline.done ? null : 1000);
  return (
    <DataTable<Row>
      label="Jobs of the pipeline"
      rows={rows}
      rowKey={({ step, job }) => `${step.name} ${job.id}`}
      columns={[
        { title: WORDS.step, cell: (row) => row.step.name + (row.step.is_fan_out ? ` ${row.number}` : "") },
        { title: WORDS.job, cell: ({ step, job }) => <JobLink step={step} job={job} /> },
        { title: WORDS.status, cell: ({ job }) => <JobStanding job={job} />, tight: true },
        { title: WORDS.duration, cell: ({ job }) => formatSeconds(secondsOf(job, now)), end: true, wide: true },
        {
          title: WORDS.cost,
          cell: ({ job }) => <Money amount={job.cost.final ?? job.cost.estimated} />,
          end: true,
          wide: true,
        },
      ]}
    />
  );
}

function JobLink({ step, job }: { step: PipelineStep; job: Job }) {
  return (
    <>
      <Anchor component={Link} href={`/jobs/${job.id}`} size="sm" underline="always">
        {job.model}
      </Anchor>
      {step.needs.length > 0 && <span className="pipeline-under">from {step.needs.join(", ")}</span>}
      {job.error && (
        <span className="pipeline-under">
          <Prose text={job.error.message} />
        </span>
      )}
    </>
  );
}

function JobStanding({ job }: { job: Job }) {
  return (
    <>
      <StateBadge state={job.phase === "waiting" && !job.done ? "waiting" : job.status} />
      {job.status === "running" && <span className="pipeline-under">{Math.round(job.progress * 100)} %</span>}
    </>
  );
}

function PipelineFacts({ pipeline }: { pipeline: Pipeline }) {
  const now = useNow(pipeline.done ? null : 1000);
  const { cost, template, version } = pipeline;
  const link = (to: string, text: ReactNode) => (
    <Anchor component={Link} href={to} size="sm" underline="always">
      {text}
    </Anchor>
  );
  return (
    <Facts
      facts={[
        [WORDS.id, <Identifier key="id" id={pipeline.id} />],
        [WORDS.jobs, link(`/jobs?pipeline=${pipeline.id}`, "Open in the list of jobs")],
        [WORDS.template, template && link(addressOfTemplate(template, version), `${template} v${version}`)],
        ["Retry of", pipeline.retry_of && link(`/pipelines/${pipeline.retry_of}`, pipeline.retry_of)],
        [WORDS.clientRef, pipeline.client_ref && <span className="mono">{pipeline.client_ref}</span>],
        ["On error", pipeline.on_error === "stop" ? "stop the other steps" : "continue with the other steps"],
        [WORDS.created, <Ago key="c" time={pipeline.created_at} />],
        [pipeline.done ? WORDS.duration : "Running for", formatSeconds(secondsOfPipeline(pipeline, now))],
        ["Highest cost", cost.estimated === null ? "unknown" : formatMoney(cost.estimated)],
        ["Final cost", cost.final === null ? "when it ends" : formatMoney(cost.final)],
        [WORDS.keptUntil, pipeline.expires_at && new Date(pipeline.expires_at).toLocaleString()],
      ]}
    />
  );
}

/** A job that was begun here, from waiting to its result. */
import { ActionIcon, Anchor, Button, Group, Progress, Text, Tooltip } from "@mantine/core";
import { Link } from "wouter";
import { ApiError } from "../../api/errors";
import { useCancelJob, useJob } from "../../api/queries";
import type { Job } from "../../api/shapes";
import { ErrorNotice } from "../../parts/error_notice";
import { InputThumb } from "../../parts/input_file";
import { ModelView } from "../../parts/model_view";
import { Money } from "../../parts/money";
import { Prose } from "../../parts/prose";
import { OutputLine, SignedMedia } from "../../parts/signed_media";
import { StateBadge } from "../../parts/state_badge";
import { Ago, formatSeconds } from "../../parts/time";
import { toastError } from "../../parts/toasts";
import { Icon } from "../../shell/icons";
import { WORDS } from "../../vocabulary";
import { nameOf } from "../jobs/job_words";
import { ShareButton } from "../shares/share_button";
import { dropJob } from "./drafts";
import { EditButton } from "./edit_button";
import { words } from "./form_schema";
import { UseAsInput } from "./use_as_input";

export function JobCard({ id }: { id: string }) {
  const job = useJob(id);
  if (job.data) return <Card job={job.data} />;
  if (!job.error) return <div className="card job-card" aria-busy="true" style={{ minHeight: 90 }} />;
  return (
    <div className="card job-card">
      <ErrorNotice error={job.error} onRetry={() => void job.refetch()} />
      <Button size="compact-sm" variant="subtle" mt="xs" onClick={() => dropJob(id)}>
        Remove from this page
      </Button>
    </div>
  );
}

function Card({ job }: { job: Job }) {
  const cancel = useCancelJob();
  const stop = () => cancel.mutate(job.id, { onError: (error) => toastError(error) });
  return (
    <article className="card job-card" aria-label={`Job ${job.id}`} data-status={job.status}>
      <Group gap="sm" wrap="nowrap" className="job-card-head">
        <StateBadge state={job.status} />
        <InputThumb job={job} />
        <Text size="sm" truncate flex={1} title={nameOf(job)}>
          {nameOf(job)}
        </Text>
        <Text size="xs" c="dimmed" component="span" style={{ whiteSpace: "nowrap" }}>
          <Ago time={job.created_at} />
        </Text>
        <Anchor component={Link} href={`/jobs/${job.id}`} size="xs" underline="always">
          {WORDS.job}
        </Anchor>
        {job.done ? (
          <Tooltip label="Remove from this page">
            <ActionIcon
              variant="subtle"
              size="sm"
              color="gray"
              aria-label="Remove from this page"
              onClick={() => dropJob(job.id)}
            >
              <Icon name="close" size={14} />
            </ActionIcon>
          </Tooltip>
        ) : (
          <Button size="compact-xs" variant="default" onClick={stop} disabled={job.status === "canceling"}>
            {WORDS.cancel}
          </Button>
        )}
      </Group>
      {job.done ? <Ended job={job} /> : <Open job={job} />}
    </article>
  );
}

function Open({ job }: { job: Job }) {
  const percent = Math.round(job.progress * 100);
  const parts = [
    job.queue_position ? `${job.queue_position} ahead of it` : null,
    frames(job),
    job.eta_seconds ? `about ${formatSeconds(Math.ceil(job.eta_seconds))} left` : null,
  ];
  return (
    <div>
      <Progress.Root size={6} mt="sm" mb={6}>
        <Progress.Section
          value={Math.max(percent, 2)}
          animated={job.status === "running"}
          aria-label={WORDS.progress}
        />
      </Progress.Root>
      <Group justify="space-between">
        <Text size="sm" aria-live="polite">
          {words(job.phase)}
        </Text>
        <Text size="sm" c="dimmed">
          {[...parts, `${percent} %`].filter(Boolean).join(" · ")}
        </Text>
      </Group>
    </div>
  );
}

/** The built-in engine renders 24 frames a second and reports each. */
function frames(job: Job): string | null {
  const seconds = job.input.durationSeconds;
  if (job.vendor !== "embedded" || typeof seconds !== "number" || job.progress <= 0) return null;
  return `frame ${Math.round(job.progress * seconds * 24)} of ${seconds * 24}`;
}

function Ended({ job }: { job: Job }) {
  const primary = job.outputs.find((output) => output.role === "primary");
  const preview = job.outputs.find((output) => output.role === "preview" && output.kind === "image");
  const took =
    job.started_at && job.finished_at ? (Date.parse(job.finished_at) - Date.parse(job.started_at)) / 1000 : null;
  return (
    <div className="job-card-end">
      {job.error && <ErrorNotice error={new ApiError(0, job.error)} title={`It ${job.status}`} />}
      {primary?.kind === "model" && <ModelView output={primary} preview={preview} />}
      {primary && primary.kind !== "model" && <SignedMedia output={primary} />}
      <Group justify="space-between" mt={primary ? "sm" : 0}>
        <Group gap="sm">
          {primary && <OutputLine output={primary} />}
          {primary && <UseAsInput job={job} output={primary} />}
          <EditButton job={job} size="compact-sm" />
          <ShareButton job={job} size="compact-sm" />
        </Group>
        <Text size="sm" c="dimmed" component="span">
          {took !== null && `${formatSeconds(took)} · `}
          <Money amount={job.cost.final ?? (job.charged === false ? "0" : null)} />
        </Text>
      </Group>
      {job.warnings.length > 0 && (
        <details className="warnings">
          <summary>{job.warnings.length === 1 ? "1 warning" : `${job.warnings.length} warnings`}</summary>
          <ul>
            {job.warnings.map((warning) => (
              <li key={warning}>
                <Prose text={warning} />
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}

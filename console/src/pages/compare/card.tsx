/** One of the compared jobs: its result, or where it stands, and what it was made from. */
import { ActionIcon, Anchor, Progress, Text, Title, Tooltip, VisuallyHidden } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { ApiError } from "../../api/errors";
import type { Job } from "../../api/shapes";
import { ErrorNotice } from "../../parts/error_notice";
import { Facts } from "../../parts/facts";
import { InputThumb, inputFiles } from "../../parts/input_file";
import { formatMoney } from "../../parts/money";
import { DownloadButton, OutputFacts } from "../../parts/signed_media";
import { StateBadge } from "../../parts/state_badge";
import { Ago, formatSeconds, useNow } from "../../parts/time";
import { WarningList } from "../../parts/warning_list";
import { Icon } from "../../shell/icons";
import { WORDS } from "../../vocabulary";
import { secondsOf } from "../jobs/job_words";
import { words } from "../playground/form_schema";
import { type ComparedParam, ownWords, paramText, textOf } from "./differences";
import { Media, primaryOf, type Sharing } from "./media";

interface Props {
  id: string;
  query: UseQueryResult<Job>;
  /** Every job that is shown, this one too. */
  all: Job[];
  params: ComparedParam[];
  sharing: Sharing;
  onRemove: () => void;
}

export function CompareCard({ id, query, all, params, sharing, onRemove }: Props) {
  const { data: job, error } = query;
  if (error instanceof ApiError && (error.status === 404 || error.status === 410)) {
    return <Gone id={id} wasHere={error.status === 410} onRemove={onRemove} />;
  }
  if (!job) {
    return (
      <Frame label={`Job ${id}`} title={id} onRemove={onRemove}>
        {error ? (
          <ErrorNotice error={error} onRetry={() => void query.refetch()} />
        ) : (
          <Text size="sm" c="dimmed" role="status">
            Loading the job…
          </Text>
        )}
      </Frame>
    );
  }
  return (
    <Frame
      label={`Job ${id}`}
      status={job.status}
      title={
        <Anchor component={Link} href={`/jobs/${job.id}`} inherit c="inherit" underline="always">
          {job.model}
        </Anchor>
      }
      onRemove={onRemove}
    >
      <div className="compare-media">
        <Shown job={job} sharing={sharing} />
      </div>
      <div className="compare-about">
        <JobFacts job={job} all={all} />
        <Params job={job} all={all} params={params} />
        <Warnings job={job} />
      </div>
    </Frame>
  );
}

interface FrameProps {
  label: string;
  title: ReactNode;
  status?: string;
  onRemove: () => void;
  children: ReactNode;
}

export function Frame({ label, title, status, onRemove, children }: FrameProps) {
  return (
    <article className="card compare-card" aria-label={label} data-status={status}>
      <header className="compare-head">
        <Title order={2}>{title}</Title>
        {status && <StateBadge state={status} />}
        <Tooltip label="Remove from the comparison">
          <ActionIcon
            variant="subtle"
            size="sm"
            color="gray"
            aria-label="Remove from the comparison"
            onClick={onRemove}
          >
            <Icon name="close" size={14} />
          </ActionIcon>
        </Tooltip>
      </header>
      {children}
    </article>
  );
}

function Gone({ id, wasHere, onRemove }: { id: string; wasHere: boolean; onRemove: () => void }) {
  return (
    <Frame label={`Job ${id}`} title={wasHere ? "Job deleted" : "Job not found"} onRemove={onRemove}>
      <div className="compare-about">
        <Text size="sm">
          {wasHere
            ? "The job was deleted, or its retention ended. Its result cannot be shown any more."
            : "The id is mistyped, or the job belongs to another account."}
        </Text>
        <Text size="sm" c="dimmed" className="mono" mt="xs" style={{ overflowWrap: "anywhere" }}>
          {id}
        </Text>
      </div>
    </Frame>
  );
}

function Shown({ job, sharing }: { job: Job; sharing: Sharing }) {
  const output = primaryOf(job);
  if (!job.done) return <Standing job={job} />;
  if (job.error) return <ErrorNotice error={new ApiError(0, job.error)} title={`It ${job.status}`} />;
  if (!output) {
    return (
      <Text size="sm" c="dimmed">
        {job.status === "succeeded" ? "The job ended without outputs." : `The job was ${job.status}. It has no result.`}
      </Text>
    );
  }
  return (
    <>
      <Media key={output.id} job={job} output={output} sharing={sharing} />
      <div className="compare-download">
        <DownloadButton output={output} />
        <OutputFacts output={output} />
      </div>
    </>
  );
}

function Standing({ job }: { job: Job }) {
  const percent = Math.round(job.progress * 100);
  const parts = [
    words(job.phase),
    job.queue_position && `${job.queue_position} before it`,
    `${percent} %`,
    job.eta_seconds && `about ${formatSeconds(Math.ceil(job.eta_seconds))} left`,
  ];
  return (
    <div className="compare-standing">
      <Progress.Root size={6}>
        <Progress.Section
          value={Math.max(percent, 2)}
          animated={job.status === "running"}
          aria-label={WORDS.progress}
        />
      </Progress.Root>
      <Text size="sm" mt={6} aria-live="polite">
        {parts.filter(Boolean).join(" · ")}
      </Text>
      <Text size="sm" c="dimmed">
        The result appears here when it is ready.
      </Text>
    </div>
  );
}

function JobFacts({ job, all }: { job: Job; all: Job[] }) {
  const now = useNow(job.done ? null : 1000);
  const took = secondsOf(job, now);
  const isOther = (pick: (each: Job) => unknown) => all.some((each) => pick(each) !== pick(job));
  return (
    <Facts
      facts={[
        [WORDS.model, <Value key="m" text={job.model} differs={isOther((each) => each.model)} />],
        [WORDS.vendor, job.vendor && <Value key="v" text={job.vendor} differs={isOther((each) => each.vendor)} />],
        [
          WORDS.price,
          <Value
            key="p"
            text={priceOf(job)}
            differs={isOther((each) => Number(each.cost.final ?? each.cost.estimated))}
          />,
        ],
        [job.done ? "Time taken" : "Running for", took === null ? "not started" : formatSeconds(took)],
        [WORDS.created, <Ago key="c" time={job.created_at} />],
      ]}
    />
  );
}

function priceOf(job: Job): string {
  if (job.cost.final !== null) return formatMoney(job.cost.final);
  if (job.charged === false) return formatMoney(0);
  return job.cost.estimated === null ? "not known" : `about ${formatMoney(job.cost.estimated)}`;
}

function Params({ job, all, params }: { job: Job; all: Job[]; params: ComparedParam[] }) {
  if (params.length === 0) return null;
  const others = all.filter((each) => each.id !== job.id);
  return (
    <section aria-label={WORDS.params}>
      <Facts
        facts={params.map(({ name, differs }) => [
          words(name),
          <Param key={name} job={job} name={name} differs={differs} others={others} />,
        ])}
      />
    </section>
  );
}

interface ParamProps {
  job: Job;
  name: string;
  differs: boolean;
  others: Job[];
}

/** A text shows which of its words the others lack. */
function Param({ job, name, differs, others }: ParamProps) {
  const text = textOf(job, name);
  if (text === null) {
    return (
      <Text span inherit c="dimmed">
        not set
      </Text>
    );
  }
  if (inputFiles(job)[0]?.path.replace(/\.\d+$/, "") === name) {
    return (
      <span className="compare-file">
        <InputThumb job={job} />
        <Value text={text} differs={differs} />
      </span>
    );
  }
  const texts = others.flatMap((other) => paramText(other, name) ?? []);
  const isProse = differs && texts.length > 0 && text.includes(" ") && typeof job.input[name] === "string";
  if (!isProse) return <Value text={text} differs={differs} />;
  return (
    <span data-differs>
      {ownWords(text, texts).map((word, index) =>
        // biome-ignore lint/suspicious/noArrayIndexKey: words of one text never move
        word.isOwn ? <mark key={index}>{word.text}</mark> : word.text,
      )}
      <VisuallyHidden> (differs)</VisuallyHidden>
    </span>
  );
}

function Value({ text, differs }: { text: string; differs: boolean }) {
  if (!differs) return text;
  return (
    <span data-differs>
      <mark>{text}</mark>
      <VisuallyHidden> (differs)</VisuallyHidden>
    </span>
  );
}

function Warnings({ job }: { job: Job }) {
  if (job.warnings.length === 0) return null;
  return (
    <section aria-label={WORDS.warnings}>
      <Title order={3} mb={4}>
        {WORDS.warnings}
      </Title>
      <WarningList job={job} />
    </section>
  );
}

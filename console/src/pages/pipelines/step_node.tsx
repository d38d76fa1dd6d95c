/** A step in the graph: its state, how far it is, and what came out. */
import { Anchor, Button, Progress, Text, VisuallyHidden } from "@mantine/core";
import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import type { Job, Output, PipelineStep } from "../../api/shapes";
import { Prose } from "../../parts/prose";
import { localUrl, SignedMedia, useSteadyUrl } from "../../parts/signed_media";
import { StateBadge } from "../../parts/state_badge";
import { Icon } from "../../shell/icons";
import { WORDS } from "../../vocabulary";
import { primaryOf } from "../gallery/kinds";
import { OutputThumb, signOf } from "../jobs/thumbnail";
import { words } from "../playground/form_schema";
import { UseAsInput } from "../playground/use_as_input";
import { doneOf } from "./pipeline_words";

const ModelView = lazy(() => import("../../parts/model_view").then((module) => ({ default: module.ModelView })));
const MEDIA_HEIGHT = 152;
const MOST_THUMBS = 8;

interface Props {
  step: PipelineStep;
  /** The whole pipeline has ended. */
  isDone: boolean;
  onRetry: () => void;
}

export function StepNode({ step, isDone, onRetry }: Props) {
  const jobs = step.jobs ?? [];
  const failed = jobs.find((job) => job.error);
  const only = jobs.length === 1 ? jobs[0] : undefined;
  const output = only && primaryOf(only);
  const percent = Math.round(step.progress * 100);
  const isOpen = step.status === "running" || step.status === "queued" || step.status === "waiting";
  return (
    <article className="card step-node" aria-label={`Step ${step.name}`} data-status={step.status}>
      <header>
        <h3 title={step.name}>{step.name}</h3>
        <StateBadge state={step.status} />
      </header>
      <Text size="xs" c="dimmed" truncate className="mono" title={step.model}>
        {step.model}
      </Text>
      {step.needs.length > 0 && <VisuallyHidden>takes outputs of {step.needs.join(", ")}</VisuallyHidden>}
      <div className="step-media fit">
        <Result step={step} failed={failed} />
      </div>
      <Progress
        value={isOpen ? Math.max(percent, step.status === "running" ? 3 : 0) : 100}
        size={4}
        color={step.status === "failed" ? "red" : step.status === "succeeded" ? "flume" : isOpen ? "flume" : "gray"}
        animated={step.status === "running"}
        aria-label={`${WORDS.progress} of ${step.name}`}
      />
      <footer>
        {only ? (
          <Anchor component={Link} href={`/jobs/${only.id}`} size="xs" underline="always">
            {WORDS.job}
            <VisuallyHidden> of {step.name}</VisuallyHidden>
          </Anchor>
        ) : (
          <Text size="xs" c="dimmed">
            {doneOf(step)} of {step.job_ids.length} done
          </Text>
        )}
        {step.status === "running" && (
          <Text size="xs" c="dimmed" truncate>
            {phaseOf(jobs)} {percent} %
          </Text>
        )}
        <span className="step-deeds">
          {only && output && <UseAsInput job={only} output={output} isBare />}
          {isDone && (
            <Button size="compact-xs" variant="default" onClick={onRetry}>
              Retry from here<VisuallyHidden> ({step.name})</VisuallyHidden>
            </Button>
          )}
        </span>
      </footer>
    </article>
  );
}

function phaseOf(jobs: Job[]): string {
  const running = jobs.filter((job) => job.status === "running");
  return running.length === 1 && running[0] ? `${words(running[0].phase)} · ` : "";
}

function Result({ step, failed }: { step: PipelineStep; failed: Job | undefined }) {
  const jobs = step.jobs ?? [];
  if (step.is_fan_out) return <Strip jobs={jobs} count={step.job_ids.length} />;
  const [job] = jobs;
  const output = job && primaryOf(job);
  if (job && output) return <Shown job={job} output={output} />;
  if (failed?.error) {
    return (
      <Text size="xs" c="red" className="step-error">
        <Prose text={failed.error.message} />
      </Text>
    );
  }
  return (
    <div className="step-waiting">
      <Icon name={signOf(step.model)} size={26} />
      <Text size="xs" c="dimmed">
        {step.status === "waiting" ? `waits for ${step.needs.join(", ")}` : (job?.phase ?? step.status)}
      </Text>
    </div>
  );
}

function Shown({ job, output }: { job: Job; output: Output }) {
  const preview = job.outputs.find((each) => each.role === "preview" && each.kind === "image");
  if (output.kind === "video") return <Film output={output} preview={preview} />;
  if (output.kind === "image") return <OutputThumb outputs={job.outputs} output={output} />;
  if (output.kind === "model") return <Turnable job={job} output={output} />;
  return <SignedMedia output={output} maxHeight={MEDIA_HEIGHT} />;
}

/** A model by its picture, until somebody wants to turn it: several viewers at once are too much for small machines. */
function Turnable({ job, output }: { job: Job; output: Output }) {
  const [isTurning, setTurning] = useState(false);
  const preview = job.outputs.find((each) => each.role === "preview" && each.kind === "image");
  const still = <OutputThumb outputs={job.outputs} output={output} />;
  if (isTurning) {
    return (
      <Suspense fallback={still}>
        <ModelView output={output} preview={preview} height={MEDIA_HEIGHT} isSmall />
      </Suspense>
    );
  }
  return (
    <>
      {still}
      <Button className="step-turn" size="compact-xs" variant="default" onClick={() => setTurning(true)}>
        Turn the model
      </Button>
    </>
  );
}

/** A film plays without sound while it is in view, unless less motion is wanted. */
function Film({ output, preview }: { output: Output; preview: Output | undefined }) {
  const film = useRef<HTMLVideoElement>(null);
  const [isStill] = useState(() => matchMedia("(prefers-reduced-motion: reduce)").matches);
  const url = useSteadyUrl(output);
  useEffect(() => {
    const element = film.current;
    if (!element || isStill) return;
    const watch = new IntersectionObserver(([entry]) => {
      if (entry?.isIntersecting) element.play().catch(() => undefined);
      else element.pause();
    });
    watch.observe(element);
    return () => watch.disconnect();
  }, [isStill]);
  return (
    <video
      ref={film}
      src={url}
      poster={preview && localUrl(preview.url)}
      muted
      loop
      playsInline
      controls={isStill}
      preload="metadata"
      aria-label={WORDS.film}
    />
  );
}

/** The results of a fan-out, small. */
function Strip({ jobs, count }: { jobs: Job[]; count: number }) {
  const shown = jobs.slice(0, count > MOST_THUMBS ? MOST_THUMBS - 1 : MOST_THUMBS);
  return (
    <ul className="step-strip" aria-label={`${count} jobs`}>
      {shown.map((job, index) => {
        const output = primaryOf(job);
        return (
          <li key={job.id}>
            <Link
              className="fit"
              href={`/jobs/${job.id}`}
              aria-label={`${WORDS.job} ${index + 1}: ${job.status}`}
              data-status={job.status}
              title={job.error?.message ?? job.status}
            >
              {output ? (
                <OutputThumb outputs={job.outputs} output={output} />
              ) : (
                <Icon name={job.error ? "warning" : signOf(job.model)} size={16} />
              )}
            </Link>
          </li>
        );
      })}
      {count > shown.length && <li className="step-more fit">+{count - shown.length}</li>}
    </ul>
  );
}

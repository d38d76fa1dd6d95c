/** Making 3D models, videos and pictures: the params, their price, the button, and what came of it. */
import { Alert, Button, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useCallback, useRef } from "react";
import { call } from "../../api/call";
import { ApiError } from "../../api/errors";
import { rememberJob } from "../../api/live";
import type { DryRun, Job, Model } from "../../api/shapes";
import { EmptyState } from "../../parts/empty_state";
import { ErrorNotice } from "../../parts/error_notice";
import { kindWords } from "../../parts/file_kinds";
import { formatMoney } from "../../parts/money";
import { generationDialects } from "../../parts/samples/samples";
import { formatSeconds } from "../../parts/time";
import { WORDS } from "../../vocabulary";
import { signOf } from "../jobs/thumbnail";
import { useCtrlEnter } from "./ctrl_enter";
import { addJobs, changeDrafts, getDrafts, notify, useDrafts } from "./drafts";
import { bodyOf, isComplete, useDryRun } from "./dry_run";
import { slotsOf } from "./file_slots";
import { JobCard } from "./job_card";
import { newKey } from "./new_key";
import { type Params, ParamsForm } from "./params_form";
import { ShowDialects } from "./show_code";
import { fileNameOf } from "./uploads";

const NO_PARAMS: Params = {};
const DOUBLE_CLICK = 500;

export default function Generation({ model }: { model: Model }) {
  const drafts = useDrafts();
  const params = drafts.params[model.id] ?? NO_PARAMS;
  const dry = useDryRun(model, params);
  const start = useStart(model);
  const complete = isComplete(model, params);
  const change = useCallback(
    (next: Params) => {
      start.reset();
      const before = getDrafts().params[model.id] ?? NO_PARAMS;
      if (slotsOf(model).some(({ name }) => next[name] && next[name] !== before[name])) notify(model.id, null);
      changeDrafts(({ params }) => ({ params: { ...params, [model.id]: next } }));
    },
    [model, start.reset],
  );
  const error = start.error ?? (complete ? dry.error : null);
  const details = error instanceof ApiError ? error.details : [];
  const isSaidInForm = details.length > 0 && details.every((detail) => detail.loc.startsWith("input.0.params."));
  const submit = () => complete && start.begin(params);
  useCtrlEnter(submit);
  const jobs = drafts.jobs.filter((job) => job.model === model.id);
  return (
    <div className="bench">
      <section className="card bench-form" aria-label={WORDS.request}>
        {drafts.notices[model.id] && (
          <Alert
            className="notice"
            color="gate"
            mb="md"
            withCloseButton
            closeButtonLabel="Close"
            onClose={() => notify(model.id, null)}
          >
            {drafts.notices[model.id]}
          </Alert>
        )}
        <ParamsForm model={model} params={params} details={details} onChange={change} />
        <div className="bench-foot">
          {error === null && <Price model={model} params={params} dry={dry.data} complete={complete} />}
          {isSaidInForm && (
            <Text size="sm" c="red" role="status">
              {details.length === 1 ? "One param is not valid." : `${details.length} params are not valid.`}
            </Text>
          )}
          {error !== null && !isSaidInForm && <ErrorNotice error={error} />}
          <div className="deeds">
            <Button onClick={submit} disabled={!complete} loading={start.isPending}>
              Generate
            </Button>
            <ShowDialects
              samples={() => generationDialects(location.origin, model, params, fileNameOf)}
              note={JSON.stringify(params).includes("file_token") ? "Run it in the folder of the file." : undefined}
            />
            {Object.keys(params).length > 0 && (
              <Button variant="subtle" color="gray" onClick={() => change({})}>
                {WORDS.clear}
              </Button>
            )}
          </div>
        </div>
      </section>
      <section className="bench-results" aria-label={WORDS.results}>
        {jobs.map((job) => (
          <JobCard key={job.id} id={job.id} />
        ))}
        {jobs.length === 0 && <Nothing model={model} onExample={change} />}
      </section>
    </div>
  );
}

function useStart(model: Model) {
  const client = useQueryClient();
  const attempt = useRef({ params: {} as Params, key: "" });
  const begun = useRef<Params | null>(null);
  const start = useMutation({
    // A second click after a lost answer repeats the request instead of ordering twice.
    mutationFn: (params: Params) => {
      if (attempt.current.params !== params || !attempt.current.key) attempt.current = { params, key: newKey() };
      const headers = { "idempotency-key": attempt.current.key };
      return call<Job>("/model/v1/generation", { body: bodyOf(model, params), headers });
    },
    onSuccess: (job) => {
      attempt.current = { params: {}, key: "" };
      rememberJob(client, job);
      scrollTo(job.id);
      addJobs([{ id: job.id, model: model.id }]);
      void client.invalidateQueries({ queryKey: ["dry_run"] });
    },
    onSettled: (_job, _error, params) => {
      setTimeout(() => {
        if (begun.current === params) begun.current = null;
      }, DOUBLE_CLICK);
    },
  });
  /** A double-click is one order: `isPending` is not there before the second click, or is gone again. */
  const begin = (params: Params) => {
    if (begun.current === params) return;
    begun.current = params;
    start.mutate(params);
  };
  return { ...start, begin };
}

/** On a phone the results are below the form. */
function scrollTo(id: string): void {
  setTimeout(
    () => document.querySelector(`[aria-label="Job ${id}"]`)?.scrollIntoView({ block: "nearest", behavior: "smooth" }),
    100,
  );
}

function Price(props: { model: Model; params: Params; dry: DryRun | undefined; complete: boolean }) {
  const { model, params, dry, complete } = props;
  const wanted = (model.params.required as string[] | undefined) ?? [];
  if (!complete) {
    return (
      <Text size="sm" c="dimmed">
        Still needed: {wanted.filter((name) => params[name] === undefined).join(", ")}
      </Text>
    );
  }
  const cost = dry?.cost.estimated;
  const isTooMuch = Boolean(dry && dry.budget_left !== null && Number(cost) > Number(dry.budget_left));
  const parts = dry
    ? [
        cost === null ? "unknown price" : Number(cost) === 0 ? "free" : `at most ${formatMoney(cost)}`,
        dry.expected_seconds && `usually ${formatSeconds(dry.expected_seconds.p50)}`,
        dry.budget_left !== null && `${formatMoney(dry.budget_left)} of your budget left`,
      ]
    : ["…"];
  return (
    <Text size="sm" c={isTooMuch ? "red" : "dimmed"} aria-label={WORDS.price} role="status">
      {isTooMuch && "More than your budget allows: "}
      {parts.filter(Boolean).join(" · ")}
    </Text>
  );
}

function Nothing({ model, onExample }: { model: Model; onExample: (params: Params) => void }) {
  const given = (model.example.input as { params: Params }[] | undefined)?.[0]?.params ?? {};
  const files = slotsOf(model).filter(({ name }) => name in given);
  const isOfPicture = files.some(({ name }) => name === "file");
  const example = Object.fromEntries(
    Object.entries(given).filter(([name]) => files.every((slot) => slot.name !== name)),
  );
  const hasExample = !isOfPicture && Object.keys(example).length > 0;
  const kinds = [...new Set(files.flatMap((slot) => slot.kinds))];
  return (
    <EmptyState
      title={model.title}
      icon={signOf(model.kind)}
      action={hasExample ? { label: "Fill in an example", onClick: () => onExample(example) } : undefined}
    >
      {isOfPicture
        ? "Choose a picture of one object on a plain background, or use the sample picture, then rotate the 3D model."
        : `${kinds.length ? `Choose a ${kindWords(kinds)}: a file, a URL or an output of one of your jobs. ` : "Describe what you want. "}Results appear here. Several jobs can run at once, and they continue when you leave this page.`}
    </EmptyState>
  );
}

/** A new pipeline: its steps as JSON, its params as a form, and its price before it is sent. */
import { Button, Group, Select, Text, Textarea } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useRef, useState } from "react";
import { useLocation, useSearchParams } from "wouter";
import { call } from "../../api/call";
import { ApiError } from "../../api/errors";
import { useModels } from "../../api/queries";
import type { ErrorDetail, Model, Pipeline, PipelineDryRun, PipelineTemplate } from "../../api/shapes";
import { ErrorNotice } from "../../parts/error_notice";
import { BackTo, Panel } from "../../parts/facts";
import { Page, PageLoading } from "../../parts/page";
import { WORDS } from "../../vocabulary";
import { useCtrlEnter } from "../playground/ctrl_enter";
import { newKey } from "../playground/new_key";
import { ParamsForm } from "../playground/params_form";
import "../playground/playground.css";
import { type Draft, errorsByStep, keepDraft, keptDraft, paramsSchema, parse, textOf, usedParams } from "./draft";
import { type Example, examplesOf } from "./examples";
import { PipelineCode } from "./pipeline_code";
import { Plan, planWords } from "./plan";
import { SaveTemplate } from "./save_template";
import { useTemplates } from "./template_list";

/** Loads what the address names: an earlier pipeline, a template, or the last draft. */
export default function Editor() {
  const [search] = useSearchParams();
  const models = useModels();
  const [from, template, version] = [search.get("from"), search.get("template"), search.get("version")];
  const source = useQuery({
    queryKey: ["pipeline_source", from, template, version],
    queryFn: ({ signal }) => readSource(from, template, version, signal),
    staleTime: Number.POSITIVE_INFINITY,
  });
  const error = models.error ?? source.error;
  if (error) {
    return (
      <Page title={WORDS.newPipeline} back={<BackTo to="/pipelines">{WORDS.pipelines}</BackTo>}>
        <ErrorNotice error={error} />
      </Page>
    );
  }
  if (!models.data || source.data === undefined) return <PageLoading />;
  const examples = examplesOf(models.data);
  const first = source.data ?? keptDraft() ?? examples[0] ?? { text: textOf({ steps: [] }), params: {} };
  return (
    <Bench
      key={`${from} ${template} ${version}`}
      models={models.data}
      examples={examples}
      first={first}
      named={template}
    />
  );
}

async function readSource(
  from: string | null,
  template: string | null,
  version: string | null,
  signal: AbortSignal,
): Promise<Draft | null> {
  if (from) {
    const found = await call<Pipeline>(`/api/v1/pipelines/${encodeURIComponent(from)}`, { signal });
    return { text: textOf(found.given), params: found.params };
  }
  if (!template) return null;
  const path = `/api/v1/pipelines/templates/${encodeURIComponent(template)}`;
  return draftOf(await call<PipelineTemplate>(path, { query: { version }, signal }));
}

function draftOf({ steps, on_error, params }: PipelineTemplate): Draft {
  return { text: textOf({ on_error, steps }), params };
}

interface BenchProps {
  models: Model[];
  examples: Example[];
  first: Draft;
  /** Name of the template that was opened. */
  named: string | null;
}

function Bench({ models, examples, first, named }: BenchProps) {
  const [draft, setDraft] = useState(first);
  const [isSaving, setSaving] = useState(false);
  const change = (next: Draft) => {
    keepDraft(next);
    setDraft(next);
  };
  const parsed = useMemo(() => parse(draft.text), [draft.text]);
  const steps = "problem" in parsed ? [] : parsed.steps;
  const schema = useMemo(
    () => ("problem" in parsed ? { properties: {} } : paramsSchema(parsed.steps, models)),
    [parsed, models],
  );
  const params = usedParams(schema, draft.params);
  const body = "problem" in parsed ? null : { ...parsed.body, params };
  const dry = usePlan(steps.length > 0 ? body : null);
  const start = useStart();
  const error = start.error ?? (body && dry.error) ?? null;
  const details = detailsOf(error);
  const byStep = errorsByStep(details, steps);
  const isAtStep = [...byStep.keys()].some((key) => key !== null);
  const isReady = body !== null && steps.length > 0 && !dry.error;
  const submit = () => void (isReady && start.begin(body));
  useCtrlEnter(submit);
  return (
    <Page
      title={WORDS.newPipeline}
      back={<BackTo to="/pipelines">{WORDS.pipelines}</BackTo>}
      actions={<Picker examples={examples} onPick={change} />}
    >
      <div className="editor">
        <div>
          <Textarea
            label={WORDS.steps}
            description="Each step is a generation. {&quot;step&quot;: …} takes an output of another step, {&quot;param&quot;: …} a param of the pipeline."
            classNames={{ input: "mono editor-text" }}
            autosize
            minRows={14}
            maxRows={34}
            spellCheck={false}
            error={"problem" in parsed ? parsed.problem : undefined}
            value={draft.text}
            onChange={(event) => change({ ...draft, text: event.currentTarget.value })}
          />
        </div>
        <div>
          {Object.keys(schema.properties ?? {}).length > 0 && (
            <Panel title={WORDS.pipelineParams}>
              <ParamsForm
                model={formModel(schema)}
                params={params}
                details={details.flatMap(asFormError)}
                onChange={(next) => change({ ...draft, params: next })}
              />
            </Panel>
          )}
          <Panel title="Plan">
            <Plan steps={steps} dry={error ? undefined : dry.data} errors={byStep} />
            {error !== null && !isAtStep && <ErrorNotice error={error} />}
            <Text size="sm" c={error ? "red" : "dimmed"} role="status" aria-label={WORDS.price} mt="sm">
              {error ? (isAtStep ? "Change the steps that are marked." : "") : planWords(body ? dry.data : undefined)}
            </Text>
            <Group gap="xs" mt="sm">
              <Button onClick={submit} disabled={!isReady} loading={start.isPending}>
                Run the pipeline
              </Button>
              <Button variant="default" disabled={!body} onClick={() => setSaving(true)}>
                {WORDS.saveAsTemplate}
              </Button>
              {body && <PipelineCode body={body} />}
            </Group>
          </Panel>
        </div>
      </div>
      {isSaving && body && (
        <SaveTemplate body={body} params={params} name={named ?? ""} onClose={() => setSaving(false)} />
      )}
    </Page>
  );
}

function formModel(schema: object): Model {
  return { id: `pipeline ${Object.keys(schema)}`, params: schema as Record<string, unknown> } as Model;
}

/** An error of the pipeline's own params as one of the form's. */
function asFormError(detail: ErrorDetail): ErrorDetail[] {
  return detail.loc.startsWith("params.") ? [{ ...detail, loc: `input.0.${detail.loc}` }] : [];
}

/** Errors with their places, also where the server names only one. */
function detailsOf(error: unknown): ErrorDetail[] {
  if (!(error instanceof ApiError)) return [];
  if (error.details.length > 0) return error.details;
  return error.param ? [{ loc: error.param, message: error.message, code: error.code } as ErrorDetail] : [];
}

/** Price and time of the whole, asked a moment after the last change. */
function usePlan(body: Record<string, unknown> | null) {
  const [settled] = useDebouncedValue(body ? JSON.stringify(body) : null, 450);
  return useQuery({
    queryKey: ["dry_run", "pipeline", settled],
    queryFn: ({ signal }) =>
      call<PipelineDryRun>("/api/v1/pipelines", { body: { ...JSON.parse(settled ?? "{}"), dry_run: true }, signal }),
    enabled: settled !== null,
    retry: false,
    staleTime: 15_000,
    gcTime: 60_000,
  });
}

/** Send once, however often the button is pressed. */
function useStart() {
  const [, navigate] = useLocation();
  const [isPending, setPending] = useState(false);
  const [failed, setFailed] = useState<{ text: string; error: unknown } | null>(null);
  const attempt = useRef({ text: "", key: "" });
  const isSending = useRef(false);
  const begin = async (body: Record<string, unknown>) => {
    if (isSending.current) return;
    const text = JSON.stringify(body);
    if (attempt.current.text !== text) attempt.current = { text, key: newKey() };
    isSending.current = true;
    setPending(true);
    setFailed(null);
    try {
      const headers = { "idempotency-key": attempt.current.key };
      const made = await call<Pipeline>("/api/v1/pipelines", { body, headers });
      attempt.current = { text: "", key: "" };
      navigate(`/pipelines/${made.id}`);
    } catch (error) {
      setFailed({ text, error });
    } finally {
      isSending.current = false;
      setPending(false);
    }
  };
  return { begin, isPending, error: failed?.error ?? null };
}

/** Examples and templates to begin with. */
function Picker({ examples, onPick }: { examples: Example[]; onPick: (draft: Draft) => void }) {
  const templates = useTemplates().data ?? [];
  const pick = (value: string | null) => {
    const [kind, name] = [value?.slice(0, 1), value?.slice(2)];
    const example = kind === "e" ? examples.find(({ title }) => title === name) : undefined;
    const template = kind === "t" ? templates.find((each) => each.name === name) : undefined;
    if (example) onPick({ text: example.text, params: example.params });
    if (template) onPick(draftOf(template));
  };
  return (
    <Select
      aria-label="Begin with"
      placeholder="Begin with an example or template"
      className="pipeline-picker"
      value={null}
      data={[
        { group: "Examples", items: examples.map(({ title }) => ({ value: `e ${title}`, label: title })) },
        { group: "Templates", items: templates.map(({ name }) => ({ value: `t ${name}`, label: name })) },
      ].filter(({ items }) => items.length > 0)}
      onChange={pick}
    />
  );
}

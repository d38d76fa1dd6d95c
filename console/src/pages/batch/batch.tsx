/** One prompt or picture over several models, as one action. */
import { Anchor, Button, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { ApiError } from "../../api/errors";
import type { ErrorDetail, Model } from "../../api/shapes";
import { EmptyState } from "../../parts/empty_state";
import { ErrorNotice } from "../../parts/error_notice";
import { formatMoney } from "../../parts/money";
import { Ago, formatSeconds } from "../../parts/time";
import { compareAddress, FEWEST } from "../compare/address";
import { useCtrlEnter } from "../playground/ctrl_enter";
import { changeDrafts, useDrafts } from "../playground/drafts";
import { isComplete } from "../playground/dry_run";
import { type Params, ParamsForm } from "../playground/params_form";
import "./batch.css";
import { WORDS } from "../../vocabulary";
import { ModelChoice } from "./model_choice";
import { type Batch as BatchOrder, errorOfRefusal, openBatch, sendBatch } from "./orders";
import { type Quote, totalOf, useQuotes } from "./quotes";
import { pickShared, sharedSchema, unsharedOf, unsharedWords } from "./shared_params";

interface Props {
  /** Models of the kind that the key may use. */
  models: Model[];
  chosen: Model[];
  onChoose: (ids: string[]) => void;
}

const NO_PARAMS: Params = {};

export default function Batch({ models, chosen, onChoose }: Props) {
  const place = `batch:${chosen[0]?.kind}`;
  const drafts = useDrafts();
  const all = drafts.params[place] ?? NO_PARAMS;
  const schema = useMemo(() => sharedSchema(chosen), [chosen]);
  const params = useMemo(() => pickShared(schema, all), [schema, all]);
  const form = useMemo(() => formModel(chosen, schema), [chosen, schema]);
  const quotes = useQuotes(chosen, params);
  const sending = useSending();
  const change = (next: Params) => {
    const others = Object.entries(all).filter(([name]) => !(name in (schema.properties ?? {})));
    sending.forget();
    changeDrafts((before) => ({ params: { ...before.params, [place]: { ...Object.fromEntries(others), ...next } } }));
  };
  const unshared = unsharedOf(chosen);
  const missing = (schema.required ?? []).filter((name) => params[name] === undefined);
  const isReady = chosen.length >= FEWEST && missing.length === 0 && chosen.every((each) => isComplete(each, params));
  const send = () => isReady && sending.send(Object.fromEntries(chosen.map((model) => [model.id, params])));
  useCtrlEnter(send);
  return (
    <div className="bench">
      <section className="card bench-form" aria-label={WORDS.request}>
        <div className="batch-choice">
          <ModelChoice models={models} chosen={chosen} quotes={quotes} onChange={onChoose} />
          <Text size="xs" c="dimmed">
            The form shows the params that all chosen models take. Others stay at each model's default.
          </Text>
        </div>
        <ParamsForm model={form} params={params} details={detailsOf(quotes)} onChange={change} />
        <div className="bench-foot">
          {unshared && (
            <Text size="sm" c="red" role="status">
              {unsharedWords(unshared)}. Clear its check box.
            </Text>
          )}
          <Together missing={missing} quotes={chosen.flatMap((model) => quotes.get(model.id) ?? [])} />
          <Problems quotes={quotes} refused={sending.refused} />
          <div className="deeds">
            <Button onClick={send} disabled={!isReady} loading={sending.isBusy}>
              {chosen.length < FEWEST ? "Choose another model" : `Generate with ${chosen.length} models`}
            </Button>
          </div>
        </div>
      </section>
      <section className="bench-results" aria-label={WORDS.results}>
        <Earlier batches={drafts.batches} models={models} />
      </section>
    </div>
  );
}

/** The shared params as a form draws them. Other models are another form. */
function formModel(chosen: Model[], schema: object): Model {
  const id = chosen.map((model) => model.id).join("+");
  return { ...(chosen[0] as Model), id, params: schema as Record<string, unknown> };
}

/** Send a batch once, however often the button is pressed, and open the comparison. */
function useSending() {
  const client = useQueryClient();
  const [, navigate] = useLocation();
  const [isBusy, setBusy] = useState(false);
  const [refused, setRefused] = useState<BatchOrder | null>(null);
  const isSending = useRef(false);
  const isHere = useRef(true);
  useEffect(() => {
    isHere.current = true;
    return () => {
      isHere.current = false;
    };
  }, []);
  const send = async (params: Record<string, Params>) => {
    if (isSending.current) return;
    isSending.current = true;
    setBusy(true);
    const batch = await sendBatch(client, openBatch(params).key);
    isSending.current = false;
    void client.invalidateQueries({ queryKey: ["dry_run"] });
    if (!isHere.current || !batch) return;
    setBusy(false);
    if (batch.isOpen) setRefused(batch);
    else navigate(addressOf(batch));
  };
  return {
    send: (params: Record<string, Params>) => void send(params),
    forget: () => setRefused(null),
    isBusy,
    refused,
  };
}

function addressOf(batch: BatchOrder): string {
  return compareAddress(Object.values(batch.jobs), Object.keys(batch.refusals), batch.key);
}

/** Price of all, and the time until the slowest is ready. */
function Together({ missing, quotes }: { missing: string[]; quotes: Quote[] }) {
  if (missing.length) {
    return (
      <Text size="sm" c="dimmed">
        Still needed: {missing.join(", ")}
      </Text>
    );
  }
  const total = totalOf(quotes);
  const isTooMuch = total !== null && total.left !== null && total.price > total.left;
  return (
    <Text size="sm" c={isTooMuch ? "red" : "dimmed"} role="status" aria-label="Price of all">
      {isTooMuch && "More than your budget allows: "}
      {total ? totalWords(total) : "…"}
    </Text>
  );
}

function totalWords({ price, unknown, seconds, left }: NonNullable<ReturnType<typeof totalOf>>): string {
  const sum = price === 0 ? (unknown ? null : "free") : `at most ${formatMoney(price)}`;
  const rest = unknown && `${unknown === 1 ? "one price" : `${unknown} prices`} not known`;
  const parts = [
    [sum, rest].filter(Boolean).join(" and "),
    seconds === null ? "time unknown" : `the slowest usually takes ${formatSeconds(seconds)}`,
    left !== null && `${formatMoney(left)} of your budget left`,
  ];
  return `Together ${parts.filter(Boolean).join(" · ")}`;
}

/** Refusals of the dry run before the click, and of all models after it. */
function Problems({ quotes, refused }: { quotes: Map<string, Quote>; refused: BatchOrder | null }) {
  if (refused) {
    return Object.entries(refused.refusals).map(([model, refusal]) => (
      <ErrorNotice key={model} title={`${model} did not start`} error={errorOfRefusal(refusal)} />
    ));
  }
  return [...quotes].map(
    ([model, { error }]) =>
      error && !isInForm(error) && <ErrorNotice key={model} title={`${model} would refuse this`} error={error} />,
  );
}

function isInForm(error: Error): boolean {
  const details = error instanceof ApiError ? error.details : [];
  return details.length > 0 && details.every((detail) => detail.loc.startsWith("input.0.params."));
}

/** Errors of any model at the params they speak of, each with the name of its model. */
function detailsOf(quotes: Map<string, Quote>): ErrorDetail[] {
  const all = [...quotes].flatMap(([model, { error }]) =>
    error instanceof ApiError
      ? error.details.map((detail) => ({ ...detail, message: `${model}: ${detail.message}` }))
      : [],
  );
  return all;
}

function Earlier({ batches, models }: { batches: BatchOrder[]; models: Model[] }) {
  const ids = models.map((model) => model.id);
  const started = batches.filter((batch) => Object.keys(batch.jobs).some((model) => ids.includes(model)));
  if (started.length === 0) {
    return (
      <EmptyState title="Results side by side" icon="compare">
        Choose two to four models and fill in the form. One click starts a job with each of them, and their results open
        side by side.
      </EmptyState>
    );
  }
  return (
    <section className="card batch-earlier" aria-label="Earlier comparisons">
      <h2>Earlier comparisons</h2>
      <ul>
        {started.map((batch) => (
          <li key={batch.key}>
            <Anchor component={Link} href={addressOf(batch)} size="sm" underline="always">
              {promptOf(batch)}
            </Anchor>
            <Text size="xs" c="dimmed">
              {Object.keys(batch.params).join(", ")} · <Ago time={batch.created} />
            </Text>
          </li>
        ))}
      </ul>
    </section>
  );
}

function promptOf({ params }: BatchOrder): string {
  const first = Object.values(params)[0] ?? {};
  const prompt = first.prompt ?? first.text;
  return typeof prompt === "string" && prompt ? prompt : "A picture";
}

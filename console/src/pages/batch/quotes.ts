/** Price and time of a request with each of several models, asked a moment after the last change. */
import { useDebouncedValue } from "@mantine/hooks";
import { useQueries } from "@tanstack/react-query";
import { call } from "../../api/call";
import type { DryRun, Model } from "../../api/shapes";
import { formatMoney } from "../../parts/money";
import { priceLine } from "../../parts/price_words";
import { formatSeconds } from "../../parts/time";
import { bodyOf, isComplete } from "../playground/dry_run";
import type { Params } from "../playground/params_form";

export interface Quote {
  dry: DryRun | undefined;
  error: Error | null;
}

/** Ask for nothing before the params are complete. */
export function useQuotes(models: Model[], params: Params): Map<string, Quote> {
  const [settled] = useDebouncedValue(params, 450);
  const answers = useQueries({
    queries: models.map((model) => ({
      queryKey: ["dry_run", model.id, settled],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        call<DryRun>("/model/v1/generation", { body: { ...bodyOf(model, settled), dry_run: true }, signal }),
      enabled: models.every((each) => isComplete(each, settled)),
      retry: false,
      staleTime: 15_000,
      gcTime: 60_000,
    })),
  });
  return new Map(models.map((model, index) => [model.id, quoteOf(answers[index])]));
}

function quoteOf(answer: { data: DryRun | undefined; error: Error | null } | undefined): Quote {
  return { dry: answer?.data, error: answer?.error ?? null };
}

/** Return the price of one model in words: of this request, once its dry run answered, else the model's list price. */
export function priceWords(model: Model, { dry, error }: Quote): string {
  if (error) return "refuses these params";
  if (!dry) return model.price === null ? "price not known" : priceLine(model.price);
  const { estimated } = dry.cost;
  if (estimated === null) return "price not known";
  return Number(estimated) === 0 ? "free" : `at most ${formatMoney(estimated)}`;
}

/** Return the usual time of one model in words: of this request's dry run, else of the model's recent jobs. */
export function timeWords(model: Model, { dry }: Quote): string {
  const usual = dry?.expected_seconds ?? model.typical_seconds;
  return usual ? `usually ${formatSeconds(usual.p50)}` : "time unknown";
}

export interface Total {
  /** Sum of the prices that are known. */
  price: number;
  /** Number of models without a known price. */
  unknown: number;
  /** Seconds until the slowest is ready, of those whose time is known. */
  seconds: number | null;
  /** What the key may still spend, in USD. Null: it has no budget. */
  left: number | null;
}

/** Return the sum of the quotes, or null until all are there. */
export function totalOf(quotes: Quote[]): Total | null {
  if (quotes.some(({ dry, error }) => !dry && !error)) return null;
  const dry = quotes.flatMap((quote) => (quote.error ? [] : (quote.dry ?? [])));
  if (dry.length === 0) return null;
  const prices = dry.map((each) => each.cost.estimated);
  const times = dry.flatMap((each) => each.expected_seconds?.p50 ?? []);
  const budgets = dry.flatMap((each) => (each.budget_left === null ? [] : Number(each.budget_left)));
  return {
    price: prices.reduce((sum, price) => sum + Number(price ?? 0), 0),
    unknown: prices.filter((price) => price === null).length,
    seconds: times.length ? Math.max(...times) : null,
    left: budgets.length ? Math.min(...budgets) : null,
  };
}

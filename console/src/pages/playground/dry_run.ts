/** What a generation would cost, asked a moment after the last change. */
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { call } from "../../api/call";
import type { DryRun, Model } from "../../api/shapes";
import type { Params } from "./params_form";

/** Return whether all required params are set. Otherwise the server would only report them missing. */
export function isComplete(model: Model, params: Params): boolean {
  const required = (model.params.required as string[] | undefined) ?? [];
  return required.every((name) => params[name] !== undefined);
}

export function useDryRun(model: Model, params: Params) {
  const [settled] = useDebouncedValue(params, 450);
  return useQuery({
    queryKey: ["dry_run", model.id, settled],
    queryFn: ({ signal }) =>
      call<DryRun>("/model/v1/generation", { body: { ...bodyOf(model, settled), dry_run: true }, signal }),
    enabled: isComplete(model, settled),
    placeholderData: keepPreviousData,
    retry: false,
    staleTime: 15_000,
    gcTime: 60_000,
  });
}

export function bodyOf(model: Model, params: Params) {
  return { model: model.id, input: [{ params }] };
}

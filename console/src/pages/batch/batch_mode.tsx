/** Switch the playground between one model and several. The address holds the others: `?with=b,c`. */
import { Button } from "@mantine/core";
import { useMemo } from "react";
import { useLocation, useSearchParams } from "wouter";
import type { Model } from "../../api/shapes";
import { Icon } from "../../shell/icons";
import { idsOf, MOST } from "../compare/address";
import { changeDrafts } from "../playground/drafts";
import { pickShared } from "./shared_params";

export interface BatchModels {
  isOn: boolean;
  /** Models of the kind; the first in the address is among them. */
  models: Model[];
  chosen: Model[];
  choose: (ids: string[]) => void;
  leave: () => void;
}

export function useBatchModels(all: Model[], first: Model | undefined): BatchModels {
  const [search] = useSearchParams();
  const [, navigate] = useLocation();
  const list = search.get("with");
  const models = useMemo(() => all.filter((each) => each.kind === first?.kind), [all, first?.kind]);
  const chosen = useMemo(() => {
    const ids = [first?.id, ...idsOf(list)];
    const known = ids.flatMap((id) => models.find((each) => each.id === id) ?? []);
    return [...new Set(known)].slice(0, MOST);
  }, [models, first?.id, list]);
  const choose = ([id, ...others]: string[]) =>
    navigate(`/playground/${encodeURIComponent(id ?? "")}?with=${others.map(encodeURIComponent).join(",")}`, {
      replace: true,
    });
  const leave = () => navigate(`/playground/${encodeURIComponent(first?.id ?? "")}`);
  const isOn = list !== null && first?.kind !== "chat" && models.length > 1;
  return { isOn, models, chosen, choose, leave };
}

/** A switch between one model and several. What was typed comes along both ways. */
export function BatchButton({ batch }: { batch: BatchModels }) {
  const [first] = batch.chosen;
  if (!first || first.kind === "chat" || batch.models.length < 2) return null;
  const enter = () => {
    const place = `batch:${first.kind}`;
    changeDrafts(({ params }) => ({ params: { ...params, [place]: { ...params[place], ...params[first.id] } } }));
    batch.choose([first.id]);
  };
  const leave = () => {
    const schema = { properties: first.params.properties as Record<string, never> };
    changeDrafts(({ params }) => {
      const own = pickShared(schema, params[`batch:${first.kind}`] ?? {});
      return { params: { ...params, [first.id]: { ...params[first.id], ...own } } };
    });
    batch.leave();
  };
  return (
    <Button
      variant="default"
      aria-pressed={batch.isOn}
      leftSection={<Icon name="compare" size={16} />}
      onClick={batch.isOn ? leave : enter}
    >
      {batch.isOn ? "Use one model" : "Compare models"}
    </Button>
  );
}

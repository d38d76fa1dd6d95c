/** Choose the models of a batch. Each shows its price and its usual time. */
import { Checkbox, Text } from "@mantine/core";
import type { Model } from "../../api/shapes";
import { FEWEST, MOST } from "../compare/address";
import { priceWords, type Quote, timeWords } from "./quotes";
import { unsharedOf, unsharedWords } from "./shared_params";

interface Props {
  models: Model[];
  chosen: Model[];
  quotes: Map<string, Quote>;
  onChange: (chosen: string[]) => void;
}

export function ModelChoice({ models, chosen, quotes, onChange }: Props) {
  const ids = chosen.map((model) => model.id);
  const toggle = (id: string) => onChange(ids.includes(id) ? ids.filter((each) => each !== id) : [...ids, id]);
  return (
    <fieldset className="batch-models">
      <legend>
        Models ({FEWEST} to {MOST})
      </legend>
      {models.map((model) => {
        const quote = ids.includes(model.id) ? quotes.get(model.id) : undefined;
        return (
          <Checkbox
            key={model.id}
            label={model.id}
            description={descriptionOf(model, chosen, quote)}
            checked={ids.includes(model.id)}
            disabled={!mayToggle(model, chosen)}
            onChange={() => toggle(model.id)}
          />
        );
      })}
    </fieldset>
  );
}

/** One model always stays, and only models that share the required params are added. */
function mayToggle(model: Model, chosen: Model[]): boolean {
  if (chosen.includes(model)) return chosen.length > 1;
  return chosen.length < MOST && unsharedOf([...chosen, model]) === null;
}

function descriptionOf(model: Model, chosen: Model[], quote: Quote | undefined) {
  const unshared = chosen.includes(model) ? null : unsharedOf([...chosen, model]);
  if (unshared) return unsharedWords(unshared);
  const known = quote ?? { dry: undefined, error: null };
  return <Words text={`${priceWords(model, known)} · ${timeWords(model, known)}`} isBad={known.error !== null} />;
}

function Words({ text, isBad }: { text: string; isBad: boolean }) {
  return (
    <Text span inherit c={isBad ? "red" : "inherit"}>
      {text}
    </Text>
  );
}

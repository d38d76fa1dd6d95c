import { SegmentedControl, Select } from "@mantine/core";
import type { Model } from "../../api/shapes";
import { firstOf, KINDS, kindOrder } from "../../parts/model_order";

/** First the kind, then the model; those that a newcomer sees first come first. */
export function ModelPicker({
  models,
  chosen,
  onChoose,
}: {
  models: Model[];
  chosen: Model;
  onChoose: (id: string) => void;
}) {
  const kinds = [...new Set(models.map((model) => model.kind))].sort((a, b) => kindOrder(a) - kindOrder(b));
  const those = models.filter((model) => model.kind === chosen.kind);
  return (
    <>
      {kinds.length > 1 && (
        <SegmentedControl
          aria-label="Kind of model"
          value={chosen.kind}
          data={kinds.map((kind) => ({ value: kind, label: KINDS[kind] ?? kind }))}
          onChange={(kind) => {
            const first = firstOf(models.filter((model) => model.kind === kind));
            if (first) onChoose(first.id);
          }}
        />
      )}
      <Select
        aria-label="Model"
        searchable={those.length > 8}
        className="model-picker"
        value={chosen.id}
        data={those.map((model) => ({ value: model.id, label: model.id }))}
        onChange={(id) => id && onChoose(id)}
        checkIconPosition="right"
      />
    </>
  );
}

import { SegmentedControl, Select, type SelectProps, Text } from "@mantine/core";
import type { Model } from "../../api/shapes";
import { firstOf, KINDS, kindOrder } from "../../parts/model_order";
import { WORDS } from "../../vocabulary";

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
        aria-label={WORDS.model}
        searchable={those.length > 8}
        className="model-picker"
        value={chosen.id}
        data={those.map((model) => ({ value: model.id, label: model.id }))}
        renderOption={renderOption(those)}
        onChange={(id) => id && onChoose(id)}
        checkIconPosition="right"
      />
    </>
  );
}

/** Show the title of a chat model below its id, as `smollm2-135m` alone says little. */
function renderOption(models: Model[]): SelectProps["renderOption"] {
  const titles = new Map(models.map((model) => [model.id, model.kind === "chat" ? model.title : model.id]));
  return ({ option }) => (
    <div>
      {option.label}
      {titles.get(option.value) !== option.value && (
        <Text size="xs" c="dimmed">
          {titles.get(option.value)}
        </Text>
      )}
    </div>
  );
}

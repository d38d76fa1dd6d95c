/** Filters that every list of jobs has: the search, and the model. Both are in the URL. */
import { Select } from "@mantine/core";
import { useModels } from "../api/queries";
import { Icon } from "../shell/icons";
import { WORDS } from "../vocabulary";
import { useFilters } from "./address_filters";
import { DIRECT_KINDS } from "./model_order";
import { SearchField } from "./search_field";

export function JobSearch({ className }: { className?: string }) {
  const [search, change] = useFilters();
  return (
    <SearchField
      {...(className ? { className } : {})}
      label={WORDS.search}
      placeholder="Prompt, file name, id or ref"
      data-shortcut="/"
      leftSection={<Icon name="search" size={15} />}
      maxLength={200}
      value={search.get("q") ?? ""}
      onSettle={(value) => change({ q: value })}
    />
  );
}

export function ModelFilter() {
  const [search, change] = useFilters();
  const models = useModels();
  const ids = (models.data ?? []).filter((model) => !DIRECT_KINDS.has(model.kind)).map((model) => model.id);
  const chosen = search.get("model");
  return (
    <Select
      label={WORDS.model}
      placeholder={WORDS.any}
      data={chosen && !ids.includes(chosen) ? [...ids, chosen] : ids}
      value={chosen}
      onChange={(value) => change({ model: value })}
      searchable
      clearable
      clearButtonProps={{ "aria-label": "Any model" }}
    />
  );
}

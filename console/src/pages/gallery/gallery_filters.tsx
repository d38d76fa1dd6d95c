import { SegmentedControl, Select } from "@mantine/core";
import { useModels } from "../../api/queries";
import { useFilters } from "../../parts/address_filters";
import { SearchField } from "../../parts/search_field";
import { Icon } from "../../shell/icons";
import { WORDS } from "../../vocabulary";
import { KINDS } from "./kinds";

/** Filters of the gallery. All of them are in the URL. */
export function GalleryFilters() {
  const [search, change] = useFilters();
  const models = useModels();
  const ids = (models.data ?? []).filter((model) => model.kind !== "chat").map((model) => model.id);
  const chosen = search.get("model");
  return (
    <search className="gallery-filters" aria-label="Filter outputs">
      <SearchField
        label={WORDS.search}
        placeholder="Prompt, file name, id or ref"
        data-shortcut="/"
        leftSection={<Icon name="search" size={15} />}
        maxLength={200}
        value={search.get("q") ?? ""}
        onSettle={(value) => change({ q: value })}
      />
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
      <SegmentedControl
        aria-label={WORDS.kind}
        data={KINDS}
        value={search.get("kind") ?? ""}
        onChange={(value) => change({ kind: value })}
      />
    </search>
  );
}

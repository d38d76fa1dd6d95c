import { SegmentedControl } from "@mantine/core";
import { useFilters } from "../../parts/address_filters";
import { JobSearch, ModelFilter } from "../../parts/job_search";
import { WORDS } from "../../vocabulary";
import { KINDS } from "./kinds";

/** Filters of the gallery. All of them are in the URL. */
export function GalleryFilters() {
  const [search, change] = useFilters();
  return (
    <search className="gallery-filters" aria-label="Filter outputs">
      <JobSearch />
      <ModelFilter />
      <SegmentedControl
        aria-label={WORDS.kind}
        data={KINDS}
        value={search.get("kind") ?? ""}
        onChange={(value) => change({ kind: value })}
      />
    </search>
  );
}

/** What was told, newest first; those that failed can be picked out. */
import { SegmentedControl, Text } from "@mantine/core";
import type { Delivery } from "../../api/shapes";
import { useFilters } from "../../parts/address_filters";
import { Deliveries } from "../../parts/deliveries";
import { Panel } from "../../parts/facts";
import { Listing } from "../../parts/listing";
import { useListPage } from "../../parts/paging";

const STATES = ["all", "pending", "delivered", "failed"];

export function DeliveryList({ path, toOne = false }: { path: string; toOne?: boolean }) {
  const [search, change] = useFilters();
  const status = STATES.find((state) => state === search.get("status")) ?? "all";
  const deliveries = useListPage<Delivery>(["webhooks", path], path, { status: status === "all" ? null : status });
  return (
    <Panel
      title="Deliveries"
      tools={
        <SegmentedControl
          aria-label="Which deliveries"
          size="xs"
          data={STATES}
          value={status}
          onChange={(value) => change({ status: value === "all" ? null : value })}
        />
      }
    >
      <Listing
        query={deliveries}
        empty={
          <Text size="sm" c="dimmed">
            {status === "all"
              ? "Nothing was told yet. A ping sends a first message; jobs send theirs as they end."
              : `No delivery is ${status}.`}
          </Text>
        }
      >
        {(rows) => <Deliveries deliveries={rows} toOne={toOne} />}
      </Listing>
    </Panel>
  );
}

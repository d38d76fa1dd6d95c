/** Deliveries, newest first, with a filter by status. */
import { SegmentedControl, Text } from "@mantine/core";
import type { Delivery } from "../../api/shapes";
import { useFilters } from "../../parts/address_filters";
import { Deliveries } from "../../parts/deliveries";
import { Panel } from "../../parts/facts";
import { Listing } from "../../parts/listing";
import { useListPage } from "../../parts/paging";
import { WORDS } from "../../vocabulary";

const STATES = ["all", "pending", "delivered", "failed"];

export function DeliveryList({ path, toOne = false }: { path: string; toOne?: boolean }) {
  const [search, change] = useFilters();
  const status = STATES.find((state) => state === search.get("status")) ?? "all";
  const deliveries = useListPage<Delivery>(["webhooks", path], path, { status: status === "all" ? null : status });
  return (
    <Panel
      title={WORDS.deliveries}
      tools={
        <SegmentedControl
          aria-label="Filter deliveries"
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
              ? "No deliveries yet. Send a ping, or wait until a job ends."
              : `No delivery is ${status}.`}
          </Text>
        }
      >
        {(rows) => <Deliveries deliveries={rows} toOne={toOne} />}
      </Listing>
    </Panel>
  );
}

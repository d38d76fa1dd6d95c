/** Models that a vendor serves, with the health of each route. */
import { Text } from "@mantine/core";
import type { Vendor } from "../../../api/shapes";
import { DataTable } from "../../../parts/data_table";
import { StateBadge } from "../../../parts/state_badge";
import { formatSeconds } from "../../../parts/time";
import { WORDS } from "../../../vocabulary";

const HEALTH_STATES: Record<string, string> = { open: "active", resting: "resting", probing: "probing" };

export function Routes({ vendor }: { vendor: Vendor }) {
  return (
    <div className="vendor-routes">
      <DataTable
        label={`Routes of ${vendor.name}`}
        rows={vendor.routes}
        rowKey={(route) => `${route.model} ${route.upstream_model} ${route.order}`}
        columns={[
          {
            title: WORDS.model,
            cell: (route) => (
              <>
                {route.model}
                {route.upstream_model !== route.model && (
                  <Text size="xs" c="dimmed" className="mono">
                    {route.upstream_model}
                  </Text>
                )}
              </>
            ),
          },
          { title: WORDS.order, cell: (route) => route.order, end: true, wide: true },
          { title: WORDS.weight, cell: (route) => route.weight, end: true, wide: true },
          {
            title: WORDS.health,
            cell: ({ health }) =>
              health ? (
                <span title={health.last_error?.message}>
                  <StateBadge state={HEALTH_STATES[health.state] ?? health.state} />
                  {health.failures > 0 && (
                    <Text size="xs" c="dimmed">
                      {health.failures} failures in a row
                      {health.rests_seconds > 0 && `, paused for ${formatSeconds(health.rests_seconds)}`}
                    </Text>
                  )}
                </span>
              ) : (
                <Text size="xs" c="dimmed">
                  not monitored
                </Text>
              ),
          },
        ]}
      />
    </div>
  );
}

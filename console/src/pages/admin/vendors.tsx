/** Vendors and their state. */
import { Text } from "@mantine/core";
import type { Vendor } from "../../api/shapes";
import { DataTable } from "../../parts/data_table";
import { EmptyState } from "../../parts/empty_state";
import { ErrorNotice } from "../../parts/error_notice";
import { Facts } from "../../parts/facts";
import { isHosted } from "../../parts/model_order";
import { Page, PageLoading } from "../../parts/page";
import { StateBadge } from "../../parts/state_badge";
import { Ago, formatSeconds } from "../../parts/time";
import { useAllVendors } from "./questions";
import "./vendors.css";
import { WORDS } from "../../vocabulary";

export default function Vendors() {
  const vendors = useAllVendors();
  if (vendors.error) {
    return (
      <Page title={WORDS.vendors}>
        <ErrorNotice error={vendors.error} onRetry={() => void vendors.refetch()} />
      </Page>
    );
  }
  if (!vendors.data) return <PageLoading />;
  return (
    <Page title={WORDS.vendors} about="Models, load and recent errors of each vendor.">
      <div className="vendors">
        {vendors.data.map((vendor) => (
          <VendorCard key={vendor.name} vendor={vendor} />
        ))}
      </div>
      {!vendors.data.some((vendor) => isHosted(vendor.type)) && <AddVendor />}
    </Page>
  );
}

const SETTINGS = `[vendors.tripo]
type = "tripo"
api_key = "env:TRIPO_API_KEY"

[[models]]
id = "vendora_image_to_model"
vendor = "tripo"`;

function AddVendor() {
  return (
    <div style={{ marginTop: 18 }}>
      <EmptyState title="Add a hosted vendor" icon="vendors" code={SETTINGS}>
        Only the built-in engines and the simulator serve. Add vendors in the server's settings file,{" "}
        <code className="mono">config.toml</code> in the data folder, then restart the server or send it SIGHUP. The
        documentation lists every vendor in <code className="mono">docs/vendors.md</code>.
      </EmptyState>
    </div>
  );
}

function VendorCard({ vendor }: { vendor: Vendor }) {
  const busy = Math.min(100, (vendor.jobs_running / vendor.max_concurrent) * 100);
  return (
    <article className="card panel" aria-label={vendor.name}>
      <header className="vendor-head">
        <h2>{vendor.name}</h2>
        <Text size="xs" c="dimmed" span>
          {vendor.type} · {vendor.kind}
        </Text>
      </header>
      {vendor.kind === "media" && (
        <div className="vendor-busy" aria-hidden="true">
          <div style={{ width: `${busy}%` }} />
        </div>
      )}
      <Facts
        facts={[
          ["Running", vendor.kind === "media" && `${vendor.jobs_running} of ${vendor.max_concurrent}`],
          ["Concurrency", vendor.kind === "chat" && `up to ${vendor.max_concurrent} requests`],
          ["Waiting", vendor.kind === "media" && `${vendor.jobs_queued} jobs`],
          ["Last error", vendor.last_error && <LastError key="error" error={vendor.last_error} />],
        ]}
      />
      {vendor.routes.length > 0 ? <Routes vendor={vendor} /> : <Idle />}
    </article>
  );
}

function Idle() {
  return (
    <Text size="sm" c="dimmed" mt="sm">
      No model uses this vendor.
    </Text>
  );
}

function LastError({ error }: { error: NonNullable<Vendor["last_error"]> }) {
  return (
    <>
      {error.message}{" "}
      <Text size="xs" c="dimmed" component="div">
        <span className="mono">{error.code}</span> · {error.model} · <Ago time={error.at} />
      </Text>
    </>
  );
}

const HEALTH_STATES: Record<string, string> = { open: "active", resting: "resting", probing: "probing" };

function Routes({ vendor }: { vendor: Vendor }) {
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
          { title: "Order", cell: (route) => route.order, end: true, wide: true },
          { title: "Weight", cell: (route) => route.weight, end: true, wide: true },
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

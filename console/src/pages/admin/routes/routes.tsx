/** Models on offer with their routes: from the file, added here, or a vendor's own. */
import { Button, Group, Text } from "@mantine/core";
import { useState } from "react";
import { Link } from "wouter";
import type { RunTimeSettings, SettingsEntry, Vendor } from "../../../api/shapes";
import { DataTable } from "../../../parts/data_table";
import { EmptyState } from "../../../parts/empty_state";
import { ErrorNotice } from "../../../parts/error_notice";
import { Page, PageLoading } from "../../../parts/page";
import { Icon } from "../../../shell/icons";
import { WORDS } from "../../../vocabulary";
import { useAllVendors } from "../questions";
import { type Proposal, Review } from "../settings/review";
import { useSettings } from "../settings/run_time";
import { Origin } from "../vendors/origin";
import { RouteEditor } from "./route_editor";
import { type RouteRow, routesOf } from "./route_rows";
import "./routes.css";

interface ModelRow {
  name: string;
  entry: SettingsEntry | undefined;
  routes: RouteRow[];
}

export default function ModelRoutes() {
  const settings = useSettings();
  const vendors = useAllVendors();
  const failed = [settings, vendors].find(({ error }) => error);
  if (failed) {
    return (
      <Page title={WORDS.modelRoutes}>
        <ErrorNotice error={failed.error} onRetry={() => void failed.refetch()} />
      </Page>
    );
  }
  if (!settings.data || !vendors.data) return <PageLoading />;
  return <Loaded settings={settings.data} vendors={vendors.data} />;
}

function Loaded({ settings, vendors }: { settings: RunTimeSettings; vendors: Vendor[] }) {
  const [editing, setEditing] = useState<ModelRow | "new" | null>(null);
  const [proposal, setProposal] = useState<Proposal | null>(null);
  const rows = listModels(settings, vendors);
  const remove = (row: ModelRow) =>
    setProposal({
      title: `Remove ${row.name}?`,
      about: "Callers that ask for it get an error, unless a vendor has a model of this name itself.",
      change: { wish: { models: { [row.name]: null } } },
      base: settings.version,
      deed: WORDS.remove,
    });
  return (
    <Page
      title={WORDS.modelRoutes}
      about="Which vendor runs a model, under which name, in which order and share."
      actions={
        <Button leftSection={<Icon name="plus" size={16} />} onClick={() => setEditing("new")}>
          Add a model
        </Button>
      }
    >
      {rows.length === 0 ? (
        <EmptyState title={WORDS.noModels} icon="models" action={{ label: WORDS.addAVendor, to: "/admin/vendors/new" }}>
          Add a vendor first. Its own models are offered at once.
        </EmptyState>
      ) : (
        <DataTable
          label={WORDS.modelRoutes}
          rows={rows}
          rowKey={(row) => `${row.name} ${row.entry?.origin}`}
          columns={[
            { title: WORDS.model, cell: (row) => <ModelName row={row} /> },
            { title: "Routes", cell: (row) => <RouteLines row={row} /> },
            { title: WORDS.origin, cell: (row) => <OriginOf row={row} />, wide: true },
            {
              title: WORDS.action,
              bare: true,
              end: true,
              cell: (row) => <Deeds row={row} onEdit={() => setEditing(row)} onRemove={() => remove(row)} />,
            },
          ]}
        />
      )}
      {editing && (
        <RouteEditor
          key={editing === "new" ? "" : editing.name}
          row={editing === "new" ? null : editing}
          settings={settings}
          vendors={vendors.map((vendor) => vendor.name)}
          onClose={() => setEditing(null)}
          onReview={(change, title) => {
            setEditing(null);
            setProposal({ title, change, base: settings.version });
          }}
        />
      )}
      <Review proposal={proposal} onClose={() => setProposal(null)} />
    </Page>
  );
}

/** Models of the settings, then those that vendors offer by themselves. */
function listModels(settings: RunTimeSettings, vendors: Vendor[]): ModelRow[] {
  const entries = settings.models.map((entry) => ({ name: entry.name, entry, routes: routesOf(entry) }));
  const known = new Set(settings.models.map(({ name }) => name));
  const own = new Map<string, ModelRow>();
  for (const vendor of vendors) {
    for (const route of vendor.routes) {
      if (known.has(route.model)) continue;
      const row = own.get(route.model) ?? { name: route.model, entry: undefined, routes: [] };
      row.routes.push({ vendor: vendor.name, model: route.upstream_model, weight: route.weight, order: route.order });
      own.set(route.model, row);
    }
  }
  const byName = (a: ModelRow, b: ModelRow) => a.name.localeCompare(b.name);
  const rank = ({ entry }: ModelRow) => (entry?.origin === "run_time" ? 0 : 1);
  return [...entries.toSorted((a, b) => rank(a) - rank(b) || byName(a, b)), ...[...own.values()].toSorted(byName)];
}

function ModelName({ row: { name, entry } }: { row: ModelRow }) {
  const { kind } = (entry?.options ?? {}) as { kind?: string };
  return (
    <>
      <span className="mono model-id">{name}</span>
      {kind && (
        <Text size="xs" c="dimmed">
          {kind}
        </Text>
      )}
    </>
  );
}

function RouteLines({ row: { name, routes } }: { row: ModelRow }) {
  return routes.map((route) => (
    <div key={`${route.vendor} ${route.model} ${route.order}`} className="route-line">
      <Link href={`/admin/vendors/${encodeURIComponent(route.vendor)}`}>{route.vendor}</Link>
      {route.model && route.model !== name && <span className="mono"> {route.model}</span>}
      {routes.length > 1 && (
        <Text size="xs" c="dimmed" span>
          {" "}
          · order {route.order}, weight {route.weight}
        </Text>
      )}
    </div>
  ));
}

function OriginOf({ row: { entry } }: { row: ModelRow }) {
  return entry ? <Origin entry={entry} /> : <span className="tag">vendor&apos;s own</span>;
}

function Deeds({ row, onEdit, onRemove }: { row: ModelRow; onEdit: () => void; onRemove: () => void }) {
  if (row.entry?.origin === "file") {
    return (
      <Text size="xs" c="dimmed">
        read-only
      </Text>
    );
  }
  return (
    <Group gap={6} justify="flex-end" wrap="nowrap">
      <Button size="compact-sm" variant="default" aria-label={`${WORDS.edit} ${row.name}`} onClick={onEdit}>
        {WORDS.edit}
      </Button>
      {row.entry && (
        <Button size="compact-sm" variant="default" aria-label={`${WORDS.remove} ${row.name}`} onClick={onRemove}>
          {WORDS.remove}
        </Button>
      )}
    </Group>
  );
}

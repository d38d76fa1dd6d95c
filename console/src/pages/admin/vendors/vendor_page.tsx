/** One vendor: its state, its models, its options; tested, edited, disabled and removed. */
import { Alert, Button, Group, Text } from "@mantine/core";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import type { RunTimeSettings, SettingsEntry, VendorType } from "../../../api/shapes";
import { EmptyState } from "../../../parts/empty_state";
import { ErrorNotice } from "../../../parts/error_notice";
import { BackTo, Facts, Panel } from "../../../parts/facts";
import { Page, PageLoading } from "../../../parts/page";
import { capital } from "../../../parts/prose";
import { WORDS } from "../../../vocabulary";
import { useAllVendors } from "../questions";
import { show } from "../settings/differences";
import { type Proposal, Review } from "../settings/review";
import { isKept, useSettings, useVendorTypes } from "../settings/run_time";
import { TestConnection } from "./connection";
import { EditVendor } from "./edit_vendor";
import { rememberModels } from "./listed_models";
import { ModelChoice } from "./model_choice";
import { Origin } from "./origin";
import { TryIt } from "./try_it";
import { listAll, Running, type VendorRow } from "./vendor_list";
import "./vendors.css";

export function VendorPage({ name }: { name: string }) {
  const vendors = useAllVendors();
  const settings = useSettings();
  const types = useVendorTypes();
  const failed = [vendors, settings, types].find(({ error }) => error);
  const back = <BackTo to="/admin/vendors">{WORDS.vendors}</BackTo>;
  if (failed) {
    return (
      <Page title={name} back={back}>
        <ErrorNotice error={failed.error} onRetry={() => void failed.refetch()} />
      </Page>
    );
  }
  if (!vendors.data || !settings.data || !types.data) return <PageLoading />;
  const rows = listAll(settings.data, vendors.data).filter((row) => row.name === name);
  const row = rows[0];
  if (!row) {
    return (
      <Page title={name} back={back}>
        <EmptyState title="No such vendor" icon="vendors" action={{ label: "All vendors", to: "/admin/vendors" }}>
          It may have been removed meanwhile. The settings history shows by whom.
        </EmptyState>
      </Page>
    );
  }
  const typeName = row.vendor?.type ?? String(row.entry?.options.type ?? "");
  const type = types.data.find((each) => each.type === typeName);
  return <Loaded row={row} type={type} settings={settings.data} back={back} />;
}

interface Props {
  row: VendorRow;
  type: VendorType | undefined;
  settings: RunTimeSettings;
  back: React.ReactNode;
}

function Loaded({ row: { name, entry, vendor }, type, settings, back }: Props) {
  const [, navigate] = useLocation();
  const [proposal, setProposal] = useState<Proposal | null>(null);
  const [editing, setEditing] = useState(false);
  const [, setListing] = useState(0);
  const isOurs = entry?.origin === "run_time";
  return (
    <Page
      title={name}
      back={back}
      about={type && capital(type.about)}
      actions={
        isOurs && (
          <>
            <Button variant="default" onClick={() => setEditing(true)} disabled={!type}>
              {WORDS.edit}
            </Button>
            <Button variant="default" onClick={() => setProposal(toggle(entry, settings.version))}>
              {entry.enabled ? "Disable" : "Enable"}
            </Button>
            <Button
              variant="default"
              onClick={() => setProposal(removal(entry, settings, () => navigate("/admin/vendors")))}
            >
              {WORDS.remove}
            </Button>
          </>
        )
      }
    >
      <div className="panels">
        {!isOurs && <ReadOnly entry={entry} />}
        {entry?.shadowed && <Shadowed />}
        <div className="two-panels">
          <Panel title={WORDS.connection} tools={<Origin entry={entry} />}>
            <Facts facts={[["Type", type?.title ?? vendor?.type], ...optionFacts(entry)]} />
            <Group mt="md">
              <TestConnection
                name={name}
                onTested={(found) => {
                  rememberModels(name, found.models);
                  setListing((count) => count + 1);
                }}
              />
            </Group>
          </Panel>
          {vendor && (
            <Panel title={WORDS.status}>
              <Running vendor={vendor} />
            </Panel>
          )}
        </div>
        {type && isOurs && entry.enabled && !entry.shadowed && (
          <ModelChoice name={name} type={type} vendor={vendor} settings={settings} />
        )}
        {vendor && vendor.models.length > 0 && <TryIt models={vendor.models} />}
      </div>
      <Review proposal={proposal} onClose={() => setProposal(null)} />
      {type && entry && (
        <EditVendor
          entry={entry}
          type={type}
          opened={editing}
          onClose={() => setEditing(false)}
          onReview={(change) => setProposal({ title: `Change ${name}`, change, base: settings.version })}
        />
      )}
    </Page>
  );
}

function ReadOnly({ entry }: { entry: SettingsEntry | undefined }) {
  return (
    <Alert className="notice notice-gate" color="gate" title={entry ? "Set in the settings file" : "Built in"}>
      {entry
        ? "It can be changed there only, so that a deployment in version control stays as it is written. Send the server SIGHUP afterwards."
        : "It runs on this machine, without an account. A vendor of this name in the settings file changes its options."}
    </Alert>
  );
}

function Shadowed() {
  return (
    <Alert className="notice notice-gate" color="gate" title="Not in use">
      The settings file has a vendor of this name, which is used instead. Remove one of them.
    </Alert>
  );
}

/** Options as they are stored; a secret only as kept. */
function optionFacts(entry: SettingsEntry | undefined): [string, React.ReactNode][] {
  return Object.entries(entry?.options ?? {})
    .filter(([name]) => name !== "type")
    .map(([name, value]) => [
      name,
      isKept(value) ? (
        <Text key={name} size="sm" span>
          kept, never shown
        </Text>
      ) : (
        <span key={name} className="mono" style={{ overflowWrap: "anywhere" }}>
          {show(value)}
        </span>
      ),
    ]);
}

function toggle(entry: SettingsEntry, base: number): Proposal {
  const enabled = !entry.enabled;
  return {
    title: enabled ? `Enable ${entry.name}?` : `Disable ${entry.name}?`,
    about: enabled
      ? "Its models are offered again."
      : "Routes to it are left out. Models without another route are not offered. Jobs that it has already are finished.",
    change: { wish: { vendors: { [entry.name]: { ...entry.options, enabled } } } },
    base,
    deed: enabled ? "Enable" : "Disable",
  };
}

/** Remove a vendor with its routes, and the models that have no other. */
function removal(entry: SettingsEntry, settings: RunTimeSettings, onDone: () => void): Proposal {
  const models = Object.fromEntries(
    settings.models
      .filter((model) => model.origin === "run_time" && vendorsOf(model).includes(entry.name))
      .map((model) => [model.name, withoutVendor(model, entry.name)]),
  );
  return {
    title: `Remove ${entry.name}?`,
    about: (
      <>
        Its key is removed from the newest version. An earlier version can bring it back:{" "}
        <Link href="/admin/settings">{WORDS.settingsHistory}</Link>.
      </>
    ),
    change: { wish: { vendors: { [entry.name]: null }, models } },
    base: settings.version,
    deed: WORDS.remove,
    onDone,
  };
}

interface Route {
  vendor: string;
}

export function vendorsOf(model: SettingsEntry): string[] {
  const { vendor, routes } = model.options as { vendor?: string; routes?: Route[] };
  return vendor ? [vendor] : (routes ?? []).map((route) => route.vendor);
}

function withoutVendor(model: SettingsEntry, name: string): Record<string, unknown> | null {
  const { routes } = model.options as { routes?: Route[] };
  const left = (routes ?? []).filter((route) => route.vendor !== name);
  return left.length > 0 ? { ...model.options, enabled: model.enabled, routes: left } : null;
}

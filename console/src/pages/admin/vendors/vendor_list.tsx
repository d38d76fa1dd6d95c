/** All vendors with their origin and their state. */
import { Button, Text } from "@mantine/core";
import { Link } from "wouter";
import type { RunTimeSettings, SettingsEntry, Vendor, VendorType } from "../../../api/shapes";
import { ErrorNotice } from "../../../parts/error_notice";
import { Facts } from "../../../parts/facts";
import { isHosted } from "../../../parts/model_order";
import { Page, PageLoading } from "../../../parts/page";
import { Ago } from "../../../parts/time";
import { Icon } from "../../../shell/icons";
import { WORDS } from "../../../vocabulary";
import { useAllVendors } from "../questions";
import { useSettings, useVendorTypes } from "../settings/run_time";
import { Origin } from "./origin";
import { TypeCards } from "./vendor_choice";
import { Routes } from "./vendor_routes";
import "./vendors.css";

export function VendorList() {
  const vendors = useAllVendors();
  const settings = useSettings();
  const types = useVendorTypes();
  const failed = [vendors, settings, types].find(({ error }) => error);
  if (failed) {
    return (
      <Page title={WORDS.vendors}>
        <ErrorNotice error={failed.error} onRetry={() => void failed.refetch()} />
      </Page>
    );
  }
  if (!vendors.data || !settings.data || !types.data) return <PageLoading />;
  const rows = listAll(settings.data, vendors.data);
  const isFirst = !rows.some(({ vendor, entry }) => entry?.origin === "run_time" || (vendor && isHosted(vendor.type)));
  return (
    <Page
      title={WORDS.vendors}
      about="Services that run models: their models, load and recent errors."
      actions={
        !isFirst && (
          <Button component={Link} href="/admin/vendors/new" leftSection={<Icon name="plus" size={16} />}>
            {WORDS.addAVendor}
          </Button>
        )
      }
    >
      {isFirst && <FirstVendor types={types.data} />}
      {isFirst && <h2 className="vendors-heading">On this machine</h2>}
      <div className="vendors">
        {rows.map((row) => (
          <VendorCard key={`${row.name} ${row.entry?.origin}`} row={row} />
        ))}
      </div>
    </Page>
  );
}

export interface VendorRow {
  name: string;
  /** Where it is set. Built-in vendors are nowhere. */
  entry: SettingsEntry | undefined;
  /** As it runs. A disabled one does not. */
  vendor: Vendor | undefined;
}

/** Vendors that were added here, then those of the file, then the built-in ones. */
export function listAll(settings: RunTimeSettings, vendors: Vendor[]): VendorRow[] {
  const running = new Map(vendors.map((vendor) => [vendor.name, vendor]));
  const entries = settings.vendors.toSorted((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name));
  const known = new Set(entries.map(({ name }) => name));
  return [
    ...entries.map((entry) => ({
      name: entry.name,
      entry,
      vendor: entry.shadowed ? undefined : running.get(entry.name),
    })),
    ...vendors
      .filter(({ name }) => !known.has(name))
      .map((vendor) => ({ name: vendor.name, entry: undefined, vendor })),
  ];
}

function rank(entry: SettingsEntry): number {
  return entry.origin === "run_time" ? 0 : 1;
}

function FirstVendor({ types }: { types: VendorType[] }) {
  return (
    <section className="first-vendor" aria-labelledby="first-vendor">
      <header>
        <h2 id="first-vendor">{WORDS.addYourFirstVendor}</h2>
        <p>
          So far the built-in engines and the simulator serve. Choose a service that you have an account with, or a
          server of your own. No file is edited, and nothing restarts.
        </p>
        <ol className="path">
          <li>Choose</li>
          <li>Paste the key</li>
          <li>Test</li>
          <li>Choose models</li>
          <li>{WORDS.tryIt}</li>
        </ol>
      </header>
      <TypeCards types={types} />
    </section>
  );
}

function VendorCard({ row: { name, entry, vendor } }: { row: VendorRow }) {
  const type = vendor?.type ?? String(entry?.options.type ?? "");
  return (
    <article className="card panel" aria-label={name}>
      <header className="vendor-head">
        <h2>
          <Link href={`/admin/vendors/${encodeURIComponent(name)}`}>{name}</Link>
        </h2>
        <Text size="xs" c="dimmed" span>
          {type}
          {vendor && ` · ${vendor.kind}`}
        </Text>
        <Origin entry={entry} />
      </header>
      {vendor ? <Running vendor={vendor} /> : <NotRunning entry={entry} />}
    </article>
  );
}

function NotRunning({ entry }: { entry: SettingsEntry | undefined }) {
  const reason = entry?.shadowed
    ? "The settings file has a vendor of this name, which is used instead."
    : entry?.enabled === false
      ? "Disabled: no model runs here."
      : "Not in use yet.";
  return (
    <Text size="sm" c="dimmed">
      {reason}
    </Text>
  );
}

export function Running({ vendor }: { vendor: Vendor }) {
  const busy = Math.min(100, (vendor.jobs_running / vendor.max_concurrent) * 100);
  return (
    <>
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
      {vendor.routes.length > 0 ? (
        <Routes vendor={vendor} />
      ) : (
        <Text size="sm" c="dimmed" mt="sm">
          No model uses this vendor.
        </Text>
      )}
    </>
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

/** A new vendor: name, key and address; tested before it is added. */
import { Button, Group, Stack, TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useLocation, useSearchParams } from "wouter";
import { ApiError } from "../../../api/errors";
import type { RunTimeSettings, VendorType } from "../../../api/shapes";
import { EmptyState } from "../../../parts/empty_state";
import { ErrorNotice } from "../../../parts/error_notice";
import { BackTo } from "../../../parts/facts";
import { Page, PageLoading } from "../../../parts/page";
import { capital } from "../../../parts/prose";
import { toast } from "../../../parts/toasts";
import { WORDS } from "../../../vocabulary";
import { OptionFields } from "../settings/option_fields";
import {
  isConflict,
  newestSettings,
  type Options,
  refresh,
  send,
  useSettings,
  useVendorTypes,
} from "../settings/run_time";
import { TestConnection } from "./connection";
import { rememberModels } from "./listed_models";
import { presetsOf } from "./vendor_choice";

export function NewVendor({ type }: { type: string }) {
  const types = useVendorTypes();
  const settings = useSettings();
  if (types.error || settings.error) {
    return (
      <Page title={WORDS.addAVendor}>
        <ErrorNotice error={types.error ?? settings.error} />
      </Page>
    );
  }
  if (!types.data || !settings.data) return <PageLoading />;
  const kind = types.data.find((each) => each.type === type);
  if (!kind) {
    return (
      <Page title={WORDS.addAVendor}>
        <EmptyState title="No such type" icon="vendors" action={{ label: "Choose a type", to: "/admin/vendors/new" }}>
          This server has no vendor type <code className="mono">{type}</code>.
        </EmptyState>
      </Page>
    );
  }
  return <NewForm kind={kind} settings={settings.data} />;
}

function NewForm({ kind, settings }: { kind: VendorType; settings: RunTimeSettings }) {
  const client = useQueryClient();
  const [search] = useSearchParams();
  const [, navigate] = useLocation();
  const preset = search.get("preset");
  const address = preset ? presetsOf(kind)[preset] : undefined;
  const [name, setName] = useState(() => freeName(preset ?? kind.type, settings));
  const [options, setOptions] = useState<Options>(address ? { base_url: address } : {});
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const table = { type: kind.type, ...options };
  const details = error instanceof ApiError ? error.details : [];
  const taken = settings.vendors.some((entry) => entry.name === name.trim());
  const add = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await addOnTop(name.trim(), table, settings.version);
      toast(`${name.trim()} is added.`, "Settings changed");
      await refresh(client);
      navigate(`/admin/vendors/${encodeURIComponent(name.trim())}`);
    } catch (caught) {
      setError(caught);
      setBusy(false);
    }
  };
  return (
    <Page
      title={`${WORDS.addAVendor}: ${preset ?? kind.title}`}
      back={<BackTo to="/admin/vendors/new">All types</BackTo>}
      about={capital(kind.about)}
    >
      <form onSubmit={add} aria-label={WORDS.addAVendor} className="card panel vendor-form">
        <Stack gap="md">
          <OptionFields kind={kind} options={options} details={details} onChange={setOptions} />
          <TextInput
            label={WORDS.name}
            description="Your name for it here: letters, digits, - and _."
            required
            withAsterisk={false}
            error={taken ? "A vendor of this name is there already." : undefined}
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <TestConnection
            name={name.trim() || kind.type}
            options={table}
            onTested={(found) => {
              setError(null);
              rememberModels(name.trim(), found.models);
            }}
          />
          {error !== null && <ErrorNotice error={error} />}
          <Group justify="flex-end" gap="xs">
            <Button type="submit" loading={busy} disabled={!name.trim() || taken}>
              {WORDS.addVendor}
            </Button>
          </Group>
        </Stack>
      </form>
    </Page>
  );
}

/** Add a vendor to whichever version is the newest, unless it has one of this name. */
async function addOnTop(name: string, table: Options, base: number): Promise<void> {
  const change = { wish: { vendors: { [name]: table } } };
  try {
    await send(change, base);
  } catch (caught) {
    if (!isConflict(caught)) throw caught;
    const newest = await newestSettings();
    if (newest.vendors.some((entry) => entry.name === name)) throw caught;
    await send(change, newest.version);
  }
}

/** `ollama`, or `ollama-2` if that is taken. */
function freeName(title: string, settings: RunTimeSettings): string {
  const plain = title.toLowerCase().replace(/[^a-z0-9_-]+/g, "-");
  const taken = new Set(settings.vendors.map((entry) => entry.name));
  if (!taken.has(plain)) return plain;
  let number = 2;
  while (taken.has(`${plain}-${number}`)) number += 1;
  return `${plain}-${number}`;
}

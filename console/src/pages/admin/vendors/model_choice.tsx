/** Models of a vendor to offer: from its own list, or by name. */
import { Button, Checkbox, Group, Select, Stack, TagsInput, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import type { RunTimeSettings, Vendor, VendorType } from "../../../api/shapes";
import { ErrorNotice } from "../../../parts/error_notice";
import { Panel } from "../../../parts/facts";
import { KINDS } from "../../../parts/model_order";
import { toast } from "../../../parts/toasts";
import { WORDS } from "../../../vocabulary";
import { useAllVendors } from "../questions";
import { type Options, refresh, send } from "../settings/run_time";
import { listedModels } from "./listed_models";

interface Props {
  name: string;
  type: VendorType;
  vendor: Vendor | undefined;
  settings: RunTimeSettings;
}

/** Ticks follow what is offered now. Names that are being typed stay, whatever else changes. */
export function ModelChoice(props: Props) {
  if (props.type.kind === "chat") return <ByName {...props} />;
  return <FromList key={`${props.settings.version} ${props.vendor?.models.join() ?? ""}`} {...props} />;
}

type Models = Record<string, Options | null>;

/** Store models, and say so. Return whether they are stored. */
function useSave(settings: RunTimeSettings) {
  const client = useQueryClient();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const save = async (models: Models, words: string) => {
    setBusy(true);
    setError(null);
    try {
      await send({ wish: { models } }, settings.version);
      toast(words, "Settings changed");
      await refresh(client);
      return true;
    } catch (caught) {
      setError(caught);
      return false;
    } finally {
      setBusy(false);
    }
  };
  return { busy, error, save };
}

function FromList({ name, type, vendor, settings }: Props) {
  const offered = new Set(vendor?.models ?? []);
  const elsewhere = useServedElsewhere(name);
  const [chosen, setChosen] = useState<string[]>([...offered]);
  const { busy, error, save } = useSave(settings);
  const added = chosen.filter((id) => !offered.has(id));
  const left = [...offered].filter((id) => type.models.some((model) => model.id === id) && !chosen.includes(id));
  const fromFile = new Set(settings.models.filter(({ origin }) => origin === "file").map((entry) => entry.name));
  const store = () =>
    save(
      Object.fromEntries([
        ...added.map((id) => [id, { vendor: name }] as const),
        ...left.map((id) => [id, settings.lists_models ? null : { vendor: name, enabled: false }] as const),
      ]),
      `${chosen.length} models of ${name} are offered.`,
    );
  return (
    <Panel
      title={WORDS.models}
      tools={
        <Button onClick={store} loading={busy} disabled={added.length + left.length === 0}>
          Save models
        </Button>
      }
    >
      <Text size="sm" c="dimmed" mb="sm">
        Ticked models are offered to callers, and this vendor runs them.
        {type.declares && (
          <>
            {" "}
            Any other of its models can be declared on the page <Link href="/admin/routes">{WORDS.modelRoutes}</Link>.
          </>
        )}
      </Text>
      {error !== null && <ErrorNotice error={error} />}
      <Checkbox.Group value={chosen} onChange={setChosen} aria-label={WORDS.models}>
        <div className="model-ticks">
          {type.models.map((model) => (
            <Checkbox
              key={model.id}
              value={model.id}
              label={model.id}
              disabled={fromFile.has(model.id)}
              description={[
                KINDS[model.kind] ?? model.kind,
                fromFile.has(model.id)
                  ? "from file"
                  : !offered.has(model.id) && elsewhere.get(model.id) && `now at ${elsewhere.get(model.id)}`,
              ]
                .filter(Boolean)
                .join(" · ")}
            />
          ))}
        </div>
      </Checkbox.Group>
    </Panel>
  );
}

/** Vendors by the models that they serve, without this one. */
function useServedElsewhere(name: string): Map<string, string> {
  const vendors = useAllVendors();
  const others = (vendors.data ?? []).filter((each) => each.name !== name);
  return new Map(others.flatMap((each) => each.models.map((model) => [model, each.name] as const)));
}

function ByName({ name, type, settings }: Props) {
  const [names, setNames] = useState<string[]>([]);
  const [kind, setKind] = useState("chat");
  const { busy, error, save } = useSave(settings);
  const listed = listedModels(name);
  const store = async () => {
    const models = names.map((model) => [idOf(model, name, settings), { kind, vendor: name, model }] as const);
    const words = names.length === 1 ? `${names[0]} is offered.` : `${names.length} models are offered.`;
    if (await save(Object.fromEntries(models), words)) setNames([]);
  };
  return (
    <Panel title="Add models">
      <Stack gap="sm" maw={720}>
        <TagsInput
          label="Models by the vendor's name"
          description={
            listed.length > 0
              ? `The vendor lists ${listed.length}. Choose some, or type a name and press Enter.`
              : "Type a name and press Enter, such as gpt-4o-mini. A test of the connection may list them."
          }
          placeholder={names.length > 0 ? "" : (listed[0] ?? "model-name")}
          data={listed}
          limit={50}
          acceptValueOnBlur
          value={names}
          onChange={setNames}
        />
        {type.kinds.length > 1 && (
          <Select
            label={WORDS.kind}
            data={type.kinds.map((value) => ({ value, label: KINDS[value] ?? value }))}
            value={kind}
            onChange={(value) => setKind(value ?? "chat")}
            maw={240}
          />
        )}
        {error !== null && <ErrorNotice error={error} />}
        <Group>
          <Button onClick={store} loading={busy} disabled={names.length === 0}>
            Offer these models
          </Button>
          <Text size="sm" c="dimmed" span>
            Routes, weights and prices: <Link href="/admin/routes">{WORDS.modelRoutes}</Link>
          </Text>
        </Group>
      </Stack>
    </Panel>
  );
}

/** The vendor's own name of the model, unless another vendor's model has it here. */
function idOf(model: string, vendor: string, settings: RunTimeSettings): string {
  const plain = model.replace(/[^A-Za-z0-9._:/-]/g, "-").replace(/^[^A-Za-z0-9]+/, "");
  return settings.models.some((entry) => entry.name === plain) ? `${vendor}/${plain}` : plain;
}

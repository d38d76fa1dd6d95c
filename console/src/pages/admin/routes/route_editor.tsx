/** A model: its kind, its routes and its price, changed after a look at the differences. */
import { ActionIcon, Button, Group, Modal, NumberInput, Select, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import type { RunTimeSettings, SettingsEntry } from "../../../api/shapes";
import { KINDS } from "../../../parts/model_order";
import { Icon } from "../../../shell/icons";
import { WORDS } from "../../../vocabulary";
import type { Change, Options } from "../settings/run_time";
import { NEW_ROUTE, type RouteRow, writeRoutes } from "./route_rows";

interface Props {
  row: { name: string; entry: SettingsEntry | undefined; routes: RouteRow[] } | null;
  settings: RunTimeSettings;
  vendors: string[];
  onClose: () => void;
  onReview: (change: Change, title: string) => void;
}

const KIND_CHOICES = ["chat", "embedding", "speech", "transcription", "image", "video", "3d", "audio"];
/** What the form shows by fields of its own; the rest stands in the JSON below. */
const SHOWN = new Set(["kind", "title", "vendor", "model", "routes", "price"]);
const PRICES = {
  tokens: { input_per_million: "In per million tokens", output_per_million: "Out per million tokens" },
  jobs: { per_job: "Per job", per_second: "Per second", per_image: "Per picture" },
} as const;
const TOKEN_KINDS = new Set(["chat", "embedding"]);

export function RouteEditor({ row, settings, vendors, onClose, onReview }: Props) {
  const before = (row?.entry?.options ?? {}) as Options;
  const [id, setId] = useState(row?.name ?? "");
  const [kind, setKind] = useState((before.kind as string) ?? "");
  const [routes, setRoutes] = useState<RouteRow[]>(row?.routes.length ? row.routes : [NEW_ROUTE]);
  const [price, setPrice] = useState<Record<string, string>>((before.price as Record<string, string>) ?? {});
  const [rest, setRest] = useState(() => writeRest(before));
  const others = readRest(rest);
  const isTaken = !row && settings.models.some((entry) => entry.name === id.trim());
  const isReady = id.trim() !== "" && !isTaken && others !== null && routes.every(({ vendor }) => vendor);
  const review = () => {
    const given = Object.fromEntries(Object.entries(price).filter(([, amount]) => String(amount).trim() !== ""));
    const table = {
      ...others,
      ...(kind ? { kind } : {}),
      ...writeRoutes(routes),
      ...(Object.keys(given).length > 0 ? { price: given } : {}),
      enabled: row?.entry?.enabled ?? true,
    };
    onReview({ wish: { models: { [id.trim()]: table } } }, row ? `Change ${id}` : `Add ${id.trim()}`);
  };
  return (
    <Modal
      opened
      onClose={onClose}
      title={row ? `${WORDS.edit} ${row.name}` : "Add a model"}
      size="xl"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <Stack gap="md">
        <Group grow align="start">
          <TextInput
            label={WORDS.id}
            description="The name by which callers ask for it"
            disabled={row !== null}
            error={isTaken ? "A model of this name is there already." : undefined}
            value={id}
            onChange={(event) => setId(event.currentTarget.value)}
          />
          <Select
            label={WORDS.kind}
            description="Left out: what the vendor says"
            clearable
            clearButtonProps={{ "aria-label": "No kind" }}
            data={KIND_CHOICES.map((value) => ({ value, label: KINDS[value] ?? value }))}
            value={kind || null}
            onChange={(value) => setKind(value ?? "")}
          />
        </Group>
        <RouteRows routes={routes} vendors={vendors} onChange={setRoutes} />
        <PriceFields kind={kind} price={price} onChange={setPrice} />
        <details className="more-options">
          <summary>{WORDS.moreOptions}</summary>
          <Textarea
            label="Other options as JSON"
            description="Of declared models: params, file, output, preview, workflow, bind. For all: title."
            autosize
            minRows={3}
            maxRows={14}
            spellCheck={false}
            error={others === null ? "This is not a JSON object." : undefined}
            value={rest}
            onChange={(event) => setRest(event.currentTarget.value)}
          />
        </details>
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            {WORDS.cancel}
          </Button>
          <Button disabled={!isReady} onClick={review}>
            {WORDS.showDifferences}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

function writeRest(options: Options): string {
  const rest = Object.entries(options).filter(([name]) => !SHOWN.has(name) || name === "title");
  return rest.length > 0 ? JSON.stringify(Object.fromEntries(rest), null, 2) : "";
}

/** Null: it is not an object. */
function readRest(text: string): Options | null {
  if (!text.trim()) return {};
  try {
    const found: unknown = JSON.parse(text);
    return typeof found === "object" && found !== null && !Array.isArray(found) ? (found as Options) : null;
  } catch {
    return null;
  }
}

interface RowsProps {
  routes: RouteRow[];
  vendors: string[];
  onChange: (routes: RouteRow[]) => void;
}

function RouteRows({ routes, vendors, onChange }: RowsProps) {
  const set = (index: number, part: Partial<RouteRow>) =>
    onChange(routes.map((route, at) => (at === index ? { ...route, ...part } : route)));
  const choices = [...new Set([...vendors, ...routes.map(({ vendor }) => vendor).filter(Boolean)])];
  return (
    <Stack gap="xs">
      {routes.map((route, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: routes have no name of their own
        <div key={index} className="route-row">
          <Select
            label={WORDS.vendor}
            data={choices}
            searchable
            value={route.vendor || null}
            onChange={(vendor) => set(index, { vendor: vendor ?? "" })}
          />
          <TextInput
            label="Vendor's name of it"
            placeholder="the id"
            value={route.model}
            onChange={(event) => set(index, { model: event.currentTarget.value })}
          />
          <NumberInput
            label={WORDS.weight}
            min={1}
            hideControls
            value={route.weight}
            onChange={(weight) => set(index, { weight: Number(weight) || 1 })}
          />
          <NumberInput
            label={WORDS.order}
            min={1}
            hideControls
            value={route.order}
            onChange={(order) => set(index, { order: Number(order) || 1 })}
          />
          <ActionIcon
            variant="subtle"
            color="gray"
            size="lg"
            aria-label={`Remove route ${index + 1}`}
            disabled={routes.length === 1}
            onClick={() => onChange(routes.filter((_, at) => at !== index))}
          >
            <Icon name="trash" size={16} />
          </ActionIcon>
        </div>
      ))}
      <Group gap="sm">
        <Button
          size="compact-sm"
          variant="default"
          onClick={() => onChange([...routes, { ...NEW_ROUTE, order: routes.length + 1 }])}
        >
          Add a route
        </Button>
        <Text size="xs" c="dimmed" span>
          A lower order is used first. Within one order, jobs are shared by weight.
        </Text>
      </Group>
    </Stack>
  );
}

interface PriceProps {
  kind: string;
  price: Record<string, string>;
  onChange: (price: Record<string, string>) => void;
}

function PriceFields({ kind, price, onChange }: PriceProps) {
  const isTokens = TOKEN_KINDS.has(kind) || "input_per_million" in price;
  const fields = Object.entries(isTokens ? PRICES.tokens : PRICES.jobs);
  return (
    <div>
      <Group grow align="end">
        {fields.map(([name, label]) => (
          <TextInput
            key={name}
            label={label}
            placeholder="0.00"
            leftSection="$"
            inputMode="decimal"
            value={price[name] ?? ""}
            onChange={(event) => onChange({ ...price, [name]: event.currentTarget.value })}
          />
        ))}
      </Group>
      <Text size="xs" c="dimmed" mt={6}>
        Left out: the price of the price book, or the vendor's own.
      </Text>
    </div>
  );
}

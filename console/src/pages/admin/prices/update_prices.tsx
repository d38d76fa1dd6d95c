/** Prices from a list: compared first, then written by choice. */
import {
  Alert,
  Button,
  Checkbox,
  FileButton,
  Group,
  Modal,
  SegmentedControl,
  Stack,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../../../api/call";
import type { PriceFinding, PricePreview } from "../../../api/shapes";
import { ErrorNotice } from "../../../parts/error_notice";
import { formatMoney } from "../../../parts/money";
import { toast } from "../../../parts/toasts";
import { WORDS } from "../../../vocabulary";
import { partWords, priceWords } from "./price_text";
import "./prices.css";

export function UpdatePrices({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title="Update prices from a list"
      size="xl"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      {opened && <Body onClose={onClose} />}
    </Modal>
  );
}

type Place = "shipped" | "url" | "text";

interface Source {
  place: Place;
  url: string;
  text: string;
}

function Body({ onClose }: { onClose: () => void }) {
  const [source, setSource] = useState<Source>({ place: "shipped", url: "", text: "" });
  const [providers, setProviders] = useState<Record<string, string>>({});
  const [preview, setPreview] = useState<PricePreview | null>(null);
  const [compared, setCompared] = useState(0);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const compare = async () => {
    setBusy(true);
    setError(null);
    try {
      const named = Object.fromEntries(Object.entries(providers).filter(([, name]) => name.trim()));
      const from = source.place === "shipped" ? "shipped" : source.url.trim();
      const list = source.place === "text" ? { text: source.text } : { from };
      setPreview(await call<PricePreview>("/admin/v1/prices/preview", { body: { ...list, providers: named } }));
      setCompared((count) => count + 1);
    } catch (caught) {
      setPreview(null);
      setError(caught);
    } finally {
      setBusy(false);
    }
  };
  const isReady = source.place === "shipped" || (source.place === "url" ? source.url : source.text).trim() !== "";
  return (
    <Stack gap="md">
      <SourceFields
        source={source}
        onChange={(next) => {
          setSource(next);
          setPreview(null);
        }}
      />
      <Group>
        <Button variant={preview ? "default" : "filled"} loading={busy} disabled={!isReady} onClick={compare}>
          Compare
        </Button>
        <Text size="sm" c="dimmed" span>
          Nothing is written yet.
        </Text>
      </Group>
      {error !== null && <ErrorNotice error={error} />}
      {preview && (
        <Found key={compared} preview={preview} onClose={onClose} onStale={compare}>
          <Unmapped findings={preview.findings} providers={providers} onChange={setProviders} />
        </Found>
      )}
    </Stack>
  );
}

function SourceFields({ source, onChange }: { source: Source; onChange: (source: Source) => void }) {
  return (
    <>
      <SegmentedControl
        aria-label="List"
        data={[
          { value: "shipped", label: "Shipped with Penstock" },
          { value: "url", label: "From a URL" },
          { value: "text", label: "File or text" },
        ]}
        value={source.place}
        onChange={(place) => onChange({ ...source, place: place as Place })}
      />
      {source.place === "shipped" && (
        <Text size="sm" c="dimmed">
          Dated prices of the vendor models that Penstock names. Chat models are not in it: use LiteLLM's list.
        </Text>
      )}
      {source.place === "url" && (
        <TextInput
          label="URL of a list"
          description="In LiteLLM's, OpenRouter's or our own form"
          placeholder="https://openrouter.ai/api/v1/models"
          value={source.url}
          onChange={(event) => onChange({ ...source, url: event.currentTarget.value })}
        />
      )}
      {source.place === "text" && (
        <>
          <Textarea
            label="Text of a list"
            description="JSON or TOML in one of these forms"
            autosize
            minRows={4}
            maxRows={10}
            spellCheck={false}
            value={source.text}
            onChange={(event) => onChange({ ...source, text: event.currentTarget.value })}
          />
          <div>
            <FileButton
              accept=".json,.toml,application/json"
              onChange={(file) => void file?.text().then((text) => onChange({ ...source, text }))}
            >
              {(props) => (
                <Button {...props} variant="default" size="compact-sm">
                  Choose a file
                </Button>
              )}
            </FileButton>
          </div>
        </>
      )}
    </>
  );
}

const TAKEN = new Set(["new", "changed"]);

interface FoundProps {
  preview: PricePreview;
  onClose: () => void;
  onStale: () => Promise<void>;
  children: React.ReactNode;
}

function Found({ preview, onClose, onStale, children }: FoundProps) {
  const client = useQueryClient();
  const offered = preview.findings.filter(({ verdict, new: price }) => TAKEN.has(verdict) && price !== null);
  const others = preview.findings.filter(({ verdict }) => !TAKEN.has(verdict) && verdict !== "same");
  const [chosen, setChosen] = useState(() => new Set(offered.map(nameOf)));
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const write = async () => {
    setBusy(true);
    setError(null);
    try {
      const wanted = offered.filter((each) => chosen.has(nameOf(each)));
      const prices = wanted.map(({ model, vendor, from, until, new: price, source }) => {
        const times = { ...(from && { from }), ...(until && { until }) };
        return { model, vendor, ...times, price, source };
      });
      await call("/admin/v1/prices", { body: { version: preview.version, prices } });
      toast(`${prices.length} prices are in force.`, "Prices updated");
      await client.invalidateQueries({ queryKey: ["admin", "prices"] });
      await client.invalidateQueries({ queryKey: ["models"] });
      onClose();
    } catch (caught) {
      setError(caught);
      setBusy(false);
    }
  };
  const flip = (name: string) =>
    setChosen((before) => {
      const next = new Set(before);
      if (!next.delete(name)) next.add(name);
      return next;
    });
  return (
    <>
      {offered.length === 0 ? (
        <Alert className="notice notice-gate" color="gate" title="No differences">
          The list has no other price for a model here.
        </Alert>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
        <section className="findings" aria-label="Differences of prices" tabIndex={0}>
          {offered.map((each) => (
            <Finding
              key={nameOf(each)}
              finding={each}
              chosen={chosen.has(nameOf(each))}
              onFlip={() => flip(nameOf(each))}
            />
          ))}
        </section>
      )}
      {children}
      {others.length > 0 && <Others findings={others} />}
      {error !== null && <ErrorNotice error={error} onRetry={() => void onStale()} />}
      <Group justify="flex-end" gap="xs">
        <Button variant="default" onClick={onClose}>
          {WORDS.cancel}
        </Button>
        <Button loading={busy} disabled={chosen.size === 0} onClick={write}>
          {chosen.size === 1 ? "Write 1 price" : `Write ${chosen.size} prices`}
        </Button>
      </Group>
    </>
  );
}

function nameOf({ model, vendor }: PriceFinding): string {
  return `${model} at ${vendor}`;
}

function Finding({ finding, chosen, onFlip }: { finding: PriceFinding; chosen: boolean; onFlip: () => void }) {
  return (
    <div className="finding">
      <Checkbox aria-label={nameOf(finding)} checked={chosen} onChange={onFlip} mt={2} />
      <div>
        <span className="mono price-model">{finding.model}</span>{" "}
        <Text size="xs" c="dimmed" span>
          {finding.vendor} · {finding.verdict}
        </Text>
        <ul>
          {finding.verdict === "new"
            ? priceWords(finding.new ?? {}).map((part) => <li key={part}>{part}</li>)
            : finding.parts.map((part) => (
                <li key={part.name}>
                  {part.old !== null && <span className="price-old">{formatMoney(part.old)}</span>}{" "}
                  {part.new === null ? "no longer" : formatMoney(part.new)} {partWords(part.name)}
                  {part.percent !== null && ` (${part.percent > 0 ? "+" : ""}${part.percent} %)`}
                </li>
              ))}
        </ul>
        {finding.left_out.length > 0 && (
          <Text size="xs" c="dimmed">
            Not taken over: {finding.left_out.join(", ")}
          </Text>
        )}
      </div>
    </div>
  );
}

function Others({ findings }: { findings: PriceFinding[] }) {
  return (
    <details className="more-options">
      <summary>{findings.length} models without a change</summary>
      <ul className="others">
        {findings.map((each) => (
          <li key={nameOf(each)}>
            <span className="mono price-model">{each.model}</span> at {each.vendor}: {each.why || each.verdict}
          </li>
        ))}
      </ul>
    </details>
  );
}

interface UnmappedProps {
  findings: PriceFinding[];
  providers: Record<string, string>;
  onChange: (providers: Record<string, string>) => void;
}

/** Vendors whose name in lists is not known, such as a proxy. */
function Unmapped({ findings, providers, onChange }: UnmappedProps) {
  const vendors = [...new Set(findings.filter(({ verdict }) => verdict === "unmapped").map(({ vendor }) => vendor))];
  if (vendors.length === 0) return null;
  return (
    <details className="more-options">
      <summary>{vendors.length} vendors are not known to lists</summary>
      <Stack gap="xs">
        <Text size="sm" c="dimmed">
          Name the provider whose entries are their prices, such as openai. Then compare again.
        </Text>
        {vendors.map((vendor) => (
          <TextInput
            key={vendor}
            label={vendor}
            placeholder="provider"
            value={providers[vendor] ?? ""}
            onChange={(event) => onChange({ ...providers, [vendor]: event.currentTarget.value })}
          />
        ))}
      </Stack>
    </details>
  );
}

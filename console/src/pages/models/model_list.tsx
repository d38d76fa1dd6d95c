import { TextInput, Title } from "@mantine/core";
import { useState } from "react";
import { Link } from "wouter";
import type { Model, Vendor } from "../../api/shapes";
import { EmptyState } from "../../parts/empty_state";
import { Facts } from "../../parts/facts";
import { Page } from "../../parts/page";
import { priceLine } from "../../parts/price_words";
import { formatSeconds } from "../../parts/time";
import { Icon } from "../../shell/icons";
import { WORDS } from "../../vocabulary";
import { Health, standingsOf, useVendors } from "./health";

const KINDS: Record<string, string> = {
  video: "Video",
  "3d": "3D",
  image: "Pictures",
  audio: "Audio",
  text: "Text",
  chat: "Chat",
  embedding: "Embeddings",
  speech: "Speech",
  transcription: "Transcription",
};

export function ModelList({ models }: { models: Model[] }) {
  const [wanted, setWanted] = useState("");
  const vendors = useVendors();
  const shown = models.filter((model) =>
    `${model.id} ${model.title} ${model.vendors.join(" ")}`.toLowerCase().includes(wanted.trim().toLowerCase()),
  );
  const kinds = [...new Set([...Object.keys(KINDS), ...models.map((model) => model.kind)])];
  return (
    <Page
      title={WORDS.models}
      about={`${models.length} that this key can use.`}
      actions={
        <TextInput
          aria-label="Search models"
          placeholder="Search models"
          leftSection={<Icon name="search" size={15} />}
          data-shortcut="/"
          value={wanted}
          onChange={(event) => setWanted(event.currentTarget.value)}
        />
      }
    >
      {models.length === 0 && (
        <EmptyState title="No models for this key" icon="models">
          This key may be limited to some models. Ask your administrator, or create another key with{" "}
          <code className="mono">penstock key create</code>.
        </EmptyState>
      )}
      {models.length > 0 && shown.length === 0 && (
        <EmptyState
          title="No matching models"
          icon="search"
          action={{ label: "Show all", onClick: () => setWanted("") }}
        >
          Search by id, title or vendor.
        </EmptyState>
      )}
      {kinds.map((kind) => (
        <Kind
          key={kind}
          kind={kind}
          models={shown.filter((model) => model.kind === kind)}
          vendors={vendors.data ?? []}
        />
      ))}
    </Page>
  );
}

function Kind({ kind, models, vendors }: { kind: string; models: Model[]; vendors: Vendor[] }) {
  if (models.length === 0) return null;
  return (
    <section aria-label={KINDS[kind] ?? kind}>
      <Title order={2}>{KINDS[kind] ?? kind}</Title>
      <ul className="model-grid">
        {models.map((model) => (
          <li key={model.id}>
            <Card model={model} vendors={vendors} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function Card({ model, vendors }: { model: Model; vendors: Vendor[] }) {
  const standings = standingsOf(vendors, model.id);
  const served = standings.length
    ? standings.map((standing) => (
        <div key={standing.vendor}>
          <Health standing={standing} />
        </div>
      ))
    : model.vendors.join(", ");
  return (
    <article className="card model-card">
      <div>
        <Link href={`/models/${encodeURIComponent(model.id)}`}>{model.title}</Link>
        {model.title !== model.id && <span className="mono model-id">{model.id}</span>}
      </div>
      <Facts
        facts={[
          [WORDS.price, priceLine(model.price)],
          [WORDS.servedBy, served],
          [WORDS.duration, model.typical_seconds && `about ${formatSeconds(model.typical_seconds.p50)}`],
        ]}
      />
    </article>
  );
}

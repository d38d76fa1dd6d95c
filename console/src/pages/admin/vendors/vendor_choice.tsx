/** Types of vendors to choose from, as cards. */
import { Link } from "wouter";
import type { VendorType } from "../../../api/shapes";
import { ErrorNotice } from "../../../parts/error_notice";
import { BackTo } from "../../../parts/facts";
import { KINDS } from "../../../parts/model_order";
import { Page, PageLoading } from "../../../parts/page";
import { capital } from "../../../parts/prose";
import { WORDS } from "../../../vocabulary";
import { useVendorTypes } from "../settings/run_time";
import "./vendors.css";

export function VendorChoice() {
  const types = useVendorTypes();
  if (types.error) {
    return (
      <Page title={WORDS.addAVendor}>
        <ErrorNotice error={types.error} onRetry={() => void types.refetch()} />
      </Page>
    );
  }
  if (!types.data) return <PageLoading />;
  return (
    <Page
      title={WORDS.addAVendor}
      back={<BackTo to="/admin/vendors">{WORDS.vendors}</BackTo>}
      about="Choose the service whose key you have, or a server of your own."
    >
      <TypeCards types={types.data} />
    </Page>
  );
}

interface Card {
  to: string;
  title: string;
  about: string;
  kinds: string[];
}

export function TypeCards({ types }: { types: VendorType[] }) {
  const cards = types.filter((type) => !type.built_in).flatMap(cardsOf);
  const groups: [string, Card[]][] = [
    [WORDS.chat, cards.filter(({ kinds }) => kinds.includes("chat"))],
    ["Pictures, films and 3D", cards.filter(({ kinds }) => !kinds.includes("chat"))],
  ];
  return (
    <div className="type-groups">
      {groups.map(([title, each]) => (
        <section key={title} aria-label={title}>
          <h3>{title}</h3>
          <ul className="type-cards">
            {each.map((card) => (
              <li key={card.to}>
                <Link href={card.to} className="card type-card">
                  <strong>{card.title}</strong>
                  <span className="about">{card.about}</span>
                  <span className="kinds">
                    {card.kinds.map((kind) => (
                      <span key={kind} className="tag">
                        {KINDS[kind] ?? kind}
                      </span>
                    ))}
                  </span>
                </Link>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </div>
  );
}

/** A type with usual addresses has a card for each, and one for all others. */
function cardsOf(type: VendorType): Card[] {
  const place = `/admin/vendors/new/${encodeURIComponent(type.type)}`;
  const about = capital(type.about);
  const kinds = type.kinds.length > 0 ? type.kinds : ["Any kind"];
  const presets = Object.entries(presetsOf(type)).map(([title, address]) => ({
    to: `${place}?preset=${encodeURIComponent(title)}`,
    title,
    about: `${new URL(address).host}, in OpenAI's dialect.`,
    kinds: ["chat"],
  }));
  return [...presets, { to: place, title: presets.length > 0 ? `${type.title}: others` : type.title, about, kinds }];
}

/** Usual addresses by title. */
export function presetsOf(type: VendorType): Record<string, string> {
  const { properties } = type.options as { properties?: Record<string, { "x-presets"?: Record<string, string> }> };
  return properties?.base_url?.["x-presets"] ?? {};
}

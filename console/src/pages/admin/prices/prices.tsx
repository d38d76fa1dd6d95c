/** Prices in force with their origin, models without one, and updates from a list. */
import { Alert, Button, Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { call } from "../../../api/call";
import type { PlacePrice, PriceBook, PriceRow } from "../../../api/shapes";
import { ConfirmButton } from "../../../parts/confirm";
import { DataTable } from "../../../parts/data_table";
import { EmptyState } from "../../../parts/empty_state";
import { ErrorNotice } from "../../../parts/error_notice";
import { Page, PageLoading } from "../../../parts/page";
import { StateBadge } from "../../../parts/state_badge";
import { Ago } from "../../../parts/time";
import { toast } from "../../../parts/toasts";
import { Icon } from "../../../shell/icons";
import { WORDS } from "../../../vocabulary";
import { priceWords } from "./price_text";
import { UpdatePrices } from "./update_prices";
import "./prices.css";
import "../settings/settings.css";

export default function Prices() {
  const book = useQuery({
    queryKey: ["admin", "prices"],
    queryFn: ({ signal }) => call<PriceBook>("/admin/v1/prices", { signal }),
  });
  const [updating, setUpdating] = useState(false);
  if (book.error) {
    return (
      <Page title={WORDS.prices}>
        <ErrorNotice error={book.error} onRetry={() => void book.refetch()} />
      </Page>
    );
  }
  if (!book.data) return <PageLoading />;
  const unpriced = book.data.prices.filter(({ price }) => price === null);
  return (
    <Page
      title={WORDS.prices}
      about="What each model costs at each vendor, and where that price comes from."
      actions={
        <Button leftSection={<Icon name="refresh" size={16} />} onClick={() => setUpdating(true)}>
          Update prices
        </Button>
      }
    >
      <div className="panels">
        {unpriced.length > 0 && <Unpriced places={unpriced} />}
        <InForce places={book.data.prices} />
        {book.data.rows.length > 0 && <Rows rows={book.data.rows} />}
      </div>
      <UpdatePrices opened={updating} onClose={() => setUpdating(false)} />
    </Page>
  );
}

function Unpriced({ places }: { places: PlacePrice[] }) {
  const named = places.slice(0, 6).map(({ model }) => model);
  const rest = places.length - named.length;
  return (
    <Alert
      className="notice notice-gate"
      color="gate"
      title={places.length === 1 ? "A model has no price" : `${places.length} models have no price`}
    >
      Their cost is unknown, and keys with a budget cannot use them: {named.join(", ")}
      {rest > 0 && ` and ${rest} more`}. Update the prices from a list, or set one at{" "}
      <Link href="/admin/routes">{WORDS.modelRoutes}</Link>.
    </Alert>
  );
}

const ORIGINS = { file: "from file", row: "from a list", vendor: "vendor's own" };

function InForce({ places }: { places: PlacePrice[] }) {
  const rows = places.toSorted((a, b) => Number(a.price !== null) - Number(b.price !== null));
  if (rows.length === 0) {
    return (
      <EmptyState title={WORDS.noModels} icon="budgets" action={{ label: WORDS.addAVendor, to: "/admin/vendors/new" }}>
        A price appears here for each model at each vendor.
      </EmptyState>
    );
  }
  return (
    <DataTable
      label="Prices in force"
      rows={rows}
      rowKey={(place) => `${place.model} ${place.vendor}`}
      columns={[
        {
          title: WORDS.model,
          cell: (place) => (
            <>
              <span className="mono price-model">{place.model}</span>
              <Text size="xs" c="dimmed">
                {place.vendor}
              </Text>
            </>
          ),
        },
        { title: WORDS.price, cell: (place) => <PriceText price={place.price} /> },
        {
          title: WORDS.origin,
          cell: (place) => (place.origin ? <span className="tag">{ORIGINS[place.origin]}</span> : null),
          wide: true,
        },
        {
          title: "Since",
          cell: (place) => (place.since ? <Ago time={place.since} /> : "always"),
          end: true,
          wide: true,
        },
      ]}
    />
  );
}

function PriceText({ price }: { price: PlacePrice["price"] }) {
  if (price === null) {
    return (
      <span className="tag" data-tone="warn">
        no price
      </span>
    );
  }
  return priceWords(price).map((part) => <div key={part}>{part}</div>);
}

const STATES = { in_force: "active", coming: "pending", ended: "closed" };

function Rows({ rows }: { rows: PriceRow[] }) {
  const client = useQueryClient();
  const remove = async (row: PriceRow) => {
    await call(`/admin/v1/prices/${row.id}`, { method: "DELETE" });
    toast(`The price of ${row.model} has ended.`);
    await client.invalidateQueries({ queryKey: ["admin", "prices"] });
  };
  return (
    <section aria-label="Prices from lists">
      <h2 className="section-title">Prices from lists</h2>
      <DataTable
        label="Prices of the store"
        rows={rows}
        rowKey={(row) => String(row.id)}
        columns={[
          {
            title: WORDS.model,
            cell: (row) => (
              <>
                <span className="mono price-model">{row.model}</span>
                <Text size="xs" c="dimmed">
                  {row.vendor}
                </Text>
              </>
            ),
          },
          { title: WORDS.price, cell: (row) => <PriceText price={row.price} /> },
          { title: WORDS.status, cell: (row) => <StateBadge state={STATES[row.status]} />, wide: true },
          { title: "Source", cell: (row) => <span className="price-model">{row.source}</span>, wide: true },
          {
            title: WORDS.action,
            bare: true,
            end: true,
            cell: (row) =>
              row.status !== "ended" && (
                <ConfirmButton
                  label={WORDS.remove}
                  size="compact-sm"
                  question={`Remove the price of ${row.model}?`}
                  onConfirm={() => remove(row)}
                >
                  It ends now. The price before it applies again. The cost of earlier requests stays.
                </ConfirmButton>
              ),
          },
        ]}
      />
    </section>
  );
}

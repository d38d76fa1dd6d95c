/** The ledger: every amount held, settled, released or given back, and how it is mended. */
import { Text } from "@mantine/core";
import { Link } from "wouter";
import type { LedgerEntry } from "../../api/shapes";
import { useFilters } from "../../parts/address_filters";
import { DataTable } from "../../parts/data_table";
import { EmptyState } from "../../parts/empty_state";
import { Listing } from "../../parts/listing";
import { Money } from "../../parts/money";
import { Page } from "../../parts/page";
import { useListPage } from "../../parts/paging";
import { SearchField } from "../../parts/search_field";
import { StateBadge } from "../../parts/state_badge";
import { Ago } from "../../parts/time";
import { WORDS } from "../../vocabulary";
import { AccountSelect } from "./account_select";
import { LedgerActions } from "./ledger_actions";
import { useAccounts } from "./questions";

export default function Ledger() {
  const [search, change] = useFilters();
  const named = useAccounts("default");
  const newest = useAccounts();
  const subject = search.get("subject");
  const first = named.data && (named.data.find((account) => account.name === "default") ?? newest.data?.[0]);
  const account = search.get("account") ?? first?.id ?? null;
  return (
    <Page
      title={WORDS.ledger}
      about="Entries never change. Corrections are added as new entries."
      actions={
        <>
          <SearchField
            aria-label="Job or chat request"
            placeholder="job_… or chat_…"
            data-shortcut="/"
            w={280}
            value={subject ?? ""}
            onSettle={(value) => change({ subject: value })}
          />
          {!subject && (
            <AccountSelect
              placeholder={WORDS.account}
              value={account}
              onChange={(value) => change({ account: value })}
            />
          )}
        </>
      }
    >
      {(subject || account) && <Entries subject={subject} account={account} />}
      {subject && <LedgerActions subject={subject} />}
    </Page>
  );
}

function Entries({ subject, account }: { subject: string | null; account: string | null }) {
  const entries = useListPage<LedgerEntry>(
    ["admin", "ledger"],
    "/admin/v1/ledger",
    subject ? { subject } : { account },
  );
  return (
    <Listing
      query={entries}
      empty={
        <EmptyState title="No entry" icon="ledger" code="penstock ledger check">
          {subject
            ? "There is no entry for this job or chat request. It may have been free."
            : "Every priced request adds entries: the amount held when it is accepted, and the final charge. To check the ledger, run:"}
        </EmptyState>
      }
    >
      {(rows, stale) => (
        <DataTable
          label={WORDS.ledger}
          rows={rows}
          stale={stale}
          rowKey={(entry) => `${entry.subject} ${entry.kind}`}
          columns={[
            { title: "Entry", cell: (entry) => <StateBadge state={entry.kind} />, tight: true },
            { title: "Subject", cell: (entry) => <Subject entry={entry} /> },
            { title: "Amount", cell: (entry) => <Money amount={entry.amount} />, end: true },
            {
              title: "Overrun",
              cell: (entry) => Number(entry.overrun) > 0 && <Money amount={entry.overrun} />,
              end: true,
              wide: true,
            },
            {
              title: WORDS.key,
              cell: (entry) => <Link href={`/admin/keys/${entry.key}`}>{entry.key}</Link>,
              wide: true,
            },
            { title: WORDS.reason, cell: (entry) => entry.note, wide: true },
            { title: WORDS.when, cell: (entry) => <Ago time={entry.created_at} />, end: true, wide: true },
          ]}
        />
      )}
    </Listing>
  );
}

function Subject({ entry }: { entry: LedgerEntry }) {
  return (
    <Text size="sm" className="mono" component="span" style={{ overflowWrap: "anywhere" }}>
      <Link href={`/admin/ledger?subject=${encodeURIComponent(entry.subject)}`}>{entry.subject}</Link>
    </Text>
  );
}

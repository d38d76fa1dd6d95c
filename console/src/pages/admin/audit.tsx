/** Audit log. */
import { Select, Text } from "@mantine/core";
import { Link } from "wouter";
import type { AuditEntry } from "../../api/shapes";
import { useFilters } from "../../parts/address_filters";
import { DataTable } from "../../parts/data_table";
import { EmptyState } from "../../parts/empty_state";
import { Listing } from "../../parts/listing";
import { Page } from "../../parts/page";
import { useListPage } from "../../parts/paging";
import { Ago } from "../../parts/time";
import { WORDS } from "../../vocabulary";
import { AccountSelect } from "./account_select";
import { useAccounts } from "./questions";

const ACTIONS: AuditEntry["action"][] = [
  "account.created",
  "account.renamed",
  "account.limited",
  "account.logged",
  "account.closed",
  "account.reopened",
  "key.created",
  "key.changed",
  "key.rotated",
  "key.revoked",
  "budget.set",
  "budget.removed",
  "ledger.refunded",
  "ledger.released",
  "ledger.settled",
  "webhook.disabled",
  "audit.trimmed",
  "person.added",
  "person.changed",
  "person.deactivated",
  "person.activated",
  "member.added",
  "member.changed",
  "member.removed",
  "key_policy.set",
  "settings.changed",
  "settings.restored",
  "price.set",
  "price.removed",
  "content.read",
  "content.deleted",
];

export default function Audit() {
  const [search, change] = useFilters();
  const account = search.get("account");
  const action = search.get("action");
  const entries = useListPage<AuditEntry>(["admin", "audit"], "/admin/v1/audit", { account, action });
  const accounts = useAccounts();
  const names = new Map(accounts.data?.map(({ id, name }) => [id, name]));
  return (
    <Page
      title={WORDS.auditLog}
      about="All changes, newest first."
      actions={
        <>
          <Select
            aria-label={WORDS.action}
            placeholder="All actions"
            data={ACTIONS}
            clearable
            clearButtonProps={{ "aria-label": "All actions" }}
            value={action}
            onChange={(value) => change({ action: value })}
            w={170}
          />
          <AccountSelect
            placeholder={WORDS.allAccounts}
            clearable
            value={account}
            onChange={(value) => change({ account: value })}
          />
        </>
      }
    >
      <Listing
        query={entries}
        empty={
          <EmptyState title="No matching changes" icon="audit">
            Changes to accounts, keys, budgets and the ledger are listed here, made in the console, by the API or on the
            command line.
          </EmptyState>
        }
      >
        {(rows, stale) => (
          <DataTable
            label={WORDS.auditLog}
            rows={rows}
            stale={stale}
            rowKey={(entry) => entry.id}
            columns={[
              { title: WORDS.when, cell: (entry) => <Ago time={entry.created_at} />, tight: true, wide: true },
              { title: "Who", cell: (entry) => entry.actor, tight: true, wide: true },
              { title: "What", cell: (entry) => <What entry={entry} />, tight: true },
              {
                title: "Of",
                cell: (entry) => <Subject entry={entry} name={names.get(entry.account_id ?? "")} />,
              },
              { title: "Detail", cell: (entry) => <Detail detail={entry.detail} />, wide: true },
            ]}
          />
        )}
      </Listing>
    </Page>
  );
}

/** On a phone the time stands here, in place of a column. */
function What({ entry }: { entry: AuditEntry }) {
  return (
    <>
      <strong>{entry.action}</strong>
      <Text size="xs" c="dimmed" data-phone>
        <Ago time={entry.created_at} />
      </Text>
    </>
  );
}

function Subject({ entry, name }: { entry: AuditEntry; name: string | undefined }) {
  const page = pageOf(entry);
  return (
    <>
      <Text size="sm" className="mono" component="div" truncate maw="min(30ch, 46vw)" title={entry.subject}>
        {page ? <Link href={page}>{entry.subject}</Link> : entry.subject}
      </Text>
      {name && (
        <Text size="xs" c="dimmed">
          {name}
        </Text>
      )}
    </>
  );
}

function pageOf({ action, subject }: AuditEntry): string | null {
  if (subject.startsWith("acct_")) return `/admin/accounts/${subject}`;
  if (action.startsWith("key.") || action.startsWith("budget.")) return `/admin/keys/${subject}`;
  if (action.startsWith("ledger.")) return `/admin/ledger?subject=${encodeURIComponent(subject)}`;
  return null;
}

/** Return old and new values, without empty ones. */
function Detail({ detail }: { detail: Record<string, unknown> }) {
  const shown = Object.entries(detail).filter(([, value]) => !isEmpty(value));
  return (
    <Text size="xs" c="dimmed" style={{ overflowWrap: "anywhere" }}>
      {shown
        .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
        .join(" · ")}
    </Text>
  );
}

function isEmpty(value: unknown): boolean {
  return value === null || value === "" || (typeof value === "object" && Object.keys(value).length === 0);
}

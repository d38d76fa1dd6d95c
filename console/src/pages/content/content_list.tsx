/** List of logged requests, without their content. */
import { Select } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "wouter";
import { call } from "../../api/call";
import type { ContentSummary, Key } from "../../api/shapes";
import { useFilters } from "../../parts/address_filters";
import { ConfirmButton } from "../../parts/confirm";
import { DataTable } from "../../parts/data_table";
import { EmptyState } from "../../parts/empty_state";
import { ModelFilter } from "../../parts/job_search";
import { Listing } from "../../parts/listing";
import { Money } from "../../parts/money";
import { formatCount } from "../../parts/numbers";
import { Page } from "../../parts/page";
import { useListPage } from "../../parts/paging";
import { StateBadge } from "../../parts/state_badge";
import { Ago } from "../../parts/time";
import { WORDS } from "../../vocabulary";

const CONTENT = "/api/v1/content";

export function ContentList() {
  const [search, change] = useFilters();
  const key = search.get("key");
  const records = useListPage<ContentSummary>(["content"], CONTENT, { key, model: search.get("model") });
  return (
    <Page
      title={WORDS.contentLog}
      about="Prompts and answers of your account, redacted. The audit log notes each look at a record."
      actions={
        <>
          <KeyFilter value={key} onChange={(value) => change({ key: value })} />
          <ModelFilter />
          <DeleteAll of={key} />
        </>
      }
    >
      <Listing
        query={records}
        empty={
          <EmptyState title="No logged requests" icon="text">
            Requests appear here if an administrator has switched on the content log of this account or of one of its
            keys.
          </EmptyState>
        }
      >
        {(rows, stale) => (
          <DataTable
            label={WORDS.contentLog}
            rows={rows}
            stale={stale}
            rowKey={(row) => row.id}
            columns={[
              { title: WORDS.when, cell: (row) => <When row={row} />, tight: true },
              { title: WORDS.model, cell: (row) => row.model },
              { title: WORDS.kind, cell: (row) => row.endpoint, tight: true, wide: true },
              { title: WORDS.key, cell: (row) => <span className="mono">{row.key_id}</span>, tight: true, wide: true },
              { title: WORDS.status, cell: (row) => <StateBadge state={row.status} />, tight: true },
              { title: WORDS.tokens, cell: tokensOf, end: true, tight: true, wide: true },
              {
                title: WORDS.cost,
                cell: (row) => (row.cost === null ? "" : <Money amount={row.cost} />),
                end: true,
                tight: true,
                wide: true,
              },
            ]}
          />
        )}
      </Listing>
    </Page>
  );
}

function When({ row }: { row: ContentSummary }) {
  return (
    <Link href={`/content/${row.id}`}>
      <Ago time={row.created_at} />
    </Link>
  );
}

function tokensOf({ prompt_tokens, completion_tokens }: ContentSummary): string {
  if (prompt_tokens === null || completion_tokens === null) return "";
  return formatCount(prompt_tokens + completion_tokens);
}

function KeyFilter({ value, onChange }: { value: string | null; onChange: (value: string | null) => void }) {
  const keys = useQuery({
    queryKey: ["account keys"],
    queryFn: ({ signal }) => call<{ data: Key[] }>("/api/v1/account/keys", { signal }).then((list) => list.data),
  });
  const known = keys.data?.map((key) => ({ value: key.public_id, label: key.name || key.public_id })) ?? [];
  return (
    <Select
      label={WORDS.key}
      placeholder="All keys"
      data={known}
      searchable
      clearable
      clearButtonProps={{ "aria-label": "All keys" }}
      value={value}
      onChange={onChange}
      w={180}
    />
  );
}

function DeleteAll({ of: key }: { of: string | null }) {
  const client = useQueryClient();
  const remove = async () => {
    await call(CONTENT, { method: "DELETE", query: { key } });
    await client.invalidateQueries({ queryKey: ["content"] });
  };
  return (
    <ConfirmButton
      label="Delete all"
      question={key ? "Delete the records of this key?" : "Delete all records?"}
      deed={WORDS.delete}
      onConfirm={remove}
    >
      {key ? "All logged requests of this key are deleted." : "All logged requests of the account are deleted."} This
      cannot be undone. Later requests are still logged.
    </ConfirmButton>
  );
}

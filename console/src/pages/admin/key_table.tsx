import { Text } from "@mantine/core";
import { Link } from "wouter";
import type { Key } from "../../api/shapes";
import { type Column, DataTable } from "../../parts/data_table";
import { StateBadge } from "../../parts/state_badge";
import { Ago } from "../../parts/time";
import { WORDS } from "../../vocabulary";

/** `ofOne`: all belong to one account, which is not repeated in each row. */
export function KeyTable({ keys, stale = false, ofOne = false }: { keys: Key[]; stale?: boolean; ofOne?: boolean }) {
  const account: Column<Key> = {
    title: WORDS.account,
    cell: (key) => <Link href={`/admin/accounts/${key.account_id}`}>{key.account}</Link>,
  };
  return (
    <DataTable
      label={WORDS.keys}
      rows={keys}
      stale={stale}
      rowKey={(key) => key.public_id}
      columns={[
        { title: WORDS.key, cell: (key) => <Name of={key} /> },
        { title: WORDS.status, cell: (key) => <StateBadge state={key.status} />, tight: true },
        ...(ofOne ? [] : [account]),
        { title: WORDS.endpoints, cell: (key) => key.endpoints.join(", ") || "everything", wide: true },
        { title: WORDS.models, cell: (key) => key.models.join(", ") || "all", wide: true },
        {
          title: WORDS.expires,
          cell: (key) => (key.expires_at ? <Ago time={key.expires_at} /> : "never"),
          end: true,
          wide: true,
        },
      ]}
    />
  );
}

function Name({ of: key }: { of: Key }) {
  return (
    <>
      <Link href={`/admin/keys/${key.public_id}`}>{key.name || key.public_id}</Link>
      {key.name && (
        <Text size="xs" c="dimmed" className="mono">
          {key.public_id}
        </Text>
      )}
    </>
  );
}

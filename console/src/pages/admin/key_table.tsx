import { Text } from "@mantine/core";
import { Link } from "wouter";
import type { Key } from "../../api/shapes";
import { DataTable } from "../../parts/data_table";
import { StateBadge } from "../../parts/state_badge";
import { Ago } from "../../parts/time";

export function KeyTable({ keys, stale = false }: { keys: Key[]; stale?: boolean }) {
  return (
    <DataTable
      label="Keys"
      rows={keys}
      stale={stale}
      rowKey={(key) => key.public_id}
      columns={[
        { title: "Key", cell: (key) => <Name of={key} /> },
        { title: "State", cell: (key) => <StateBadge state={key.status} />, tight: true },
        { title: "Account", cell: (key) => <Link href={`/admin/accounts/${key.account_id}`}>{key.account}</Link> },
        { title: "May", cell: (key) => key.endpoints.join(", ") || "everything", wide: true },
        { title: "Models", cell: (key) => key.models.join(", ") || "all", wide: true },
        {
          title: "Ends",
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

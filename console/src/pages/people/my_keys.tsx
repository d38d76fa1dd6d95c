/** The person's own keys of this account. */
import { Button, TextInput } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../../api/call";
import type { IssuedKey, Key } from "../../api/shapes";
import { ConfirmButton } from "../../parts/confirm";
import { DataTable } from "../../parts/data_table";
import { EmptyState } from "../../parts/empty_state";
import { ErrorNotice } from "../../parts/error_notice";
import { Page } from "../../parts/page";
import { SecretOnce } from "../../parts/secret_once";
import { Ago } from "../../parts/time";
import { Icon } from "../../shell/icons";
import { WORDS } from "../../vocabulary";
import { FormModal } from "../admin/form_modal";

const OWN = "/api/v1/keys";

export default function MyKeys() {
  const client = useQueryClient();
  const [making, setMaking] = useState(false);
  const [name, setName] = useState("");
  const [issued, setIssued] = useState<IssuedKey | null>(null);
  const keys = useQuery({
    queryKey: ["own keys"],
    queryFn: ({ signal }) => call<{ data: Key[] }>(OWN, { signal }).then((list) => list.data),
  });
  const refresh = () => client.invalidateQueries({ queryKey: ["own keys"] });
  const make = async () => {
    setIssued(await call<IssuedKey>(OWN, { body: { name } }));
    setName("");
    await refresh();
  };
  return (
    <Page
      title={WORDS.myKeys}
      about="Your own keys of this account. They end when you leave it."
      actions={
        <Button leftSection={<Icon name="plus" size={16} />} onClick={() => setMaking(true)}>
          {WORDS.newKey}
        </Button>
      }
    >
      {keys.error && <ErrorNotice error={keys.error} />}
      {keys.data?.length === 0 && (
        <EmptyState title="No keys of your own" icon="keys">
          Make one for each program that you use.
        </EmptyState>
      )}
      {keys.data && keys.data.length > 0 && (
        <DataTable
          label={WORDS.myKeys}
          rows={keys.data}
          rowKey={(key) => key.public_id}
          columns={[
            { title: WORDS.name, cell: (key) => key.name || key.public_id },
            { title: WORDS.status, cell: (key) => key.status, tight: true },
            { title: WORDS.created, cell: (key) => <Ago time={key.created_at} />, tight: true, wide: true },
            {
              title: WORDS.action,
              cell: (key) => key.status === "active" && <Revoke of={key} onDone={refresh} />,
              end: true,
              tight: true,
            },
          ]}
        />
      )}
      <FormModal title={WORDS.newKey} opened={making} onClose={() => setMaking(false)} deed="Create" onSubmit={make}>
        <TextInput
          label={WORDS.name}
          description="The program that uses it"
          placeholder="notebook"
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
      </FormModal>
      <SecretOnce
        title={WORDS.newKey}
        secret={issued?.key ?? null}
        about="Send it as Authorization: Bearer."
        onClose={() => setIssued(null)}
      />
    </Page>
  );
}

function Revoke({ of, onDone }: { of: Key; onDone: () => Promise<void> }) {
  const revoke = async () => {
    await call(`${OWN}/${of.public_id}`, { method: "DELETE" });
    await onDone();
  };
  return (
    <ConfirmButton
      label={WORDS.revoke}
      question="Revoke this key?"
      deed="Revoke the key"
      size="compact-sm"
      onConfirm={revoke}
    >
      Programs that use it are refused within a second. This cannot be undone.
    </ConfirmButton>
  );
}

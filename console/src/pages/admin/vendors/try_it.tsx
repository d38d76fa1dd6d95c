/** From a vendor's models to the playground. It needs an account's key, which can be made here. */
import { Button, Group, Select, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation } from "wouter";
import { call } from "../../../api/call";
import type { Account, IssuedKey } from "../../../api/shapes";
import { ErrorNotice } from "../../../parts/error_notice";
import { Panel } from "../../../parts/facts";
import { SecretOnce } from "../../../parts/secret_once";
import { keep, useSession } from "../../../session";
import { Icon } from "../../../shell/icons";
import { WORDS } from "../../../vocabulary";
import { AccountSelect } from "../account_select";
import { useAccounts } from "../questions";

export function TryIt({ models }: { models: string[] }) {
  const [, navigate] = useLocation();
  const { account: signedIn } = useSession();
  const [model, setModel] = useState<string | null>(null);
  const [issued, setIssued] = useState<IssuedKey | null>(null);
  const chosen = model !== null && models.includes(model) ? model : (models[0] ?? null);
  const open = () => navigate(`/playground/${encodeURIComponent(chosen ?? "")}`);
  return (
    <Panel title={WORDS.tryIt}>
      <Group align="end" gap="sm">
        <Select label={WORDS.model} data={models} searchable value={chosen} onChange={setModel} w={300} maw="100%" />
        {signedIn ? (
          <Button leftSection={<Icon name="playground" size={16} />} onClick={open}>
            {WORDS.openThePlayground}
          </Button>
        ) : (
          <MakeKey onIssued={setIssued} />
        )}
      </Group>
      {!signedIn && (
        <Text size="sm" c="dimmed" mt="sm">
          The administrator's key cannot generate: an account pays for that. One click makes a key of the account, shows
          it once, and uses it in this tab.
        </Text>
      )}
      <SecretOnce
        title={WORDS.newKey}
        secret={issued?.key ?? null}
        about={`For ${issued?.account}. This tab uses it from now on; programs send it as Authorization: Bearer.`}
        onClose={() => {
          if (!issued) return;
          keep("account", issued.key);
          open();
        }}
      />
    </Panel>
  );
}

function MakeKey({ onIssued }: { onIssued: (key: IssuedKey) => void }) {
  const client = useQueryClient();
  const accounts = useAccounts();
  const [chosen, setChosen] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const open = accounts.data?.filter((each) => !each.closed_at) ?? [];
  const account = chosen ?? (open.find(({ name }) => name === "default") ?? open[0])?.id ?? null;
  const make = async () => {
    setBusy(true);
    setError(null);
    try {
      const owner = account ?? (await call<Account>("/admin/v1/accounts", { body: { name: "default" } })).id;
      onIssued(await call<IssuedKey>("/admin/v1/keys", { body: { account: owner, name: "console" } }));
      await client.invalidateQueries({ queryKey: ["admin", "keys"] });
    } catch (caught) {
      setError(caught);
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      {open.length > 1 && <AccountSelect label={WORDS.account} open value={account} onChange={setChosen} />}
      <Button leftSection={<Icon name="keys" size={16} />} loading={busy} disabled={!accounts.data} onClick={make}>
        Make a key and try it
      </Button>
      {error !== null && <ErrorNotice error={error} />}
    </>
  );
}

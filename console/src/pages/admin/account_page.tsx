/** One account: its limits, budgets and keys. */
import { Button, Group, Switch, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { call } from "../../api/call";
import type { Account } from "../../api/shapes";
import { Identifier } from "../../parts/code_block";
import { ConfirmButton } from "../../parts/confirm";
import { ErrorNotice } from "../../parts/error_notice";
import { BackTo, Facts, Panel } from "../../parts/facts";
import { formatCount } from "../../parts/numbers";
import { Page, PageLoading } from "../../parts/page";
import { StateBadge } from "../../parts/state_badge";
import { Ago } from "../../parts/time";
import { WORDS } from "../../vocabulary";
import { BudgetBars, SetBudget } from "./budget_panel";
import { FormModal } from "./form_modal";
import { KeyTable } from "./key_table";
import { LIMIT_NAMES, LimitsFields } from "./limits_fields";
import { useKeysOf } from "./questions";

export function AccountPage({ id }: { id: string }) {
  const path = `/admin/v1/accounts/${encodeURIComponent(id)}`;
  const account = useQuery({
    queryKey: ["admin", "account", id],
    queryFn: ({ signal }) => call<Account>(path, { signal }),
  });
  if (account.data) return <Whole account={account.data} path={path} />;
  if (!account.error) return <PageLoading />;
  return (
    <Page title={WORDS.account} back={<BackTo to="/admin/accounts">{WORDS.accounts}</BackTo>}>
      <ErrorNotice error={account.error} onRetry={() => void account.refetch()} />
    </Page>
  );
}

function Whole({ account, path }: { account: Account; path: string }) {
  const keys = useKeysOf(account.id);
  return (
    <Page
      back={<BackTo to="/admin/accounts">{WORDS.accounts}</BackTo>}
      title={account.name}
      about={<StateBadge state={account.closed_at ? "closed" : "active"} />}
      actions={<Actions account={account} path={path} />}
    >
      <div className="split">
        <div>
          <Panel title={WORDS.budgets}>
            <BudgetBars path={path} budgets={[...account.budgets, ...account.tag_budgets]} name={account.name} />
            <Group mt="md">
              <SetBudget path={path} name={account.name}>
                {WORDS.setABudget}
              </SetBudget>
              <SetBudget path={path} name="a tag" tag="">
                {WORDS.setATagBudget}
              </SetBudget>
            </Group>
          </Panel>
          {keys.error && <ErrorNotice error={keys.error} onRetry={() => void keys.refetch()} />}
          {keys.data && keys.data.length > 0 && <KeyTable keys={keys.data} ofOne />}
        </div>
        <div>
          <Panel title={WORDS.details}>
            <Facts
              facts={[
                [WORDS.id, <Identifier key="id" id={account.id} />],
                [WORDS.created, <Ago key="made" time={account.created_at} />],
                ["Closed", account.closed_at && <Ago key="closed" time={account.closed_at} />],
                ["Keys in use", String(account.keys)],
                [WORDS.contentLog, account.content_log ? "on" : "off"],
                ...LIMIT_NAMES.map(([name, label]): [string, string] => [
                  label,
                  account.limits[name] === null ? "no limit" : formatCount(account.limits[name]),
                ]),
              ]}
            />
          </Panel>
        </div>
      </div>
    </Page>
  );
}

function Actions({ account, path }: { account: Account; path: string }) {
  const client = useQueryClient();
  const [changing, { open, close }] = useDisclosure(false);
  const [name, setName] = useState(account.name);
  const [limits, setLimits] = useState(account.limits);
  const [logged, setLogged] = useState(account.content_log);
  const change = async (body: object) => {
    await call(path, { method: "PATCH", body });
    await client.invalidateQueries({ queryKey: ["admin"] });
  };
  const begin = () => {
    setName(account.name);
    setLimits(account.limits);
    setLogged(account.content_log);
    open();
  };
  return (
    <>
      <Button component={Link} href={`/admin/keys?new=${account.id}`} disabled={account.closed_at !== null}>
        {WORDS.newKey}
      </Button>
      <Button variant="default" component={Link} href={`/admin/ledger?account=${account.id}`}>
        {WORDS.ledger}
      </Button>
      <Button variant="default" onClick={begin}>
        {WORDS.edit}
      </Button>
      {account.closed_at ? (
        <ConfirmButton
          label="Reopen"
          question="Reopen this account?"
          harmless
          onConfirm={() => change({ closed: false })}
        >
          Keys that are neither revoked nor expired work again.
        </ConfirmButton>
      ) : (
        <ConfirmButton
          label="Close"
          question={`Close ${account.name}?`}
          deed="Close it"
          onConfirm={() => change({ closed: true })}
        >
          All its keys are refused. Running jobs finish and results stay. You can reopen the account later.
        </ConfirmButton>
      )}
      <FormModal
        title="Edit account"
        opened={changing}
        onClose={close}
        deed="Save"
        ready={name.trim() !== ""}
        onSubmit={() => change({ name, limits, content_log: logged })}
      >
        <TextInput label={WORDS.name} required value={name} onChange={(event) => setName(event.currentTarget.value)} />
        <Switch
          label={WORDS.contentLog}
          description="Prompts and answers of its keys are kept, redacted, for its owners and admins"
          checked={logged}
          onChange={(event) => setLogged(event.currentTarget.checked)}
        />
        <LimitsFields limits={limits} onChange={setLimits} />
      </FormModal>
    </>
  );
}

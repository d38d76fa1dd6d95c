/** One person: roles in accounts, sessions in the console, and the right to administer the server. */
import { Button, Select } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { call } from "../../../api/call";
import { ROLES } from "../../../api/person";
import type { Person, SessionRecord } from "../../../api/shapes";
import { Identifier } from "../../../parts/code_block";
import { ConfirmButton } from "../../../parts/confirm";
import { DataTable } from "../../../parts/data_table";
import { ErrorNotice } from "../../../parts/error_notice";
import { BackTo, Facts, Panel } from "../../../parts/facts";
import { Page, PageLoading } from "../../../parts/page";
import { StateBadge } from "../../../parts/state_badge";
import { Ago } from "../../../parts/time";
import { WORDS } from "../../../vocabulary";
import { nameBrowser } from "../../people/browser_name";
import { AccountSelect } from "../account_select";
import { FormModal } from "../form_modal";

const KEY = ["admin", "person"];

export function PersonPage({ id }: { id: string }) {
  const path = `/admin/v1/people/${encodeURIComponent(id)}`;
  const client = useQueryClient();
  const person = useQuery({ queryKey: [...KEY, id], queryFn: ({ signal }) => call<Person>(path, { signal }) });
  const refresh = () => client.invalidateQueries({ queryKey: ["admin"] });
  const back = <BackTo to="/admin/people">{WORDS.allPeople}</BackTo>;
  if (person.error) {
    return (
      <Page title="Person" back={back}>
        <ErrorNotice error={person.error} onRetry={() => void person.refetch()} />
      </Page>
    );
  }
  if (!person.data) return <PageLoading />;
  const each = { person: person.data, path, onDone: refresh };
  return (
    <Page
      back={back}
      title={person.data.name || person.data.email}
      about={<StateBadge state={person.data.deactivated_at ? "deactivated" : "active"} />}
      actions={<Actions {...each} />}
    >
      <div className="split">
        <div>
          <RolePanel {...each} />
          <SessionPanel {...each} />
        </div>
        <Panel title={WORDS.details}>
          <Facts
            facts={[
              [WORDS.id, <Identifier key="id" id={person.data.id} />],
              [WORDS.email, person.data.email],
              [WORDS.operator, person.data.operator ? "yes" : "no"],
              [WORDS.created, <Ago key="made" time={person.data.created_at} />],
              [WORDS.signedIn, person.data.signed_in_at && <Ago key="in" time={person.data.signed_in_at} />],
              ["Deactivated", person.data.deactivated_at && <Ago key="out" time={person.data.deactivated_at} />],
            ]}
          />
        </Panel>
      </div>
    </Page>
  );
}

interface Props {
  person: Person;
  path: string;
  onDone: () => Promise<void>;
}

function Actions({ person, path, onDone }: Props) {
  const change = async (body: object) => {
    await call(path, { method: "PATCH", body });
    await onDone();
  };
  if (person.deactivated_at) {
    return (
      <ConfirmButton
        label="Activate"
        question={`Activate ${person.email}?`}
        harmless
        onConfirm={() => change({ active: true })}
      >
        The person can have roles and sign in again. Give the roles again.
      </ConfirmButton>
    );
  }
  return (
    <>
      <ConfirmButton
        label={person.operator ? "Take away operator" : "Make operator"}
        question={person.operator ? "No longer an operator?" : "Make an operator?"}
        onConfirm={() => change({ operator: !person.operator })}
      >
        Operators administer the whole server: accounts, vendors, prices and people. It applies within a second.
      </ConfirmButton>
      <ConfirmButton
        label="Deactivate"
        question={`Deactivate ${person.email}?`}
        deed="Deactivate the person"
        onConfirm={() => change({ active: false })}
      >
        All roles, keys and sessions of the person end within a second, and sign-in is refused.
      </ConfirmButton>
    </>
  );
}

function RolePanel({ person, path, onDone }: Props) {
  const [giving, { open, close }] = useDisclosure(false);
  const [account, setAccount] = useState<string | null>(null);
  const [role, setRole] = useState<string | null>("member");
  const give = async () => {
    await call(`${path}/accounts/${account}`, { method: "PUT", body: { role } });
    await onDone();
  };
  const remove = async (id: string) => {
    await call(`${path}/accounts/${id}`, { method: "DELETE" });
    await onDone();
  };
  const tools = !person.deactivated_at && (
    <Button size="compact-sm" variant="default" onClick={open}>
      Give a role
    </Button>
  );
  return (
    <Panel title={WORDS.roles} tools={tools}>
      {person.accounts.length === 0 && "No role in any account."}
      {person.accounts.length > 0 && (
        <DataTable
          label={WORDS.roles}
          rows={person.accounts}
          rowKey={(each) => each.account_id}
          columns={[
            {
              title: WORDS.account,
              cell: (each) => <Link href={`/admin/accounts/${each.account_id}`}>{each.account}</Link>,
            },
            { title: WORDS.role, cell: (each) => each.role, tight: true },
            {
              title: "Given",
              cell: (each) => (each.source === "local" ? "here" : `by ${each.source}`),
              tight: true,
              wide: true,
            },
            {
              title: WORDS.action,
              cell: (each) => (
                <ConfirmButton
                  label={WORDS.remove}
                  question={`Remove the role in ${each.account}?`}
                  deed="Remove the role"
                  size="compact-sm"
                  onConfirm={() => remove(each.account_id)}
                >
                  The person's keys in this account stop working within a second.
                </ConfirmButton>
              ),
              end: true,
              tight: true,
            },
          ]}
        />
      )}
      <FormModal
        title="Give a role"
        opened={giving}
        onClose={close}
        deed="Save"
        ready={account !== null && role !== null}
        onSubmit={give}
      >
        <AccountSelect label={WORDS.account} required open value={account} onChange={setAccount} />
        <Select label={WORDS.role} data={ROLES} value={role} onChange={setRole} allowDeselect={false} />
      </FormModal>
    </Panel>
  );
}

function SessionPanel({ person, path, onDone }: Props) {
  const sessions = useQuery({
    queryKey: [...KEY, person.id, "sessions"],
    queryFn: ({ signal }) => call<{ data: SessionRecord[] }>(`${path}/sessions`, { signal }).then((list) => list.data),
  });
  const end = async () => {
    await call(`${path}/sessions`, { method: "DELETE" });
    await onDone();
  };
  const tools = sessions.data && sessions.data.length > 0 && (
    <ConfirmButton label="Sign out" question={`Sign ${person.email} out?`} size="compact-sm" onConfirm={end}>
      All sessions of the person in the console end within a second. Their keys keep working.
    </ConfirmButton>
  );
  return (
    <Panel title="Sessions" tools={tools}>
      {sessions.error && <ErrorNotice error={sessions.error} />}
      {sessions.data?.length === 0 && "Not signed in to the console."}
      {sessions.data && sessions.data.length > 0 && (
        <DataTable
          label="Sessions"
          rows={sessions.data}
          rowKey={(session) => session.id}
          columns={[
            { title: WORDS.browser, cell: nameBrowser },
            { title: WORDS.signedIn, cell: (session) => <Ago time={session.created_at} />, tight: true, wide: true },
            { title: WORDS.lastUsed, cell: (session) => <Ago time={session.seen_at} />, tight: true },
          ]}
        />
      )}
    </Panel>
  );
}

import { Button, Select, Switch, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { call } from "../../../api/call";
import { ROLES } from "../../../api/person";
import type { Person } from "../../../api/shapes";
import { useFilters } from "../../../parts/address_filters";
import { DataTable } from "../../../parts/data_table";
import { EmptyState } from "../../../parts/empty_state";
import { Listing } from "../../../parts/listing";
import { Page } from "../../../parts/page";
import { useListPage } from "../../../parts/paging";
import { StateBadge } from "../../../parts/state_badge";
import { Ago } from "../../../parts/time";
import { Icon } from "../../../shell/icons";
import { WORDS } from "../../../vocabulary";
import { AccountSelect } from "../account_select";
import { FormModal } from "../form_modal";

const PATH = "/admin/v1/people";

export function PersonList() {
  const [search, change] = useFilters();
  const account = search.get("account");
  const people = useListPage<Person>(["admin", "people"], PATH, { account });
  const [adding, { open, close }] = useDisclosure(false);
  return (
    <Page
      title={WORDS.allPeople}
      about="Everybody who can use this server, with their roles in accounts. Operators administer the whole server."
      actions={
        <>
          <AccountSelect
            placeholder={WORDS.allAccounts}
            clearable
            value={account}
            onChange={(id) => change({ account: id })}
          />
          <Button leftSection={<Icon name="plus" size={16} />} onClick={open}>
            {WORDS.addAPerson}
          </Button>
        </>
      }
    >
      <Listing
        query={people}
        empty={
          <EmptyState title={WORDS.noPeople} icon="accounts" action={{ label: WORDS.addAPerson, onClick: open }}>
            People come by sign-in, or you add them by their e-mail addresses.
          </EmptyState>
        }
      >
        {(rows, stale) => (
          <DataTable
            label={WORDS.allPeople}
            rows={rows}
            rowKey={(person) => person.id}
            stale={stale}
            columns={[
              { title: WORDS.email, cell: (person) => <Link href={`/admin/people/${person.id}`}>{person.email}</Link> },
              { title: WORDS.name, cell: (person) => person.name, wide: true },
              { title: WORDS.roles, cell: (person) => <Roles person={person} /> },
              {
                title: WORDS.status,
                cell: (person) => <StateBadge state={person.deactivated_at ? "deactivated" : "active"} />,
                tight: true,
                wide: true,
              },
              {
                title: WORDS.signedIn,
                cell: (person) => (person.signed_in_at ? <Ago time={person.signed_in_at} /> : "never"),
                end: true,
                wide: true,
              },
            ]}
          />
        )}
      </Listing>
      <AddPerson opened={adding} onClose={close} />
    </Page>
  );
}

function Roles({ person }: { person: Person }) {
  return (
    <>
      {person.operator && <span className="tag">operator</span>}
      {person.accounts.map((each) => (
        <div key={each.account_id}>
          {each.account}: {each.role}
        </div>
      ))}
    </>
  );
}

function AddPerson({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const client = useQueryClient();
  const [, navigate] = useLocation();
  const [email, setEmail] = useState("");
  const [name, setName] = useState("");
  const [operator, setOperator] = useState(false);
  const [account, setAccount] = useState<string | null>(null);
  const [role, setRole] = useState<string | null>("member");
  const add = async () => {
    const person = await call<Person>(PATH, { body: { email, name: name || null, operator } });
    if (account) await call(`${PATH}/${person.id}/accounts/${account}`, { method: "PUT", body: { role } });
    setEmail("");
    setName("");
    await client.invalidateQueries({ queryKey: ["admin", "people"] });
    navigate(`/admin/people/${person.id}`);
  };
  return (
    <FormModal
      title={WORDS.addAPerson}
      opened={opened}
      onClose={onClose}
      deed="Add"
      ready={email.trim() !== ""}
      onSubmit={add}
    >
      <TextInput
        label={WORDS.email}
        description="The address with which the person signs in."
        type="email"
        required
        data-autofocus
        value={email}
        onChange={(event) => setEmail(event.currentTarget.value)}
      />
      <TextInput label={WORDS.name} value={name} onChange={(event) => setName(event.currentTarget.value)} />
      <AccountSelect
        label={WORDS.account}
        placeholder="None yet"
        clearable
        open
        value={account}
        onChange={setAccount}
      />
      {account && <Select label={WORDS.role} data={ROLES} value={role} onChange={setRole} allowDeselect={false} />}
      <Switch
        label={WORDS.operator}
        description="May administer the whole server: accounts, vendors, prices and people"
        checked={operator}
        onChange={(event) => setOperator(event.currentTarget.checked)}
      />
    </FormModal>
  );
}

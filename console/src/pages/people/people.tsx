/** The people of the account and their roles. */
import { Button, Select, TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../../api/call";
import { ROLES } from "../../api/person";
import type { Member } from "../../api/shapes";
import { ConfirmButton } from "../../parts/confirm";
import { DataTable } from "../../parts/data_table";
import { EmptyState } from "../../parts/empty_state";
import { Listing } from "../../parts/listing";
import { Page } from "../../parts/page";
import { useListPage } from "../../parts/paging";
import { Icon } from "../../shell/icons";
import { WORDS } from "../../vocabulary";
import { FormModal } from "../admin/form_modal";

const PATH = "/api/v1/people";

export default function People() {
  const client = useQueryClient();
  const [adding, setAdding] = useState(false);
  const [email, setEmail] = useState("");
  const [role, setRole] = useState<string | null>("member");
  const people = useListPage<Member>(["people"], PATH, {});
  const refresh = () => client.invalidateQueries({ queryKey: ["people"] });
  const add = async () => {
    await call<Member>(PATH, { body: { email, role } });
    setEmail("");
    await refresh();
  };
  return (
    <Page
      title={WORDS.people}
      about="The people of this account and their roles. Only owners change owners."
      actions={
        <Button leftSection={<Icon name="plus" size={16} />} onClick={() => setAdding(true)}>
          Add or change a person
        </Button>
      }
    >
      <Listing
        query={people}
        empty={
          <EmptyState title={WORDS.noPeople} icon="accounts">
            Add one by their e-mail address.
          </EmptyState>
        }
      >
        {(rows, stale) => (
          <DataTable
            label={WORDS.people}
            rows={rows}
            rowKey={(person) => person.id}
            stale={stale}
            columns={[
              { title: WORDS.email, cell: (person) => person.email },
              { title: WORDS.name, cell: (person) => person.name, wide: true },
              { title: WORDS.role, cell: (person) => person.role, tight: true },
              {
                title: WORDS.action,
                cell: (person) => <Remove person={person} onDone={refresh} />,
                end: true,
                tight: true,
              },
            ]}
          />
        )}
      </Listing>
      <FormModal
        title="Add or change a person"
        opened={adding}
        onClose={() => setAdding(false)}
        deed="Save"
        ready={email !== "" && role !== null}
        onSubmit={add}
      >
        <TextInput
          label={WORDS.email}
          type="email"
          required
          value={email}
          onChange={(event) => setEmail(event.currentTarget.value)}
        />
        <Select label={WORDS.role} data={ROLES} value={role} onChange={setRole} allowDeselect={false} />
      </FormModal>
    </Page>
  );
}

function Remove({ person, onDone }: { person: Member; onDone: () => Promise<void> }) {
  const remove = async () => {
    await call(`${PATH}/${person.id}`, { method: "DELETE" });
    await onDone();
  };
  return (
    <ConfirmButton
      label={WORDS.remove}
      question={`Remove ${person.email}?`}
      deed="Remove the person"
      size="compact-sm"
      onConfirm={remove}
    >
      The person leaves the account, and all their keys in it stop working within a second.
    </ConfirmButton>
  );
}

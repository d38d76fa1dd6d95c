import { Button } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation } from "wouter";
import { call } from "../../api/call";
import type { IssuedKey, Key } from "../../api/shapes";
import { useFilters } from "../../parts/address_filters";
import { EmptyState } from "../../parts/empty_state";
import { Listing } from "../../parts/listing";
import { Page } from "../../parts/page";
import { useListPage } from "../../parts/paging";
import { SecretOnce } from "../../parts/secret_once";
import { Icon } from "../../shell/icons";
import { WORDS } from "../../vocabulary";
import { AccountSelect } from "./account_select";
import { BudgetFields, NO_BUDGET } from "./budget_fields";
import { FormModal } from "./form_modal";
import { bodyOf, KeyFields, NEW_KEY } from "./key_form";
import { KeyTable } from "./key_table";
import { useAccounts } from "./questions";
import { FirstVendorNotice } from "./vendors/first_vendor_notice";

export function KeyList() {
  const [search, change] = useFilters();
  const [, navigate] = useLocation();
  const [issued, setIssued] = useState<IssuedKey | null>(null);
  const account = search.get("account");
  const keys = useListPage<Key>(["admin", "keys"], "/admin/v1/keys", { account });
  const making = search.has("new");
  const open = () => change({ new: account ?? "any" });
  return (
    <Page
      title={WORDS.keys}
      about="Keys give access to the API. Each belongs to an account."
      actions={
        <>
          <AccountSelect
            placeholder={WORDS.allAccounts}
            clearable
            value={account}
            onChange={(value) => change({ account: value })}
          />
          <Button leftSection={<Icon name="plus" size={16} />} onClick={open}>
            {WORDS.newKey}
          </Button>
        </>
      }
    >
      <FirstVendorNotice />
      <Listing
        query={keys}
        empty={
          <EmptyState
            title="No keys"
            icon="keys"
            code="penstock key create --account studio --name website"
            action={{ label: WORDS.createOne, onClick: open }}
          >
            You can limit a key to models and endpoints, let it expire, and give it a budget.
          </EmptyState>
        }
      >
        {(rows, stale) => <KeyTable keys={rows} stale={stale} />}
      </Listing>
      <NewKey opened={making} first={search.get("new")} onClose={() => change({ new: null })} onIssued={setIssued} />
      <SecretOnce
        title={WORDS.newKey}
        secret={issued?.key ?? null}
        about={`For ${issued?.account}${issued?.name ? `, ${issued.name}` : ""}. Send it as Authorization: Bearer.`}
        onClose={() => {
          if (issued) navigate(`/admin/keys/${issued.public_id}`);
          setIssued(null);
        }}
      />
    </Page>
  );
}

interface NewProps {
  opened: boolean;
  /** The account's id that is chosen first. */
  first: string | null;
  onClose: () => void;
  onIssued: (key: IssuedKey) => void;
}

function NewKey({ opened, first, onClose, onIssued }: NewProps) {
  const client = useQueryClient();
  const accounts = useAccounts();
  const [chosen, setChosen] = useState<string | null>(null);
  const [wish, setWish] = useState(NEW_KEY);
  const [budget, setBudget] = useState(NO_BUDGET);
  const only = accounts.data?.length === 1 ? accounts.data[0]?.id : null;
  const account = chosen ?? (first?.startsWith("acct_") ? first : null) ?? only ?? null;
  const make = async () => {
    const body = { account, ...bodyOf(wish), budgets: budget.cap ? [budget] : null };
    onIssued(await call<IssuedKey>("/admin/v1/keys", { body }));
    setWish(NEW_KEY);
    setBudget(NO_BUDGET);
    await client.invalidateQueries({ queryKey: ["admin"] });
  };
  return (
    <FormModal
      title={WORDS.newKey}
      opened={opened}
      onClose={onClose}
      deed="Create"
      ready={account !== null}
      onSubmit={make}
    >
      <AccountSelect
        label={WORDS.account}
        placeholder="Owner of the key"
        required
        open
        value={account}
        onChange={setChosen}
      />
      <KeyFields wish={wish} onChange={setWish} />
      <BudgetFields wish={budget} onChange={setBudget} />
    </FormModal>
  );
}

import { Button, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { call } from "../../api/call";
import type { Account } from "../../api/shapes";
import { useFilters } from "../../parts/address_filters";
import { DataTable } from "../../parts/data_table";
import { EmptyState } from "../../parts/empty_state";
import { Listing } from "../../parts/listing";
import { formatMoney } from "../../parts/money";
import { Page } from "../../parts/page";
import { useListPage } from "../../parts/paging";
import { SearchField } from "../../parts/search_field";
import { StateBadge } from "../../parts/state_badge";
import { Ago } from "../../parts/time";
import { Icon } from "../../shell/icons";
import { WORDS } from "../../vocabulary";
import { BudgetFields, NO_BUDGET } from "./budget_fields";
import { FormModal } from "./form_modal";
import { LimitsFields, limitsLine, NO_LIMITS } from "./limits_fields";

export function AccountList() {
  const [search, change] = useFilters();
  const name = search.get("name");
  const accounts = useListPage<Account>(["admin", "accounts"], "/admin/v1/accounts", { name });
  const [making, { open, close }] = useDisclosure(false);
  return (
    <Page
      title={WORDS.accounts}
      about="Each account has its own jobs, keys and budgets, and cannot see those of others."
      actions={
        <>
          <SearchField
            aria-label="Search accounts"
            placeholder="Search accounts"
            leftSection={<Icon name="search" size={15} />}
            data-shortcut="/"
            w={190}
            value={name ?? ""}
            onSettle={(value) => change({ name: value })}
          />
          <Button leftSection={<Icon name="plus" size={16} />} onClick={open}>
            New account
          </Button>
        </>
      }
    >
      <Listing
        query={accounts}
        empty={
          name ? (
            <EmptyState title="No matching account" icon="search">
              Search by a part of the name. Upper and lower case are equal.
            </EmptyState>
          ) : (
            <EmptyState
              title="No account yet"
              icon="accounts"
              code="penstock account create studio"
              action={{ label: WORDS.createOne, onClick: open }}
            >
              An account pays for usage. It owns its keys, and all jobs created with them.
            </EmptyState>
          )
        }
      >
        {(rows, stale) => (
          <DataTable
            label={WORDS.accounts}
            rows={rows}
            stale={stale}
            rowKey={(account) => account.id}
            columns={[
              {
                title: WORDS.name,
                cell: (account) => <Link href={`/admin/accounts/${account.id}`}>{account.name}</Link>,
              },
              {
                title: WORDS.status,
                cell: (account) => <StateBadge state={account.closed_at ? "closed" : "active"} />,
              },
              { title: WORDS.keys, cell: (account) => account.keys, end: true },
              { title: WORDS.budgets, cell: (account) => <Budgets account={account} />, wide: true },
              { title: WORDS.limits, cell: (account) => limitsLine(account.limits), wide: true },
              { title: WORDS.created, cell: (account) => <Ago time={account.created_at} />, end: true, wide: true },
            ]}
          />
        )}
      </Listing>
      <NewAccount opened={making} onClose={close} />
    </Page>
  );
}

function Budgets({ account }: { account: Account }) {
  return account.budgets.map((budget) => (
    <div key={budget.period}>
      {formatMoney(budget.spent)} of {formatMoney(budget.cap)}{" "}
      {budget.period === "total" ? "in total" : `a ${budget.period}`}
    </div>
  ));
}

function NewAccount({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const client = useQueryClient();
  const [, navigate] = useLocation();
  const [name, setName] = useState("");
  const [limits, setLimits] = useState(NO_LIMITS);
  const [wish, setWish] = useState(NO_BUDGET);
  const make = async () => {
    const body = { name, limits, budgets: wish.cap ? [wish] : null };
    const account = await call<Account>("/admin/v1/accounts", { body });
    setName("");
    await client.invalidateQueries({ queryKey: ["admin", "accounts"] });
    navigate(`/admin/accounts/${account.id}`);
  };
  return (
    <FormModal
      title="New account"
      opened={opened}
      onClose={onClose}
      deed="Create"
      ready={name.trim() !== ""}
      onSubmit={make}
    >
      <TextInput
        label={WORDS.name}
        description="It must be unique."
        placeholder="studio"
        required
        data-autofocus
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <BudgetFields wish={wish} onChange={setWish} />
      <LimitsFields limits={limits} onChange={setLimits} />
    </FormModal>
  );
}

/** Budgets of an account or key: state, setting and removing. */
import { Button, Group, Text, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { call } from "../../api/call";
import type { Budget } from "../../api/shapes";
import { BudgetBar } from "../../parts/budget_bar";
import { ConfirmButton } from "../../parts/confirm";
import { WORDS } from "../../vocabulary";
import { BudgetFields, NO_BUDGET, type Wish } from "./budget_fields";
import { FormModal } from "./form_modal";

interface Props {
  /** `/admin/v1/accounts/acct_…` or `/admin/v1/keys/…`. */
  path: string;
  budgets: Budget[];
  name: string;
}

export function BudgetBars({ path, budgets, name }: Props) {
  return (
    <>
      {budgets.length === 0 && (
        <Text size="sm" c="dimmed">
          No budget. Spending is not limited.
        </Text>
      )}
      {budgets.map((budget) => (
        <BudgetBar
          key={`${budget.tag} ${budget.period}`}
          budget={budget}
          name={null}
          actions={<BudgetActions path={path} budget={budget} name={name} />}
        />
      ))}
    </>
  );
}

function BudgetActions({ path, budget, name }: { path: string; budget: Budget; name: string }) {
  const client = useQueryClient();
  const remove = async () => {
    const { tag, period } = budget;
    if (tag) await call(`${path}/tag-budgets`, { method: "DELETE", query: { tag, period } });
    else await call(`${path}/budgets/${period}`, { method: "DELETE" });
    await client.invalidateQueries({ queryKey: ["admin"] });
  };
  return (
    <Group gap={4}>
      <SetBudget
        path={path}
        name={budget.tag ? `tag ${budget.tag}` : name}
        tag={budget.tag ?? null}
        wish={{ period: budget.period, cap: budget.cap, time_zone: budget.time_zone }}
      >
        {WORDS.edit}
      </SetBudget>
      <ConfirmButton
        label={WORDS.remove}
        question="Remove this budget?"
        deed="Remove"
        size="compact-xs"
        variant="subtle"
        onConfirm={remove}
      >
        {budget.tag ? `Requests with the tag ${budget.tag}` : name} can then spend any amount in this period, unless
        another budget applies.
      </ConfirmButton>
    </Group>
  );
}

export function SetBudget({
  path,
  name,
  wish,
  tag = null,
  children,
}: {
  path: string;
  name: string;
  wish?: Wish;
  /** The tag that it is of; empty: the form asks for it. */
  tag?: string | null;
  children: ReactNode;
}) {
  const client = useQueryClient();
  const [opened, { open, close }] = useDisclosure(false);
  const [wanted, setWanted] = useState<Wish>(wish ?? NO_BUDGET);
  const [named, setNamed] = useState(tag ?? "");
  const begin = () => {
    setWanted(wish ?? NO_BUDGET);
    setNamed(tag ?? "");
    open();
  };
  const save = async () => {
    const { period, cap, time_zone } = wanted;
    if (tag === null) await call(`${path}/budgets/${period}`, { method: "PUT", body: { cap, time_zone } });
    else await call(`${path}/tag-budgets`, { method: "PUT", body: { tag: named, period, cap, time_zone } });
    await client.invalidateQueries({ queryKey: ["admin"] });
  };
  return (
    <>
      <Button size={wish ? "compact-xs" : "compact-sm"} variant={wish ? "subtle" : "default"} onClick={begin}>
        {children}
      </Button>
      <FormModal
        title={`Budget of ${name}`}
        opened={opened}
        onClose={close}
        deed="Save"
        ready={wanted.cap !== "" && (tag === null || named.trim() !== "")}
        onSubmit={save}
      >
        {tag === "" && (
          <TextInput
            label="Tag"
            description="Requests of all keys of the account with this tag count"
            placeholder="team-search"
            required
            withAsterisk={false}
            maxLength={64}
            value={named}
            onChange={(event) => setNamed(event.currentTarget.value)}
          />
        )}
        <BudgetFields wish={wanted} onChange={setWanted} required />
        <Text size="sm" c="dimmed">
          A budget is a hard limit for spent and held amounts. A new budget for this period replaces the old one, and
          earlier spending counts.
        </Text>
      </FormModal>
    </>
  );
}

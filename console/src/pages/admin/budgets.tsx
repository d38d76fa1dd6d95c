/** All budgets, the fullest first. */
import { Alert, SegmentedControl } from "@mantine/core";
import { Link } from "wouter";
import type { Budget } from "../../api/shapes";
import { useFilters } from "../../parts/address_filters";
import { EmptyState } from "../../parts/empty_state";
import { ErrorNotice } from "../../parts/error_notice";
import { Panel } from "../../parts/facts";
import { formatCount } from "../../parts/numbers";
import { Page, PageLoading } from "../../parts/page";
import { WORDS } from "../../vocabulary";
import { BudgetBars } from "./budget_panel";
import { MOST, useHolders } from "./questions";

interface Holder {
  id: string;
  name: string;
  of: "account" | "key";
  page: string;
  path: string;
  budgets: Budget[];
}

export default function Budgets() {
  const [search, change] = useFilters();
  const found = useHolders();
  const shown = search.get("of") ?? "all";
  if (found.error) {
    return (
      <Page title={WORDS.budgets}>
        <ErrorNotice error={found.error} onRetry={() => void found.refetch()} />
      </Page>
    );
  }
  if (!found.data) return <PageLoading />;
  const { accounts, keys, isAll } = found.data;
  const holders: Holder[] = [
    ...accounts.map(
      (account): Holder => ({
        id: account.id,
        name: account.name,
        of: "account",
        page: `/admin/accounts/${account.id}`,
        path: `/admin/v1/accounts/${account.id}`,
        budgets: [...account.budgets, ...account.tag_budgets],
      }),
    ),
    ...keys
      .filter((key) => key.status === "active" && key.replaced_by === null)
      .map(
        (key): Holder => ({
          id: key.public_id,
          name: `${key.account} · ${key.name || key.public_id}`,
          of: "key",
          page: `/admin/keys/${key.public_id}`,
          path: `/admin/v1/keys/${key.public_id}`,
          budgets: key.budgets,
        }),
      ),
  ];
  const listed = holders
    .filter((holder) => holder.budgets.length > 0 && (shown === "all" || shown === holder.of))
    .sort((a, b) => fullness(b) - fullness(a));
  return (
    <Page
      title={WORDS.budgets}
      about="Hard limits, the fullest first. Set new ones on the page of an account or key."
      actions={
        <SegmentedControl
          aria-label="Owner of budgets"
          size="xs"
          data={[
            { value: "all", label: WORDS.all },
            { value: "account", label: WORDS.accounts },
            { value: "key", label: WORDS.keys },
          ]}
          value={shown}
          onChange={(value) => change({ of: value === "all" ? null : value })}
        />
      }
    >
      {!isAll && (
        <Alert className="notice notice-gate" color="gate" role="status" mb="md">
          Only the newest {formatCount(MOST)} accounts and keys are shown.
        </Alert>
      )}
      {listed.length === 0 ? (
        <EmptyState
          title="No budgets"
          icon="budgets"
          code="penstock account budget studio --amount 50 --period month"
          action={{ label: "Open accounts", to: "/admin/accounts" }}
        >
          A budget limits what an account, a key or a tag can spend in a day, in a month or in total. Requests that
          exceed it are refused before they reach a vendor.
        </EmptyState>
      ) : (
        <div className="budget-grid">
          {listed.map((holder) => (
            <Panel key={holder.id} title={holder.name} tools={<Link href={holder.page}>{holder.of}</Link>}>
              <BudgetBars path={holder.path} budgets={holder.budgets} name={holder.of === "key" ? "Key" : "Account"} />
            </Panel>
          ))}
        </div>
      )}
    </Page>
  );
}

function fullness(holder: Holder): number {
  return Math.max(
    ...holder.budgets.map((budget) => (Number(budget.spent) + Number(budget.held)) / (Number(budget.cap) || 1)),
  );
}

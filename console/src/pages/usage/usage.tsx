/** Usage and budgets of the account. */
import type { UsageStatement } from "../../api/shapes";
import { BudgetBar } from "../../parts/budget_bar";
import { EmptyState } from "../../parts/empty_state";
import { Panel } from "../../parts/facts";
import { Page } from "../../parts/page";
import { Statement } from "../../parts/statement/statement";
import { WORDS } from "../../vocabulary";

export default function Usage() {
  return (
    <Page title={WORDS.usage} about="Usage and cost of this account. Days are in UTC.">
      <Statement
        path="/api/v1/usage"
        queryKey={["usage"]}
        groups={["model", "key", "vendor", "kind", "tag", "end_user", "session"]}
        empty={<Nothing />}
        aside={(statement) => <Budgets statement={statement} />}
      />
    </Page>
  );
}

function Budgets({ statement }: { statement: UsageStatement }) {
  if (statement.budgets.length === 0) return null;
  return (
    <Panel title="Budgets now">
      {statement.budgets.map((budget) => (
        <BudgetBar key={`${budget.of} ${budget.tag} ${budget.period}`} budget={budget} />
      ))}
    </Panel>
  );
}

function Nothing() {
  const code = `curl '${location.origin}/api/v1/usage?by=day,model' \\
  -H "Authorization: Bearer $PENSTOCK_API_KEY"`;
  return (
    <EmptyState title="No usage in this period" icon="usage" code={code}>
      Chat requests count as they end, jobs once they are done, each on the day it was accepted. The same statement is
      one call away:
    </EmptyState>
  );
}

import { EmptyState } from "../../parts/empty_state";
import { Page } from "../../parts/page";

export default function Budgets() {
  return (
    <Page title="Budgets">
      <EmptyState title="Budgets" icon="budgets">
        This page is being built.
      </EmptyState>
    </Page>
  );
}

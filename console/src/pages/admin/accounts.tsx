import { EmptyState } from "../../parts/empty_state";
import { Page } from "../../parts/page";

export default function Accounts() {
  return (
    <Page title="Accounts">
      <EmptyState title="Accounts" icon="accounts">
        This page is being built.
      </EmptyState>
    </Page>
  );
}

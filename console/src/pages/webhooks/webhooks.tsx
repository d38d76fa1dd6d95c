import { EmptyState } from "../../parts/empty_state";
import { Page } from "../../parts/page";

export default function Webhooks() {
  return (
    <Page title="Webhooks">
      <EmptyState title="Addresses that are told" icon="webhooks">
        This page is being built.
      </EmptyState>
    </Page>
  );
}

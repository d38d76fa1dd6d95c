import { EmptyState } from "../../parts/empty_state";
import { Page } from "../../parts/page";

export default function Models() {
  return (
    <Page title="Models">
      <EmptyState title="What is on offer" icon="models">
        This page is being built.
      </EmptyState>
    </Page>
  );
}

import { EmptyState } from "../../parts/empty_state";
import { Page } from "../../parts/page";

export default function Usage() {
  return (
    <Page title="Usage">
      <EmptyState title="What was used" icon="usage">
        This page is being built.
      </EmptyState>
    </Page>
  );
}

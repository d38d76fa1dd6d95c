import { EmptyState } from "../../parts/empty_state";
import { Page } from "../../parts/page";

export default function Keys() {
  return (
    <Page title="Keys">
      <EmptyState title="Keys" icon="keys">
        This page is being built.
      </EmptyState>
    </Page>
  );
}

import { EmptyState } from "../../parts/empty_state";
import { Page } from "../../parts/page";

export default function Playground() {
  return (
    <Page title="Playground">
      <EmptyState title="Try a model" icon="playground">
        This page is being built.
      </EmptyState>
    </Page>
  );
}

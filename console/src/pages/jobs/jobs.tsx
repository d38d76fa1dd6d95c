import { EmptyState } from "../../parts/empty_state";
import { Page } from "../../parts/page";

export default function Jobs() {
  return (
    <Page title="Jobs">
      <EmptyState title="Your jobs" icon="jobs">
        This page is being built.
      </EmptyState>
    </Page>
  );
}

/** Usage of all accounts. */
import { EmptyState } from "../../parts/empty_state";
import { Page } from "../../parts/page";
import { Statement } from "../../parts/statement/statement";
import { WORDS } from "../../vocabulary";

export default function AllUsage() {
  return (
    <Page title={WORDS.allUsage} about="Usage and cost of all accounts. Days are in UTC.">
      <Statement
        path="/admin/v1/usage"
        queryKey={["admin", "usage"]}
        groups={["account", "model", "key", "vendor", "kind", "tag", "end_user", "session"]}
        empty={
          <EmptyState title="No usage in this period" icon="usage" code="penstock usage --by account">
            Chat requests are counted when they end, jobs when they are done. You can also run this command:
          </EmptyState>
        }
      />
    </Page>
  );
}

/** What every account used. */
import { EmptyState } from "../../parts/empty_state";
import { Page } from "../../parts/page";
import { Statement } from "../../parts/statement/statement";

export default function AllUsage() {
  return (
    <Page title="All usage" about="What every account used and what it cost. Days are those of UTC.">
      <Statement
        path="/admin/v1/usage"
        queryKey={["admin", "usage"]}
        groups={["account", "model", "key", "vendor", "kind"]}
        empty={
          <EmptyState title="Nothing was used in these days" icon="usage" code="penstock usage --by account">
            Chat requests count as they end, jobs once they are done. The command line tells the same without a server:
          </EmptyState>
        }
      />
    </Page>
  );
}

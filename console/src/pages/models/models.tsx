/** Models: what is on offer, and one of them. */
import { useRoute } from "wouter";
import { useModels } from "../../api/queries";
import { EmptyState } from "../../parts/empty_state";
import { ErrorNotice } from "../../parts/error_notice";
import { BackTo } from "../../parts/facts";
import { Page, PageLoading } from "../../parts/page";
import "./models.css";
import { decoded } from "../../parts/address_filters";
import { WORDS } from "../../vocabulary";
import { ModelList } from "./model_list";
import { ModelPage } from "./model_page";

export default function Models() {
  const [isOne, params] = useRoute("/models/:id");
  const models = useModels();
  if (models.error) {
    return (
      <Page title={WORDS.models}>
        <ErrorNotice error={models.error} onRetry={() => void models.refetch()} />
      </Page>
    );
  }
  if (!models.data) return <PageLoading />;
  if (!isOne) return <ModelList models={models.data} />;
  const model = models.data.find((each) => each.id === decoded(params.id));
  if (model) return <ModelPage model={model} />;
  return (
    <Page title={WORDS.model} back={<BackTo to="/models">{WORDS.models}</BackTo>}>
      <EmptyState title="Model not found" icon="models">
        Check the spelling. The model may have been removed, or this key may not use it.
      </EmptyState>
    </Page>
  );
}

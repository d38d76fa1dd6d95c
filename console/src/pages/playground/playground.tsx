/** Playground: chat, or a generation with its params. */
import { Alert } from "@mantine/core";
import { lazy, Suspense, useEffect } from "react";
import { useLocation, useRoute } from "wouter";
import { useModels } from "../../api/queries";
import type { Model } from "../../api/shapes";
import { decoded } from "../../parts/address_filters";
import { EmptyState } from "../../parts/empty_state";
import { ErrorNotice } from "../../parts/error_notice";
import { FirstSteps } from "../../parts/first_steps/first_steps";
import { useLoggedNote } from "../../parts/logged_note";
import { firstOf, isPlayable } from "../../parts/model_order";
import { Page, PageLoading } from "../../parts/page";
import { BatchButton, useBatchModels } from "../batch/batch_mode";
import "./playground.css";
import { WORDS } from "../../vocabulary";
import { changeDrafts, getDrafts, useDrafts } from "./drafts";
import { ModelPicker } from "./model_picker";

const loadChat = () => import("./chat");
const loadGeneration = () => import("./generation");
const Batch = lazy(() => import("../batch/batch"));
const Chat = lazy(loadChat);
const Generation = lazy(loadGeneration);
// Until the models are loaded, guess the kind from the last visit.
(getDrafts().kind === "chat" ? loadChat() : loadGeneration()).catch(() => undefined);

export default function Playground() {
  const models = useModels();
  if (models.error) {
    return (
      <Page title={WORDS.playground}>
        <ErrorNotice error={models.error} onRetry={() => void models.refetch()} />
      </Page>
    );
  }
  if (!models.data) return <PageLoading />;
  const playable = models.data.filter(isPlayable);
  if (playable.length === 0) {
    return (
      <Page title={WORDS.playground}>
        <EmptyState title="No models for this key" icon="models">
          This key may be limited to some models. Ask your administrator, or create another key with{" "}
          <code className="mono">penstock key create</code>.
        </EmptyState>
      </Page>
    );
  }
  return <Bench models={playable} />;
}

/** The address names the model; without one it is the last that was tried. */
function Bench({ models }: { models: Model[] }) {
  const [, route] = useRoute("/playground/*?");
  const [, navigate] = useLocation();
  const named = decoded(route?.["*"] ?? "");
  const last = getDrafts().model;
  const hasChatted = Object.values(useDrafts().turns).some((turns) => turns.length > 1);
  const model = models.find((each) => each.id === (named || last)) ?? firstOf(models);
  useEffect(() => {
    if (!model) return;
    changeDrafts(() => ({ model: model.id, kind: model.kind }));
    if (!named) navigate(`/playground/${encodeURIComponent(model.id)}`, { replace: true });
  }, [model, named, navigate]);
  const note = useLoggedNote();
  const batch = useBatchModels(models, model);
  if (!model) return null;
  const choose = (id: string) => navigate(`/playground/${encodeURIComponent(id)}`);
  return (
    <Page
      title={WORDS.playground}
      about={note}
      actions={
        <>
          {!batch.isOn && <ModelPicker models={models} chosen={model} onChoose={choose} />}
          <BatchButton batch={batch} />
        </>
      }
    >
      {named && named !== model.id && (
        <Alert
          className="notice"
          color="gate"
          mb="md"
          title={`${named} is not open to this key, or not on this server`}
        >
          Showing {model.id} instead.
        </Alert>
      )}
      <FirstSteps models={models} hasChatted={hasChatted} />
      <Suspense fallback={<PageLoading />}>
        {batch.isOn ? (
          <Batch models={batch.models} chosen={batch.chosen} onChoose={batch.choose} />
        ) : model.kind === "chat" ? (
          <Chat key={model.id} model={model} />
        ) : (
          <Generation key={model.id} model={model} />
        )}
      </Suspense>
    </Page>
  );
}

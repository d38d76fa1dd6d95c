/** Pipelines: the list, a new one, and one of them. */
import { lazy, Suspense } from "react";
import { useRoute } from "wouter";
import { PageLoading } from "../../parts/page";
import { PipelineList } from "./pipeline_list";
import "./pipelines.css";

const PipelinePage = lazy(() => import("./pipeline_page"));
const Editor = lazy(() => import("./editor"));

export default function Pipelines() {
  const [isOne, params] = useRoute("/pipelines/:id");
  if (!isOne) return <PipelineList />;
  return (
    <Suspense fallback={<PageLoading />}>
      {params.id === "new" ? <Editor /> : <PipelinePage key={params.id} id={params.id} />}
    </Suspense>
  );
}

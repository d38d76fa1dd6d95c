/** Jobs: the list, and one of them. */
import { lazy, Suspense } from "react";
import { useRoute } from "wouter";
import { PageLoading } from "../../parts/page";
import { JobList } from "./job_list";
import "./jobs.css";

const JobPage = lazy(() => import("./job_page"));

export default function Jobs() {
  const [isOne, params] = useRoute("/jobs/:id");
  if (!isOne) return <JobList />;
  return (
    <Suspense fallback={<PageLoading />}>
      <JobPage key={params.id} id={params.id} />
    </Suspense>
  );
}

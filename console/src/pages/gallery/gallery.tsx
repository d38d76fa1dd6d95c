/** Outputs of the account as a grid, newest first. */
import { Button, Group, Loader } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { fetchPage } from "../../api/queries";
import type { Job } from "../../api/shapes";
import { useFilters } from "../../parts/address_filters";
import { EmptyState } from "../../parts/empty_state";
import { ErrorNotice } from "../../parts/error_notice";
import { Page, PageLoading } from "../../parts/page";
import { GalleryFilters } from "./gallery_filters";
import { GalleryItem } from "./gallery_item";
import { kindOf } from "./kinds";
import "./gallery.css";
import { WORDS } from "../../vocabulary";

const PAGE_SIZE = 24;
/** Pages without a match that are loaded before the reader is asked. */
const MAX_EMPTY_PAGES = 4;

export default function Gallery() {
  const [search, change] = useFilters();
  const [q, model, kind] = [search.get("q"), search.get("model"), search.get("kind")];
  const found = useInfiniteQuery({
    queryKey: ["jobs", "gallery", { q, model }],
    queryFn: ({ signal, pageParam }) =>
      fetchPage<Job>("/api/v1/jobs", { status: "succeeded", limit: PAGE_SIZE, q, model, cursor: pageParam }, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
  });
  const pages = (found.data?.pages ?? []).map((page) => page.data.filter((job) => isShown(job, kind)));
  const jobs = pages.flat();
  const isPaused = pages.length >= MAX_EMPTY_PAGES && pages.slice(-MAX_EMPTY_PAGES).every((page) => page.length === 0);
  const clear = () => change({ q: null, model: null, kind: null });
  return (
    <Page title={WORDS.gallery} about="Outputs of this account, newest first.">
      <GalleryFilters />
      {found.error && <ErrorNotice error={found.error} onRetry={() => void found.refetch()} />}
      {found.isPending && <PageLoading />}
      {jobs.length > 0 && (
        <ul className="gallery" aria-label={WORDS.outputs}>
          {jobs.map((job) => (
            <li key={job.id}>
              <GalleryItem job={job} />
            </li>
          ))}
        </ul>
      )}
      {found.hasNextPage && !found.error && (
        <More
          key={`${pages.length} ${isPaused}`}
          isLoading={found.isFetchingNextPage}
          isPaused={isPaused}
          onMore={() => void found.fetchNextPage()}
        />
      )}
      {found.isSuccess && jobs.length === 0 && !found.hasNextPage && (
        <None isFiltered={Boolean(q || model || kind)} onClear={clear} />
      )}
    </Page>
  );
}

function isShown(job: Job, kind: string | null): boolean {
  const own = kindOf(job);
  return own !== null && (!kind || own === kind);
}

/** Loads the next page when it comes into view, or by its button. */
function More({ isLoading, isPaused, onMore }: { isLoading: boolean; isPaused: boolean; onMore: () => void }) {
  const place = useRef<HTMLDivElement>(null);
  const latest = useRef(onMore);
  latest.current = onMore;
  useEffect(() => {
    if (!place.current || isPaused || isLoading) return;
    const watch = new IntersectionObserver(([entry]) => entry?.isIntersecting && latest.current(), {
      rootMargin: "400px",
    });
    watch.observe(place.current);
    return () => watch.disconnect();
  }, [isPaused, isLoading]);
  return (
    <Group justify="center" mt="lg" ref={place}>
      {isLoading ? (
        <Loader size="sm" type="dots" aria-label="Loading more" />
      ) : (
        <Button variant="default" onClick={onMore}>
          {isPaused ? "Search older outputs" : "Load more"}
        </Button>
      )}
    </Group>
  );
}

function None({ isFiltered, onClear }: { isFiltered: boolean; onClear: () => void }) {
  if (isFiltered) {
    return (
      <EmptyState title="No matching outputs" icon="search" action={{ label: WORDS.clearFilters, onClick: onClear }}>
        Use fewer or shorter words, or choose another kind or model.
      </EmptyState>
    );
  }
  return (
    <EmptyState title="No outputs yet" icon="image" action={{ label: WORDS.openThePlayground, to: "/playground" }}>
      Videos, images and 3D models that you generate appear here.
    </EmptyState>
  );
}

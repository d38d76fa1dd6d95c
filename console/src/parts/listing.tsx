/** What every list shows: an error, a wait, what to do when nothing is there, or the list with its pages. */
import { Loader } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { Page } from "../api/shapes";
import { ErrorNotice } from "./error_notice";
import { Pager } from "./paging";

interface Props<T> {
  query: UseQueryResult<Page<T>>;
  empty: ReactNode;
  children: (rows: T[], stale: boolean) => ReactNode;
}

export function Listing<T>({ query, empty, children }: Props<T>) {
  if (query.data) {
    return (
      <>
        {query.data.data.length === 0 ? empty : children(query.data.data, query.isPlaceholderData)}
        <Pager page={query.data} />
      </>
    );
  }
  if (query.error) return <ErrorNotice error={query.error} onRetry={() => void query.refetch()} />;
  return <Loader type="dots" size="sm" aria-label="Loading" role="status" mt="md" />;
}

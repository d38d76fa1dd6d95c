/** Frame of every list: an error, a loader, an empty state, or the list with pagination. */
import { Loader } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { Page } from "../api/shapes";
import { WORDS } from "../vocabulary";
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
  return <Loader type="dots" size="sm" aria-label={WORDS.loading} role="status" mt="md" />;
}

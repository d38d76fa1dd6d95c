/** Pages of a list by cursor. The address holds the cursor; the way back is remembered while the list is shown. */
import { Button, Group } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useRef } from "react";
import { useSearchParams } from "wouter";
import { fetchPage } from "../api/queries";
import type { Page } from "../api/shapes";

export type Filters = Record<string, string | number | null | undefined>;

/** A page of a list, at the address' cursor. `queryKey` names the list; its filters are added. It is asked for again `every` so many ms. */
export function useListPage<T>(
  queryKey: unknown[],
  path: string,
  filters: Filters = {},
  every: number | false = false,
) {
  const [search] = useSearchParams();
  const cursor = search.get("cursor");
  return useQuery({
    queryKey: [...queryKey, filters, cursor],
    queryFn: ({ signal }) => fetchPage<T>(path, { limit: 25, ...filters, cursor }, signal),
    placeholderData: keepPreviousData,
    refetchInterval: every,
  });
}

export function Pager({ page }: { page: Page<unknown> }) {
  const [search, setSearch] = useSearchParams();
  const trail = useRef<(string | null)[]>([]);
  const cursor = search.get("cursor");
  const go = (to: string | null) => {
    setSearch((before) => {
      const next = new URLSearchParams(before);
      if (to) next.set("cursor", to);
      else next.delete("cursor");
      return next;
    });
    document.getElementById("content")?.scrollIntoView();
  };
  if (!cursor && !page.has_more) return null;
  return (
    <Group component="nav" aria-label="Pages of the list" justify="flex-end" mt="sm" gap="xs">
      <Button variant="default" size="compact-sm" disabled={!cursor} onClick={() => go(trail.current.pop() ?? null)}>
        Newer
      </Button>
      <Button
        variant="default"
        size="compact-sm"
        disabled={!page.has_more}
        onClick={() => {
          trail.current.push(cursor);
          go(page.next_cursor);
        }}
      >
        Older
      </Button>
    </Group>
  );
}

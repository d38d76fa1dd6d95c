/** Filters that live in the address, so that a view can be kept and sent; changing one begins at the first page. */
import { useCallback } from "react";
import { useSearchParams } from "wouter";

export function useFilters(): [URLSearchParams, (changes: Record<string, string | null>) => void] {
  const [search, setSearch] = useSearchParams();
  const change = useCallback(
    (changes: Record<string, string | null>) => {
      setSearch(
        (before) => {
          const next = new URLSearchParams(before);
          next.delete("cursor");
          for (const [name, value] of Object.entries(changes)) {
            if (value) next.set(name, value);
            else next.delete(name);
          }
          return next;
        },
        { replace: true },
      );
    },
    [setSearch],
  );
  return [search, change];
}

/** A part of the address as it was meant; one that is not encoded well is taken as it stands. */
export function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

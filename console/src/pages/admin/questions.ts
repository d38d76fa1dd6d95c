/** Queries of the administration pages. */
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { call } from "../../api/call";
import { fetchPage } from "../../api/queries";
import type { Account, Key, Page, Vendor } from "../../api/shapes";

/** The newest accounts, or those whose names hold what was typed. */
export function useAccounts(typed = "") {
  const [part] = useDebouncedValue(typed.trim(), 250);
  return useQuery<Account[]>({
    queryKey: ["admin", "accounts", "choice", part],
    queryFn: ({ signal }) =>
      fetchPage<Account>("/admin/v1/accounts", { limit: 100, name: part }, signal).then((page) => page.data),
    placeholderData: keepPreviousData,
  });
}

/** One account by its id; null: none is asked for. */
export function useAccount(id: string | null) {
  return useQuery({
    queryKey: ["admin", "account", id],
    queryFn: ({ signal }) => call<Account>(`/admin/v1/accounts/${encodeURIComponent(id ?? "")}`, { signal }),
    enabled: id !== null,
  });
}

export function useKeysOf(account: string) {
  return useQuery({
    queryKey: ["admin", "keys", "of", account],
    queryFn: ({ signal }) => everything<Key>("/admin/v1/keys", { account }, signal),
  });
}

/** An account or key that may have a budget. */
export function useHolders() {
  return useQuery({
    queryKey: ["admin", "holders"],
    queryFn: async ({ signal }) => {
      const [accounts, keys] = await Promise.all([
        everything<Account>("/admin/v1/accounts", {}, signal),
        everything<Key>("/admin/v1/keys", {}, signal),
      ]);
      return { accounts, keys, isAll: accounts.length < MOST && keys.length < MOST };
    },
  });
}

export const MOST = 2000;

/** The pages of a list one after the other, up to a number that a page can show. */
async function everything<T>(path: string, query: Record<string, string>, signal: AbortSignal): Promise<T[]> {
  const found: T[] = [];
  let cursor: string | null = null;
  do {
    const page: Page<T> = await fetchPage<T>(path, { ...query, limit: 100, cursor }, signal);
    found.push(...page.data);
    cursor = page.has_more ? page.next_cursor : null;
  } while (cursor && found.length < MOST);
  return found;
}

export function useAllVendors() {
  return useQuery({
    queryKey: ["admin", "vendors"],
    queryFn: ({ signal }) => call<{ data: Vendor[] }>("/admin/v1/vendors", { signal }).then((list) => list.data),
    refetchInterval: 10_000,
  });
}

/** Every model that some vendor serves. */
export function useServedModels(): string[] {
  const vendors = useAllVendors();
  return [...new Set((vendors.data ?? []).flatMap((vendor) => vendor.models))].sort();
}

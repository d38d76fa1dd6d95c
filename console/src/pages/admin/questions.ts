/** What the pages of the administration ask for. */
import { useQuery } from "@tanstack/react-query";
import { call } from "../../api/call";
import { fetchPage } from "../../api/queries";
import type { Account, Key, Vendor } from "../../api/shapes";

/** The newest hundred accounts, for choosing one. */
export function useAccounts() {
  return useQuery({
    queryKey: ["admin", "accounts", "choice"],
    queryFn: ({ signal }) => fetchPage<Account>("/admin/v1/accounts", { limit: 100 }, signal).then((page) => page.data),
  });
}

export function useKeysOf(account: string | null) {
  return useQuery({
    queryKey: ["admin", "keys", "of", account],
    queryFn: ({ signal }) =>
      fetchPage<Key>("/admin/v1/keys", { account, limit: 100 }, signal).then((page) => page.data),
  });
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

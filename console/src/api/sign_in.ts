/** Sign-in by a provider: the ways that the server offers, and the session of this browser. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { enter, getSession, signOut } from "../session";
import { call } from "./call";
import type { OwnSession, SignInWays } from "./shapes";

const WAYS = queryOptions({
  queryKey: ["admin", "sign-in"],
  queryFn: ({ signal }) => call<SignInWays>("/api/v1/sign-in", { signal }),
  staleTime: 60_000,
});

/** The ways to sign in. */
export function useWays() {
  return useQuery(WAYS).data;
}

/** Take up the session of this browser's cookie, if there is one and the tab has no key. */
export async function resume(): Promise<void> {
  const { account, admin } = getSession();
  if (account || admin) return;
  try {
    const ways = await call<SignInWays>("/api/v1/sign-in");
    if (ways.signed_in) enter(await call<OwnSession>("/api/v1/session"));
  } catch {
    // The sign-in page says what can be done.
  }
}

/** The address at which a provider signs one in and sends one back to this page. */
export function addressOf(provider: string): string {
  const here = location.pathname + location.search;
  return `/api/v1/sign-in/${encodeURIComponent(provider)}?return_to=${encodeURIComponent(here)}`;
}

/** Sign out here, and at the provider if it has an address for that. */
export async function leave(): Promise<void> {
  const { person } = getSession();
  if (!person) {
    signOut();
    return;
  }
  const headers = { "x-penstock-csrf": "1" };
  const out = await call<{ redirect: string | null }>("/api/v1/session", { method: "DELETE", headers });
  signOut();
  if (out.redirect) location.assign(out.redirect);
}

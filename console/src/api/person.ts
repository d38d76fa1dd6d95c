/** The person behind the account's key, if it is a person's. */
import { useQuery } from "@tanstack/react-query";
import { getSession, useSession } from "../session";
import { call } from "./call";
import type { Member, OwnKey, OwnPerson } from "./shapes";

export const ROLES: Member["role"][] = ["owner", "admin", "billing", "member", "viewer"];

/** The account's key, with what it may do. */
export function useOwnKey() {
  const account = useSession().account;
  return useQuery({
    queryKey: ["own key"],
    queryFn: ({ signal }) => call<OwnKey>("/api/v1/key", { signal, as: "account" }),
    enabled: account !== null,
    staleTime: 30_000,
  });
}

/** The person, or null for a service key. */
export function usePerson() {
  const account = useSession().account;
  return useQuery({
    queryKey: ["person"],
    queryFn: ({ signal }) => readPerson(signal),
    enabled: account !== null,
    staleTime: 30_000,
  });
}

async function readPerson(signal: AbortSignal): Promise<OwnPerson | null> {
  if (getSession().person) return await call<OwnPerson>("/api/v1/person", { signal });
  const key = await call<OwnKey>("/api/v1/key", { signal, as: "account" });
  if (!key.role || key.endpoints.length > 0 || key.models.length > 0) return null;
  return await call<OwnPerson>("/api/v1/person", { signal });
}

interface Needing {
  needs?: string;
  isForPeople?: boolean;
}

/** Return a test of pages: whether they are in the menu of this key. */
export function useMenuOf(): (page: Needing) => boolean {
  const person = usePerson().data;
  const isSignedIn = useSession().person !== null;
  return (page) => {
    if (!person) return !page.isForPeople || (isSignedIn && !page.needs);
    return !page.needs || person.endpoints.includes(page.needs);
  };
}

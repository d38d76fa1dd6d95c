/** The keys of this tab. They live in its session storage and nowhere else: closing the tab forgets them. */
import { useSyncExternalStore } from "react";

export type Role = "account" | "admin";

export interface Session {
  /** An account's key, `psk_…`. */
  account: string | null;
  /** The administrator's key. */
  admin: string | null;
  /** Why the last key was given up, if the server did not want it any more. */
  notice: string | null;
}

const PLACE = "penstock.session";
const NOBODY: Session = { account: null, admin: null, notice: null };
const listeners = new Set<() => void>();
let current = read();

function read(): Session {
  try {
    return { ...NOBODY, ...JSON.parse(sessionStorage.getItem(PLACE) ?? "{}") };
  } catch {
    return NOBODY;
  }
}

function write(next: Session): void {
  current = next;
  sessionStorage.setItem(PLACE, JSON.stringify({ account: next.account, admin: next.admin }));
  for (const listener of listeners) listener();
}

export function getSession(): Session {
  return current;
}

export function keep(role: Role, key: string): void {
  write({ ...current, [role]: key, notice: null });
}

/** Forget one key, or both; and what was written in the tab, unless the server itself ended it. */
export function signOut(role?: Role, notice: string | null = null): void {
  if (!notice && role !== "admin") {
    for (const name of Object.keys(sessionStorage)) if (name.startsWith("penstock.")) sessionStorage.removeItem(name);
  }
  write(role ? { ...current, [role]: null, notice } : { ...NOBODY, notice });
}

export function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useSession(): Session {
  return useSyncExternalStore(subscribe, getSession);
}

/** The part of a key that is safe to show: `psk_1st3n9bg0semh7avm3`. */
export function publicPart(key: string): string {
  return key.split("_").slice(0, 2).join("_");
}

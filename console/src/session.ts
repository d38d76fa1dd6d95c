/**
 * Who is signed in: by keys, which live in this tab's session storage and nowhere else, or by a provider. Then the
 * credential is a cookie that no script can read, and a marker stands in the place of each key.
 */
import { useSyncExternalStore } from "react";
import type { OwnSession } from "./api/shapes";

export type Role = "account" | "admin";

export interface Session {
  /** An account's key, `psk_…`. */
  account: string | null;
  /** The administrator's key. */
  admin: string | null;
  /** Why the last key was given up, if the server did not want it any more. */
  notice: string | null;
  /** The person whom a provider signed in. */
  person: OwnSession | null;
}

const MARKER = "session:";
const CHOSEN = "penstock.account";

const PLACE = "penstock.session";
const NOBODY: Session = { account: null, admin: null, notice: null, person: null };
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
  if (!next.person) sessionStorage.setItem(PLACE, JSON.stringify({ account: next.account, admin: next.admin }));
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

/** Take up a session that a provider's sign-in began, in the account that was used last. */
export function enter(person: OwnSession, account = sessionStorage.getItem(CHOSEN)): void {
  const chosen = person.accounts.find((each) => each.account_id === account)?.account_id ?? person.account_id;
  if (chosen) sessionStorage.setItem(CHOSEN, chosen);
  const admin = person.operator ? MARKER : null;
  write({ account: chosen && MARKER + chosen, admin, notice: null, person });
}

/** The headers that prove who asks: a key, or the account for which the cookie counts. */
export function headersOf(key: string | null): Record<string, string> {
  if (!key) return {};
  if (!key.startsWith(MARKER)) return { authorization: `Bearer ${asBytes(key)}` };
  const account = key.slice(MARKER.length);
  return { "x-penstock-csrf": "1", ...(account ? { "x-penstock-account": account } : {}) };
}

/** Headers are written byte by byte, and read so: whatever was typed goes as UTF-8, and the server says if it is no key. */
function asBytes(text: string): string {
  return String.fromCharCode(...new TextEncoder().encode(text));
}

export function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Whether a page can be shown: with its kind of key, or if it is about a person who has no account. */
export function isOpen(session: Session, page: { role: Role; needs?: string; isForPeople?: boolean }): boolean {
  return session[page.role] !== null || (session.person !== null && page.isForPeople === true && !page.needs);
}

export function useSession(): Session {
  return useSyncExternalStore(subscribe, getSession);
}

/** The part of a key that is safe to show: `psk_1st3n9bg0semh7avm3`. */
export function publicPart(key: string): string {
  if (key.startsWith(MARKER)) return key.slice(MARKER.length);
  return key.split("_").slice(0, 2).join("_");
}

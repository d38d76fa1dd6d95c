/** Requests to the server: JSON with the tab's key or the session's cookie. Errors become exceptions. */
import { getSession, headersOf, type Role, signOut } from "../session";
import { type ApiError, errorOf, Unreachable } from "./errors";

const GONE = new Set(["invalid_api_key", "expired_api_key", "revoked_api_key", "session_ended"]);

export interface Asking {
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Sent as JSON; a FormData is sent as it is. */
  body?: unknown;
  query?: Record<string, string | number | boolean | null | undefined>;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** Key to send. By default the administrator's below /admin, else the account's. */
  as?: Role;
  /** A key to try instead of the session's. */
  key?: string;
}

/** `/path?query`, without what is empty. */
export function address(path: string, query: Asking["query"] = {}): string {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(pairs.map(([name, value]) => [name, String(value)])).toString();
  return text ? `${path}?${text}` : path;
}

/** Ask, and give back the response once it is a success; for streams and bytes. */
export async function ask(path: string, asking: Asking = {}): Promise<Response> {
  const role = asking.as ?? (path.startsWith("/admin/") ? "admin" : "account");
  const key = asking.key ?? getSession()[role];
  const headers = new Headers(asking.headers);
  for (const [name, value] of Object.entries(headersOf(key))) headers.set(name, value);
  const isForm = asking.body instanceof FormData;
  if (asking.body !== undefined && !isForm) headers.set("content-type", "application/json");
  const body = asking.body === undefined ? null : isForm ? (asking.body as FormData) : JSON.stringify(asking.body);
  const method = asking.method ?? (asking.body === undefined ? "GET" : "POST");
  let response: Response;
  try {
    response = await fetch(address(path, asking.query), { method, headers, body, signal: asking.signal ?? null });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Unreachable();
  }
  if (response.ok) return response;
  const error = await errorOf(response);
  if (key !== null && key === getSession()[role]) giveUpKey(error, role);
  throw error;
}

/** A key that the server does not want any more leads back to signing in, with the server's own words. */
function giveUpKey(error: ApiError, role: Role): void {
  if (error.status === 401 && GONE.has(error.code)) signOut(getSession().person ? undefined : role, error.message);
}

/** Ask for JSON. An answer without a body is null. */
export async function call<T>(path: string, asking: Asking = {}): Promise<T> {
  const response = await ask(path, asking);
  if (response.status === 204) return null as T;
  return (await response.json()) as T;
}

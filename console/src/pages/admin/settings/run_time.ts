/** The run-time settings: read, checked, changed. A change names the version that it is of. */
import { type QueryClient, useQuery } from "@tanstack/react-query";
import { call } from "../../../api/call";
import { ApiError } from "../../../api/errors";
import type { ConnectionTest, RunTimeSettings, SettingsChange, VendorType } from "../../../api/shapes";

export type Options = Record<string, unknown>;

/** Entries by name. Null removes one. */
export interface Wish {
  vendors?: Record<string, Options | null>;
  models?: Record<string, Options | null>;
  limits?: Record<string, unknown>;
}

/** How a change is made: single entries, everything, or a version that comes back. */
export interface Change {
  wish?: Wish;
  replace?: Wish;
  restore?: number;
}

const PLACE = "/admin/v1/settings";
export const SETTINGS_KEY = ["admin", "settings"];

export function useSettings() {
  return useQuery({
    queryKey: [...SETTINGS_KEY, "now"],
    queryFn: ({ signal }) => call<RunTimeSettings>(PLACE, { signal }),
    refetchInterval: 10_000,
  });
}

export function useVendorTypes() {
  return useQuery({
    queryKey: ["admin", "vendor types"],
    queryFn: ({ signal }) =>
      call<{ data: VendorType[] }>(`${PLACE}/vendor-types`, { signal }).then((list) =>
        list.data.toSorted((a, b) => a.title.localeCompare(b.title)),
      ),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** Make a change, or only check it. */
export function send(change: Change, base: number, note = "", dryRun = false): Promise<SettingsChange> {
  if (change.restore !== undefined) {
    return call(`${PLACE}/versions/${change.restore}/restore`, { body: { base_version: base, note, dry_run: dryRun } });
  }
  const method = change.replace ? "PUT" : "PATCH";
  const body = { ...(change.replace ?? change.wish), base_version: base, note, dry_run: dryRun };
  return call(PLACE, { method, body });
}

/** Everything that the settings decide is asked for again. */
export async function refresh(client: QueryClient): Promise<void> {
  await Promise.all([
    client.invalidateQueries({ queryKey: ["admin"] }),
    client.invalidateQueries({ queryKey: ["models"] }),
  ]);
}

/** Test a stored vendor, or one with these options. */
export function testConnection(name: string, options?: Options): Promise<ConnectionTest> {
  return call(`${PLACE}/vendors/${encodeURIComponent(name)}/test`, { body: options ? { options } : {} });
}

export function isConflict(error: unknown): boolean {
  return error instanceof ApiError && error.code === "settings_conflict";
}

/** In the place of a secret: keep the one that is stored. */
export const KEPT = { $secret: "kept" };

export function isKept(value: unknown): boolean {
  return typeof value === "object" && value !== null && "$secret" in value;
}

export function newestSettings(): Promise<RunTimeSettings> {
  return call(PLACE);
}

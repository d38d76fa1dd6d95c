/** Routes of a model as the settings write them, and as the form shows them. */
import type { SettingsEntry } from "../../../api/shapes";
import type { Options } from "../settings/run_time";

export interface RouteRow {
  vendor: string;
  /** The vendor's own name of the model. Empty: the id. */
  model: string;
  weight: number;
  order: number;
}

export const NEW_ROUTE: RouteRow = { vendor: "", model: "", weight: 1, order: 1 };

export function routesOf(entry: SettingsEntry): RouteRow[] {
  const { vendor, model, routes } = entry.options as { vendor?: string; model?: string; routes?: Partial<RouteRow>[] };
  const found = vendor ? [{ vendor, model: model ?? "" }] : (routes ?? []);
  return found.map((route) => ({ ...NEW_ROUTE, ...route }));
}

/** One plain route is written without the list. */
export function writeRoutes(routes: RouteRow[]): Options {
  const [only, ...others] = routes;
  if (only && others.length === 0) return { vendor: only.vendor, ...(only.model ? { model: only.model } : {}) };
  return { routes: routes.map(({ model, ...route }) => ({ ...route, ...(model ? { model } : {}) })) };
}

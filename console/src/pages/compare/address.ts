/** Addresses of comparisons: they hold the ids, so that one can be kept and sent. */
export const FEWEST = 2;
export const MOST = 4;

/** Return the ids of a list in an address, each once. */
export function idsOf(list: string | null): string[] {
  const ids = (list ?? "").split(",").map((id) => id.trim());
  return [...new Set(ids.filter(Boolean))];
}

/** The address of a comparison. `refused` names models of the batch `batch` that have no job. */
export function compareAddress(jobs: string[], refused: string[] = [], batch = ""): string {
  const parts = [`jobs=${listed(jobs)}`, refused.length > 0 && `refused=${listed(refused)}&batch=${batch}`];
  return `/compare?${parts.filter(Boolean).join("&")}`;
}

/** The list of jobs, with some of them selected. */
export function selectAddress(jobs: string[], batch?: string | null): string {
  const parts = [batch && `batch=${encodeURIComponent(batch)}`, jobs.length > 0 && `compare=${listed(jobs)}`];
  const query = parts.filter(Boolean).join("&");
  return query ? `/jobs?${query}` : "/jobs";
}

function listed(ids: string[]): string {
  return ids.map(encodeURIComponent).join(",");
}

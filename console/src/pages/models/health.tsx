/** Health of a model's vendors, for administrators. */
import { useQuery } from "@tanstack/react-query";
import { call } from "../../api/call";
import type { Vendor } from "../../api/shapes";
import { useSession } from "../../session";

export function useVendors() {
  const { admin } = useSession();
  return useQuery({
    queryKey: ["admin", "vendors"],
    queryFn: ({ signal }) => call<{ data: Vendor[] }>("/admin/v1/vendors", { signal }).then((list) => list.data),
    enabled: admin !== null,
    refetchInterval: 15_000,
  });
}

export interface Standing {
  vendor: string;
  word: string;
  tone: "green" | "gate" | "red";
  why: string | null;
}

/** State of each vendor of a model. For media vendors only the last error is known. */
export function standingsOf(vendors: Vendor[], model: string): Standing[] {
  return vendors
    .filter((vendor) => vendor.models.includes(model))
    .map((vendor) => {
      const health = vendor.routes.find((route) => route.model === model)?.health;
      if (health) {
        const word = health.state === "open" ? "answers" : health.state;
        const tone = health.state === "open" ? "green" : health.state === "probing" ? "gate" : "red";
        return { vendor: vendor.name, word, tone, why: health.last_error?.message ?? null };
      }
      const error = vendor.last_error?.model === model ? vendor.last_error : null;
      const waiting = vendor.jobs_queued > 0 ? `, ${vendor.jobs_queued} waiting` : "";
      const word = `${vendor.jobs_running} of ${vendor.max_concurrent} busy${waiting}`;
      return { vendor: vendor.name, word, tone: error ? "gate" : "green", why: error?.message ?? null };
    });
}

export function Health({ standing }: { standing: Standing }) {
  const tone = { "--tone": `var(--mantine-color-${standing.tone}-6)` } as React.CSSProperties;
  return (
    <span className="health" style={tone} title={standing.why ?? undefined}>
      {standing.vendor}: {standing.word}
    </span>
  );
}

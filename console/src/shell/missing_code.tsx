/** A page's code could not be fetched: the server is away, or it has a newer build, or something stands between. */
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { Unreachable } from "../api/errors";
import { PageLoading } from "../parts/page";
import { Mishap } from "./mishap";

const PATIENCE = 10_000;
const PAUSE = 2_000;
const SELDOM = 30_000;
const PLACE = "penstock.reloaded";

export function MissingCode() {
  const build = useQuery({
    queryKey: ["build"],
    queryFn: ({ signal }) => readBuild(signal),
    retry: false,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    networkMode: "always",
    refetchInterval: ({ state }) => (state.data ? false : PAUSE),
  });
  const { data } = build;
  const wasAway = build.errorUpdateCount > 0;
  const loadsAnew = Boolean(data && (wasAway || (data.isOurs && !data.isJustLoaded)));
  useEffect(() => {
    if (!loadsAnew) return;
    // Asking for the code again is of no use: a browser remembers what a page could not fetch.
    sessionStorage.setItem(PLACE, String(Date.now()));
    location.reload();
  }, [loadsAnew]);
  if (loadsAnew || build.isLoading) return <PageLoading />;
  if (!data) {
    return (
      <Mishap title="The server does not answer" onRetry={() => void build.refetch()}>
        This page could not be fetched. It appears by itself as soon as the server is back; what you began is kept.
      </Mishap>
    );
  }
  return data.isOurs ? (
    <Mishap title="This page did not come">
      The server answers, but a part of the page could not be fetched. Something between here and there may hold it up.
    </Mishap>
  ) : (
    <Mishap title="This page was renewed">
      The server has a newer console than the one in this tab. Loading it again is enough.
    </Mishap>
  );
}

interface Build {
  /** Whether it is the one in this tab. */
  isOurs: boolean;
  /** By itself, and to no use: it is not tried again at once. */
  isJustLoaded: boolean;
}

/** The server's console, told by the address of its first script: every build has its own. */
async function readBuild(signal: AbortSignal): Promise<Build> {
  const response = await fetch("/console", { signal: AbortSignal.any([signal, AbortSignal.timeout(PATIENCE)]) });
  if (!response.ok) throw new Unreachable();
  const ours = document.querySelector('script[type="module"]')?.getAttribute("src") ?? "";
  const isJustLoaded = Date.now() - Number(sessionStorage.getItem(PLACE)) < SELDOM;
  return { isOurs: (await response.text()).includes(ours), isJustLoaded };
}

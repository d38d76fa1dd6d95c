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
    // Importing the code again is useless: a browser remembers a failed import.
    sessionStorage.setItem(PLACE, String(Date.now()));
    location.reload();
  }, [loadsAnew]);
  if (loadsAnew || build.isLoading) return <PageLoading />;
  if (!data) {
    return (
      <Mishap title="The server does not answer" onRetry={() => void build.refetch()}>
        This page could not be loaded. It appears as soon as the server is back. Your input is kept.
      </Mishap>
    );
  }
  return data.isOurs ? (
    <Mishap title="This page could not be loaded">
      The server answers, but a part of the page could not be loaded. A proxy or firewall may block it.
    </Mishap>
  ) : (
    <Mishap title="A new version is available">
      The server has a newer console than this tab. Reload the page to use it.
    </Mishap>
  );
}

interface Build {
  /** True if it is the build in this tab. */
  isOurs: boolean;
  /** By itself, and to no use: it is not tried again at once. */
  isJustLoaded: boolean;
}

/** The server's build of the console, identified by the URL of its first script. */
async function readBuild(signal: AbortSignal): Promise<Build> {
  const response = await fetch("/console", { signal: AbortSignal.any([signal, AbortSignal.timeout(PATIENCE)]) });
  if (!response.ok) throw new Unreachable();
  const ours = document.querySelector('script[type="module"]')?.getAttribute("src") ?? "";
  const isJustLoaded = Date.now() - Number(sessionStorage.getItem(PLACE)) < SELDOM;
  return { isOurs: (await response.text()).includes(ours), isJustLoaded };
}

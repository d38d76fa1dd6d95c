/** One version: what it changed, what it holds, and the way back to it. */
import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation } from "wouter";
import { call } from "../../../api/call";
import type { SettingsDifference, SettingsVersionDetail } from "../../../api/shapes";
import { CodeBlock } from "../../../parts/code_block";
import { ErrorNotice } from "../../../parts/error_notice";
import { BackTo, Facts, Panel } from "../../../parts/facts";
import { Page, PageLoading } from "../../../parts/page";
import { Ago } from "../../../parts/time";
import { WORDS } from "../../../vocabulary";
import { Differences } from "./differences";
import { type Proposal, Review } from "./review";
import { SETTINGS_KEY, useSettings } from "./run_time";

export function VersionPage({ version }: { version: number }) {
  const settings = useSettings();
  const newest = settings.data?.version ?? null;
  const found = useVersion(version);
  const now = useVersion(newest);
  const back = <BackTo to="/admin/settings">{WORDS.settingsHistory}</BackTo>;
  const title = `Version ${version}`;
  const error = found.error ?? settings.error ?? now.error;
  if (error) {
    return (
      <Page title={title} back={back}>
        <ErrorNotice error={error} />
      </Page>
    );
  }
  if (!found.data || !now.data) return <PageLoading />;
  return <Loaded title={title} back={back} found={found.data} now={now.data} />;
}

function useVersion(version: number | null) {
  return useQuery({
    queryKey: [...SETTINGS_KEY, "version", version],
    queryFn: ({ signal }) => call<SettingsVersionDetail>(`/admin/v1/settings/versions/${version}`, { signal }),
    enabled: version !== null,
    staleTime: Number.POSITIVE_INFINITY,
  });
}

interface Props {
  title: string;
  back: React.ReactNode;
  found: SettingsVersionDetail;
  now: SettingsVersionDetail;
}

function Loaded({ title, back, found, now }: Props) {
  const [, navigate] = useLocation();
  const [proposal, setProposal] = useState<Proposal | null>(null);
  const isNewest = found.version === now.version;
  const restore = () =>
    setProposal({
      title: `Restore version ${found.version}?`,
      about: "It becomes the newest version, with its secrets. This is the difference to now.",
      change: { restore: found.version },
      base: now.version,
      deed: "Restore",
      differences: compare(now, found),
      compare: (newest) => compare(newest, found),
      onDone: () => navigate("/admin/settings"),
    });
  const { vendors, models, limits } = found;
  return (
    <Page title={title} back={back} actions={!isNewest && <Button onClick={restore}>Restore this version</Button>}>
      <div className="panels">
        <Panel title={WORDS.details} tools={isNewest && <span className="tag">newest</span>}>
          <Facts
            facts={[
              [WORDS.by, found.actor],
              [WORDS.when, <Ago key="when" time={found.created_at} />],
              [WORDS.note, found.note],
              ["Restored", found.restored === null ? "" : `version ${found.restored}`],
            ]}
          />
        </Panel>
        <Panel title="Changes to the version before">
          <Differences changes={found.changes} />
        </Panel>
        <Panel title="The whole version">
          <CodeBlock code={JSON.stringify({ vendors, models, limits }, null, 2)} label="The version" maxHeight={420} />
        </Panel>
      </div>
      <Review proposal={proposal} onClose={() => setProposal(null)} />
    </Page>
  );
}

type Parts = Pick<SettingsVersionDetail, "vendors" | "models" | "limits">;

/** Differences by option, as the server lists them. A secret that both versions have may still differ. */
function compare(before: Parts, after: Parts): SettingsDifference[] {
  const old = leaves(before);
  const fresh = leaves(after);
  const paths = [...new Set([...old.keys(), ...fresh.keys()])].toSorted();
  return paths.flatMap((path) => {
    const [from, to] = [old.get(path), fresh.get(path)];
    if (JSON.stringify(from) === JSON.stringify(to)) return [];
    const change = from === undefined ? "added" : to === undefined ? "removed" : "changed";
    const shown = { path, change, ...(from !== undefined && { before: from }), ...(to !== undefined && { after: to }) };
    return [shown as SettingsDifference];
  });
}

function leaves({ vendors, models, limits }: Parts): Map<string, unknown> {
  const found = new Map<string, unknown>(Object.entries(limits).map(([name, value]) => [`limits.${name}`, value]));
  for (const [part, entries] of Object.entries({ vendors, models })) {
    for (const [name, entry] of Object.entries(entries)) {
      for (const [option, value] of Object.entries(entry as object)) found.set(`${part}.${name}.${option}`, value);
    }
  }
  return found;
}

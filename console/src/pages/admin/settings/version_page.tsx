/** One version: what it changed, what it holds, and the way back to it. */
import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation } from "wouter";
import { call } from "../../../api/call";
import type { SettingsVersionDetail } from "../../../api/shapes";
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
  const back = <BackTo to="/admin/settings">{WORDS.settingsHistory}</BackTo>;
  const title = `Version ${version}`;
  const error = found.error ?? settings.error;
  if (error) {
    return (
      <Page title={title} back={back}>
        <ErrorNotice error={error} />
      </Page>
    );
  }
  if (!found.data || newest === null) return <PageLoading />;
  return <Loaded title={title} back={back} found={found.data} newest={newest} />;
}

function useVersion(version: number) {
  return useQuery({
    queryKey: [...SETTINGS_KEY, "version", version],
    queryFn: ({ signal }) => call<SettingsVersionDetail>(`/admin/v1/settings/versions/${version}`, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

interface Props {
  title: string;
  back: React.ReactNode;
  found: SettingsVersionDetail;
  newest: number;
}

function Loaded({ title, back, found, newest }: Props) {
  const [, navigate] = useLocation();
  const [proposal, setProposal] = useState<Proposal | null>(null);
  const isNewest = found.version === newest;
  const restore = () =>
    setProposal({
      title: `Restore version ${found.version}?`,
      about: "It becomes the newest version, with its secrets. This is the difference to now.",
      change: { restore: found.version },
      base: newest,
      deed: "Restore",
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

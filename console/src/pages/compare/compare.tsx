/** Compare two to four results side by side. */
import { Alert, Button, Switch, Text } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useLocation, useSearchParams } from "wouter";
import { useJobs } from "../../api/queries";
import type { Job } from "../../api/shapes";
import { EmptyState } from "../../parts/empty_state";
import { BackTo } from "../../parts/facts";
import { Page } from "../../parts/page";
import { Icon } from "../../shell/icons";
import { RefusedCard } from "../batch/refused_card";
import { compareAddress, FEWEST, idsOf, MOST, selectAddress } from "./address";
import { CompareCard } from "./card";
import "./compare.css";
import { WORDS } from "../../vocabulary";
import { compareParams } from "./differences";
import { primaryOf, type Sharing } from "./media";
import { SharedCamera } from "./shared_camera";
import { SharedPlayer } from "./shared_player";
import { SharedZoom } from "./shared_zoom";
import { CameraBar, PlayerBar, ZoomBar } from "./toolbars";

export default function Compare() {
  const [search] = useSearchParams();
  const all = idsOf(search.get("jobs"));
  const jobs = all.slice(0, MOST);
  const refused = idsOf(search.get("refused")).slice(0, MOST - jobs.length);
  const batch = search.get("batch") ?? "";
  const shown = jobs.length + refused.length;
  return (
    <Page
      title={WORDS.compare}
      back={<BackTo to="/jobs">{WORDS.jobs}</BackTo>}
      actions={
        shown > 0 && (
          <Button
            component={Link}
            href={selectAddress(jobs)}
            variant="default"
            leftSection={<Icon name="jobs" size={16} />}
          >
            Change selection
          </Button>
        )
      }
    >
      {all.length > MOST && (
        <Alert className="notice notice-gate" color="gate" mb="md" title={`At most ${MOST} results are compared`}>
          The first {MOST} of {all.length} are shown.
        </Alert>
      )}
      {shown === 0 ? (
        <EmptyState title="Nothing to compare" icon="compare" action={{ label: "Choose jobs", to: "/jobs" }}>
          Select {FEWEST} to {MOST} jobs in the list, then choose Compare. Or start one prompt with several models in
          the playground.
        </EmptyState>
      ) : (
        <Comparison jobs={jobs} refused={refused} batch={batch} />
      )}
    </Page>
  );
}

interface Props {
  jobs: string[];
  refused: string[];
  batch: string;
}

function Comparison({ jobs: ids, refused, batch }: Props) {
  const [, navigate] = useLocation();
  const [isShort, setShort] = useState(false);
  const queries = useJobs(ids);
  const jobs = queries.flatMap(({ data }) => data ?? []);
  const sharing = useSharing(queries);
  const params = compareParams(jobs).filter(({ differs }) => differs || !isShort);
  const show = (nextJobs: string[], nextRefused: string[]) =>
    navigate(compareAddress(nextJobs, nextRefused, batch), { replace: true });
  const removeJob = (id: string) =>
    show(
      ids.filter((each) => each !== id),
      refused,
    );
  const removeRefused = (model: string) =>
    show(
      ids,
      refused.filter((each) => each !== model),
    );
  const count = ids.length + refused.length;
  return (
    <>
      <div className="compare-bars">
        {sharing.player && <PlayerBar player={sharing.player} />}
        {sharing.camera && <CameraBar camera={sharing.camera} />}
        {sharing.zoom && <ZoomBar zoom={sharing.zoom} />}
        {jobs.length > 1 && (
          <Switch
            label="Only differences"
            checked={isShort}
            onChange={(event) => setShort(event.currentTarget.checked)}
          />
        )}
      </div>
      <Notes jobs={jobs} count={count} />
      <div className="compare-grid" data-count={count}>
        {ids.map((id, index) => (
          <CompareCard
            key={id}
            id={id}
            query={queries[index] as UseQueryResult<Job>}
            all={jobs}
            params={params}
            sharing={sharing}
            onRemove={() => removeJob(id)}
          />
        ))}
        {refused.map((model) => (
          <RefusedCard
            key={model}
            model={model}
            batch={batch}
            onStarted={(job) =>
              show(
                [...ids, job],
                refused.filter((each) => each !== model),
              )
            }
            onRemove={() => removeRefused(model)}
          />
        ))}
      </div>
    </>
  );
}

function Notes({ jobs, count }: { jobs: Job[]; count: number }) {
  const kinds = new Set(jobs.flatMap((job) => primaryOf(job)?.kind ?? []));
  const notes = [
    count < FEWEST && "There is one result only. Choose Change selection to add others.",
    kinds.size > 1 && "These results are of different kinds. Only results of one kind move together.",
  ].filter(Boolean);
  if (notes.length === 0) return null;
  return (
    <Text size="sm" c="dimmed" mb="sm">
      {notes.join(" ")}
    </Text>
  );
}

/** Results of one kind move together, if there are several. */
function useSharing(queries: { data: Job | undefined }[]): Sharing {
  const [{ camera, player, zoom }] = useState(() => ({
    camera: new SharedCamera(),
    player: new SharedPlayer(),
    zoom: new SharedZoom(),
  }));
  const kinds = queries.map(({ data }) => data?.done && primaryOf(data)?.kind);
  const isShared = (kind: string) => kinds.filter((each) => each === kind).length >= FEWEST;
  return {
    camera: isShared("model") ? camera : null,
    player: isShared("video") ? player : null,
    zoom: isShared("image") ? zoom : null,
  };
}

import { Button, Progress, Text } from "@mantine/core";
import { Link } from "wouter";
import type { Pipeline } from "../../api/shapes";
import { type Column, DataTable } from "../../parts/data_table";
import { EmptyState } from "../../parts/empty_state";
import { Listing } from "../../parts/listing";
import { Money } from "../../parts/money";
import { Page } from "../../parts/page";
import { useListPage } from "../../parts/paging";
import { StateBadge } from "../../parts/state_badge";
import { Ago, formatSeconds, useNow } from "../../parts/time";
import { Icon } from "../../shell/icons";
import { WORDS } from "../../vocabulary";
import { chainOf, nameOfPipeline, secondsOfPipeline } from "./pipeline_words";
import { TemplateList } from "./template_list";

const EVERY = 3000;

export function PipelineList() {
  const pipelines = useListPage<Pipeline>(["pipelines"], "/api/v1/pipelines", {}, EVERY);
  return (
    <Page
      title={WORDS.pipelines}
      about="Generations that take each other's outputs, newest first."
      actions={
        <Button component={Link} href="/pipelines/new" leftSection={<Icon name="plus" size={16} />}>
          {WORDS.newPipeline}
        </Button>
      }
    >
      <Listing query={pipelines} empty={<NoneYet />}>
        {(rows, stale) => (
          <DataTable
            label={WORDS.pipelines}
            columns={COLUMNS}
            rows={rows}
            rowKey={(pipeline) => pipeline.id}
            stale={stale}
          />
        )}
      </Listing>
      <TemplateList />
    </Page>
  );
}

const COLUMNS: Column<Pipeline>[] = [
  { title: WORDS.pipeline, cell: (pipeline) => <Name pipeline={pipeline} /> },
  { title: WORDS.status, cell: (pipeline) => <Standing pipeline={pipeline} />, tight: true },
  {
    title: WORDS.template,
    cell: ({ template, version }) => template && `${template}${version ? ` v${version}` : ""}`,
    wide: true,
  },
  { title: WORDS.duration, cell: (pipeline) => <Took pipeline={pipeline} />, end: true, wide: true },
  {
    title: WORDS.cost,
    cell: ({ cost }) =>
      cost.final === null ? (
        <Text span size="sm" c="dimmed">
          about <Money amount={cost.estimated} />
        </Text>
      ) : (
        <Money amount={cost.final} />
      ),
    end: true,
    wide: true,
  },
  { title: WORDS.created, cell: (pipeline) => <Ago time={pipeline.created_at} />, end: true, wide: true },
];

function Name({ pipeline }: { pipeline: Pipeline }) {
  const name = nameOfPipeline(pipeline);
  return (
    <div className="pipeline-cell">
      <Link className="pipeline-name" href={`/pipelines/${pipeline.id}`} title={name}>
        {name}
      </Link>
      <span className="pipeline-under">{chainOf(pipeline)}</span>
    </div>
  );
}

function Standing({ pipeline }: { pipeline: Pipeline }) {
  const failed = pipeline.error?.steps.join(", ");
  return (
    <span title={pipeline.error?.message}>
      <StateBadge state={pipeline.status} />
      {failed && <span className="pipeline-under">in {failed}</span>}
      {!pipeline.done && (
        <Progress value={Math.max(2, pipeline.progress * 100)} size={4} mt={5} w={90} aria-label={WORDS.progress} />
      )}
    </span>
  );
}

function Took({ pipeline }: { pipeline: Pipeline }) {
  const now = useNow(pipeline.done ? null : 1000);
  return <span>{formatSeconds(secondsOfPipeline(pipeline, now))}</span>;
}

function NoneYet() {
  return (
    <EmptyState title="No pipelines yet" icon="pipelines" action={{ label: WORDS.newPipeline, to: "/pipelines/new" }}>
      A pipeline makes a picture, a model of it, and a film of the model, for example. You send all steps in one
      request, and see their price before. It continues when you close the page.
    </EmptyState>
  );
}

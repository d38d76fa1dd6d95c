/** One logged request as a conversation, with marks in the places of what was redacted. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useLocation } from "wouter";
import { call } from "../../api/call";
import type { ContentRecord } from "../../api/shapes";
import { Identifier } from "../../parts/code_block";
import { ConfirmButton } from "../../parts/confirm";
import { ErrorNotice } from "../../parts/error_notice";
import { BackTo, Facts, Panel } from "../../parts/facts";
import { Money } from "../../parts/money";
import { formatCount } from "../../parts/numbers";
import { Page, PageLoading } from "../../parts/page";
import { StateBadge } from "../../parts/state_badge";
import { Ago, formatSeconds } from "../../parts/time";
import { WORDS } from "../../vocabulary";
import { Conversation } from "./conversation";

export function ContentPage({ id }: { id: string }) {
  const path = `/api/v1/content/${encodeURIComponent(id)}`;
  const record = useQuery({
    queryKey: ["content record", id],
    queryFn: ({ signal }) => call<ContentRecord>(path, { signal }),
    // Each look is noted, so it is not repeated without being asked for.
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
  });
  if (record.data) return <Whole record={record.data} path={path} />;
  if (!record.error) return <PageLoading />;
  return (
    <Page title={WORDS.request} back={<BackTo to="/content">{WORDS.contentLog}</BackTo>}>
      <ErrorNotice error={record.error} onRetry={() => void record.refetch()} />
    </Page>
  );
}

function Whole({ record, path }: { record: ContentRecord; path: string }) {
  return (
    <Page
      title={record.model}
      back={<BackTo to="/content">{WORDS.contentLog}</BackTo>}
      about={<StateBadge state={record.status} />}
      actions={<Delete path={path} />}
    >
      <div className="split">
        <div>
          <Conversation record={record} />
        </div>
        <div>
          <Panel title={WORDS.details}>
            <Details record={record} />
          </Panel>
        </div>
      </div>
    </Page>
  );
}

function Details({ record }: { record: ContentRecord }) {
  const redactions = Object.entries(record.redactions);
  return (
    <Facts
      facts={[
        [WORDS.id, <Identifier key="id" id={record.id} />],
        [WORDS.created, <Ago key="made" time={record.created_at} />],
        [WORDS.key, <Identifier key="key" id={record.key_id} />],
        [WORDS.request, <Identifier key="request" id={record.request_id} />],
        [
          WORDS.job,
          record.job_id && (
            <Link key="job" href={`/jobs/${record.job_id}`}>
              {record.job_id}
            </Link>
          ),
        ],
        [WORDS.vendor, record.vendor],
        ["Error", record.error],
        [WORDS.duration, record.seconds === null ? null : formatSeconds(record.seconds)],
        ["Prompt tokens", record.prompt_tokens === null ? null : formatCount(record.prompt_tokens)],
        ["Completion tokens", record.completion_tokens === null ? null : formatCount(record.completion_tokens)],
        [WORDS.cost, record.cost && <Money key="cost" amount={record.cost} />],
        ["Redacted", redactions.map(([name, count]) => `${name}: ${count}`).join(", ") || "nothing"],
      ]}
    />
  );
}

function Delete({ path }: { path: string }) {
  const client = useQueryClient();
  const [, go] = useLocation();
  const remove = async () => {
    await call(path, { method: "DELETE" });
    await client.invalidateQueries({ queryKey: ["content"] });
    go("/content");
  };
  return (
    <ConfirmButton label={WORDS.delete} question="Delete this record?" deed="Delete it" onConfirm={remove}>
      Its prompt and answer are deleted. This cannot be undone.
    </ConfirmButton>
  );
}

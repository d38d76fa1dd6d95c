/** Links of the account to outputs of its jobs: all that work. */
import { Link } from "wouter";
import { useJob, useModels } from "../../api/queries";
import type { Share } from "../../api/shapes";
import { DataTable } from "../../parts/data_table";
import { EmptyState } from "../../parts/empty_state";
import { Listing } from "../../parts/listing";
import { Page } from "../../parts/page";
import { useListPage } from "../../parts/paging";
import { Ago } from "../../parts/time";
import { nameOf } from "../jobs/job_words";
import { Thumbnail } from "../jobs/thumbnail";
import { RevokeButton } from "./revoke_button";
import { formatEnd } from "./share_words";
import "../jobs/jobs.css";
import "./shares.css";
import { WORDS } from "../../vocabulary";

export default function Shares() {
  const links = useListPage<Share>(["shares", "list"], "/api/v1/shares", {}, 60_000);
  return (
    <Page title={WORDS.sharedLinks} about="Public links to your outputs that work now, newest first.">
      <Listing query={links} empty={<NoneYet />}>
        {(rows, stale) => (
          <DataTable
            label={WORDS.sharedLinks}
            rows={rows}
            rowKey={(link) => link.id}
            stale={stale}
            columns={[
              { title: WORDS.output, cell: (link) => <SharedJob link={link} /> },
              {
                title: WORDS.input,
                cell: (link) => (link.include_input ? "Shown" : "Hidden"),
                tight: true,
                wide: true,
              },
              { title: WORDS.created, cell: (link) => <Ago time={link.created_at} />, tight: true, wide: true },
              { title: WORDS.expires, cell: (link) => <Ago time={link.expires_at} />, tight: true, wide: true },
              { title: WORDS.action, cell: (link) => <RevokeButton link={link} />, end: true, tight: true },
            ]}
          />
        )}
      </Listing>
    </Page>
  );
}

function SharedJob({ link }: { link: Share }) {
  const job = useJob(link.job_id).data;
  const models = useModels();
  const name = job ? nameOf(job) : link.job_id;
  return (
    <div className="job-cell">
      {job && <Thumbnail job={job} kind={models.data?.find((model) => model.id === job.model)?.kind} />}
      <div className="job-words">
        <Link className="job-name" href={`/jobs/${link.job_id}`} title={name}>
          {name}
        </Link>
        <span className="job-under">
          {job && name !== job.model && job.model}
          <span data-phone>{formatEnd(link.expires_at)}</span>
        </span>
      </div>
    </div>
  );
}

function NoneYet() {
  const code = `curl ${location.origin}/api/v1/jobs/job_…/shares \\
  -H "Authorization: Bearer $PENSTOCK_API_KEY" -H "Content-Type: application/json" \\
  -d '{"expires_in": 604800}'`;
  return (
    <EmptyState title="No shared links" icon="share" code={code} action={{ label: "Open the gallery", to: "/gallery" }}>
      Open a job and choose Share to create a link that works without a key. You choose how long it works, and you can
      revoke it here.
    </EmptyState>
  );
}

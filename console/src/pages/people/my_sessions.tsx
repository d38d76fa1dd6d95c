/** The person's sessions in the console. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { call } from "../../api/call";
import type { SessionRecord } from "../../api/shapes";
import { leave } from "../../api/sign_in";
import { ConfirmButton } from "../../parts/confirm";
import { DataTable } from "../../parts/data_table";
import { EmptyState } from "../../parts/empty_state";
import { ErrorNotice } from "../../parts/error_notice";
import { Page } from "../../parts/page";
import { Ago } from "../../parts/time";
import { WORDS } from "../../vocabulary";
import { nameBrowser } from "./browser_name";

const PATH = "/api/v1/sessions";

export default function MySessions() {
  const client = useQueryClient();
  const sessions = useQuery({
    queryKey: ["own sessions"],
    queryFn: ({ signal }) => call<{ data: SessionRecord[] }>(PATH, { signal }).then((list) => list.data),
  });
  const refresh = () => client.invalidateQueries({ queryKey: ["own sessions"] });
  return (
    <Page title={WORDS.mySessions} about="Browsers in which you are signed in. End those that you do not know.">
      {sessions.error && <ErrorNotice error={sessions.error} />}
      {sessions.data?.length === 0 && (
        <EmptyState title="No sessions" icon="accounts">
          You use a key. Sessions begin when a provider signs you in.
        </EmptyState>
      )}
      {sessions.data && sessions.data.length > 0 && (
        <DataTable
          label={WORDS.mySessions}
          rows={sessions.data}
          rowKey={(session) => session.id}
          columns={[
            { title: WORDS.browser, cell: (session) => nameBrowser(session) },
            { title: "Address", cell: (session) => session.address, tight: true, wide: true },
            { title: WORDS.signedIn, cell: (session) => <Ago time={session.created_at} />, tight: true, wide: true },
            { title: WORDS.lastUsed, cell: (session) => <Ago time={session.seen_at} />, tight: true },
            {
              title: WORDS.action,
              cell: (session) => <End session={session} onDone={refresh} />,
              end: true,
              tight: true,
            },
          ]}
        />
      )}
    </Page>
  );
}

function End({ session, onDone }: { session: SessionRecord; onDone: () => Promise<void> }) {
  const end = async () => {
    if (session.current) return await leave();
    await call(`${PATH}/${session.id}`, { method: "DELETE" });
    await onDone();
  };
  return (
    <ConfirmButton label="End" question="End this session?" deed="End the session" size="compact-sm" onConfirm={end}>
      The browser is signed out within a second. Your keys keep working.
    </ConfirmButton>
  );
}

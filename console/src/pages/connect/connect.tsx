/** Connect: the one line that changes in each client, with this server's own address. */
import { Tabs, Text, Title } from "@mantine/core";
import { useModels } from "../../api/queries";
import { CodeBlock } from "../../parts/code_block";
import { tabOf } from "../../parts/code_tabs";
import { ErrorNotice } from "../../parts/error_notice";
import { noteStep } from "../../parts/first_steps/progress";
import { Page, PageLoading } from "../../parts/page";
import { WORDS } from "../../vocabulary";
import { type Client, clientsOf, type Use } from "./clients";
import "./connect.css";

export default function Connect() {
  const models = useModels();
  if (models.isLoading) return <PageLoading />;
  const clients = clientsOf(location.origin, models.data ?? []);
  return (
    <Page title={WORDS.connect} about="Programs for other services work here. One line changes: the address.">
      {models.error && <ErrorNotice error={models.error} onRetry={() => void models.refetch()} />}
      <Tabs defaultValue={tabOf(clients[0]?.title ?? "")} keepMounted={false}>
        <Tabs.List aria-label="Clients">
          {clients.map(({ title }) => (
            <Tabs.Tab key={title} value={tabOf(title)}>
              {title}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {clients.map((client) => (
          <Tabs.Panel key={client.title} value={tabOf(client.title)} pt="md">
            <Uses client={client} />
          </Tabs.Panel>
        ))}
      </Tabs>
      <Text size="sm" c="dimmed" mt="md">
        Set your key in the environment: <code className="mono">export PENSTOCK_API_KEY=psk_…</code> Each client sends
        it in its own way.
      </Text>
    </Page>
  );
}

function Uses({ client }: { client: Client }) {
  return (
    <>
      <Text size="sm" mb="md">
        {client.about}
      </Text>
      {client.note && (
        <Text size="sm" mb="md" className="connect-note" role="note">
          {client.note}
        </Text>
      )}
      <div className="connect-uses">
        {client.uses.map((use) => (
          <UseCard key={use.title} client={client.title} use={use} />
        ))}
      </div>
    </>
  );
}

function UseCard({ client, use }: { client: string; use: Use }) {
  const copied = () => noteStep({ copied: true });
  return (
    <section className="card connect-use" aria-label={`${client}, ${use.title}`}>
      <Title order={2} size="h5">
        {use.title}
      </Title>
      <CodeBlock code={use.line} label={`Changed line, ${client}, ${use.title}`} onCopy={copied} />
      {use.program && (
        <details>
          <summary>Whole program</summary>
          <CodeBlock code={use.program} label={`Program, ${client}, ${use.title}`} maxHeight={340} onCopy={copied} />
        </details>
      )}
    </section>
  );
}

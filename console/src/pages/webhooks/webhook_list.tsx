import { Button, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { fetchPage } from "../../api/queries";
import type { Webhook } from "../../api/shapes";
import { DataTable } from "../../parts/data_table";
import { EmptyState } from "../../parts/empty_state";
import { ErrorNotice } from "../../parts/error_notice";
import { Page, PageLoading } from "../../parts/page";
import { SecretOnce } from "../../parts/secret_once";
import { StateBadge } from "../../parts/state_badge";
import { Ago } from "../../parts/time";
import { Icon } from "../../shell/icons";
import { WORDS } from "../../vocabulary";
import { DeliveryList } from "./delivery_list";
import { JobsSecret } from "./jobs_secret";
import { standingOf } from "./webhook_events";
import { WebhookForm } from "./webhook_form";

export function WebhookList() {
  const client = useQueryClient();
  const [, navigate] = useLocation();
  const [making, { open, close }] = useDisclosure(false);
  const [made, setMade] = useState<{ id: string; secret: string } | null>(null);
  const webhooks = useQuery({
    queryKey: ["webhooks", "list"],
    queryFn: ({ signal }) => fetchPage<Webhook>("/api/v1/webhooks", { limit: 100 }, signal),
  });
  const done = (webhook: Webhook | { id: string; secret: string }) => {
    close();
    if ("secret" in webhook) setMade(webhook);
    void client.invalidateQueries({ queryKey: ["webhooks"] });
  };
  return (
    <Page
      title={WORDS.webhooks}
      about="URLs that receive signed events."
      actions={
        <Button leftSection={<Icon name="plus" size={16} />} onClick={open}>
          New webhook
        </Button>
      }
    >
      {webhooks.error && <ErrorNotice error={webhooks.error} onRetry={() => void webhooks.refetch()} />}
      {!webhooks.data && !webhooks.error && <PageLoading />}
      {webhooks.data && (
        <Stack gap="md">
          {webhooks.data.data.length ? <Table webhooks={webhooks.data.data} /> : <NoneYet onMake={open} />}
          <DeliveryList path="/api/v1/webhooks/deliveries" />
          <JobsSecret />
        </Stack>
      )}
      <WebhookForm opened={making} onClose={close} onDone={done} />
      <SecretOnce
        title="The webhook's secret"
        secret={made?.secret ?? null}
        about="Your receiver verifies every message with it, following Standard Webhooks."
        onClose={() => {
          if (made) navigate(`/webhooks/${made.id}`);
          setMade(null);
        }}
      />
    </Page>
  );
}

function Table({ webhooks }: { webhooks: Webhook[] }) {
  return (
    <DataTable
      label={WORDS.webhooks}
      rows={webhooks}
      rowKey={(webhook) => webhook.id}
      columns={[
        {
          title: "URL",
          cell: (webhook) => (
            <>
              <Link href={`/webhooks/${webhook.id}`} style={{ overflowWrap: "anywhere" }}>
                {webhook.url}
              </Link>
              {webhook.description && (
                <Text size="xs" c="dimmed">
                  {webhook.description}
                </Text>
              )}
            </>
          ),
        },
        { title: WORDS.status, cell: (webhook) => <Standing webhook={webhook} />, tight: true },
        { title: WORDS.events, cell: (webhook) => <Events events={webhook.events} />, wide: true },
        { title: WORDS.created, cell: (webhook) => <Ago time={webhook.created_at} />, end: true, wide: true },
      ]}
    />
  );
}

function Standing({ webhook }: { webhook: Webhook }) {
  const { state, why } = standingOf(webhook);
  return (
    <span title={why ?? undefined}>
      <StateBadge state={state} />
    </span>
  );
}

function Events({ events }: { events: string[] }) {
  return (
    <Text size="xs" c="dimmed" className="mono">
      {events.join(", ")}
    </Text>
  );
}

function NoneYet({ onMake }: { onMake: () => void }) {
  const code = `curl ${location.origin}/api/v1/webhooks \\
  -H "Authorization: Bearer $PENSTOCK_API_KEY" -H "Content-Type: application/json" \\
  -d '{"url": "https://example.com/penstock", "events": ["job.succeeded", "job.failed"]}'`;
  return (
    <EmptyState
      title="No webhooks yet"
      icon="webhooks"
      code={code}
      action={{ label: WORDS.createOne, onClick: onMake }}
    >
      Receive an event when a job changes, instead of polling. Each message is signed, retried for some hours if it
      fails, and listed here with your receiver's answer. To receive on this machine, the operator sets{" "}
      <code className="mono">fetch.allow_networks = ["127.0.0.0/8"]</code>.
    </EmptyState>
  );
}

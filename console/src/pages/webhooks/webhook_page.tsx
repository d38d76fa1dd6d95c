/** One webhook: events, deliveries and actions. */
import { Alert, Button } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation } from "wouter";
import { call } from "../../api/call";
import type { Delivery, Webhook, WebhookWithSecret } from "../../api/shapes";
import { Identifier } from "../../parts/code_block";
import { CodeTabs } from "../../parts/code_tabs";
import { ConfirmButton } from "../../parts/confirm";
import { ErrorNotice } from "../../parts/error_notice";
import { BackTo, Facts, Panel } from "../../parts/facts";
import { Page, PageLoading } from "../../parts/page";
import { SecretOnce } from "../../parts/secret_once";
import { StateBadge } from "../../parts/state_badge";
import { Ago } from "../../parts/time";
import { toast, toastError } from "../../parts/toasts";
import { Icon } from "../../shell/icons";
import { WORDS } from "../../vocabulary";
import { DeliveryList } from "./delivery_list";
import { receiverCode } from "./receiver_code";
import { standingOf } from "./webhook_events";
import { WebhookForm } from "./webhook_form";

export function WebhookPage({ id }: { id: string }) {
  const path = `/api/v1/webhooks/${encodeURIComponent(id)}`;
  const webhook = useQuery({
    queryKey: ["webhooks", "one", id],
    queryFn: ({ signal }) => call<Webhook>(path, { signal }),
  });
  if (webhook.data) return <Whole webhook={webhook.data} path={path} />;
  if (!webhook.error) return <PageLoading />;
  return (
    <Page title="Webhook" back={<BackTo to="/webhooks">{WORDS.webhooks}</BackTo>}>
      <ErrorNotice error={webhook.error} onRetry={() => void webhook.refetch()} />
    </Page>
  );
}

function Whole({ webhook, path }: { webhook: Webhook; path: string }) {
  const { state, why } = standingOf(webhook);
  return (
    <Page
      back={<BackTo to="/webhooks">{WORDS.webhooks}</BackTo>}
      title={webhook.description || new URL(webhook.url).host}
      about={<StateBadge state={state} />}
      actions={<Actions webhook={webhook} path={path} />}
    >
      {webhook.disabled && (
        <Alert className="notice notice-gate" color="gate" title="This webhook is disabled" mb="md">
          Disabled <Ago time={webhook.disabled_at} />
          {why && `: ${why}`}. Missed events are in the event feed.
        </Alert>
      )}
      <div className="split">
        <div>
          <DeliveryList path={`${path}/deliveries`} toOne />
        </div>
        <div>
          <Panel title={WORDS.details}>
            <Facts
              facts={[
                [WORDS.id, <Identifier key="id" id={webhook.id} />],
                ["URL", webhook.url],
                [WORDS.events, <Lines key="events" lines={webhook.events} />],
                [WORDS.created, <Ago key="made" time={webhook.created_at} />],
                ["Failing since", webhook.failing_since && <Ago key="failing" time={webhook.failing_since} />],
                [
                  "Old secret",
                  webhook.former_secret_until && (
                    <span key="former">
                      ends <Ago time={webhook.former_secret_until} />
                    </span>
                  ),
                ],
              ]}
            />
          </Panel>
          <Panel title="Receiving">
            <CodeTabs samples={receiverCode()} label="Receiver" />
          </Panel>
        </div>
      </div>
    </Page>
  );
}

function Lines({ lines }: { lines: string[] }) {
  return lines.map((line) => (
    <div key={line} className="mono">
      {line}
    </div>
  ));
}

function Actions({ webhook, path }: { webhook: Webhook; path: string }) {
  const client = useQueryClient();
  const [, navigate] = useLocation();
  const [changing, { open, close }] = useDisclosure(false);
  const [pinging, setPinging] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  const refresh = () => client.invalidateQueries({ queryKey: ["webhooks"] });
  const ping = async () => {
    setPinging(true);
    try {
      tell(await call<Delivery>(`${path}/ping`, { method: "POST" }));
      await refresh();
    } catch (error) {
      toastError(error);
    } finally {
      setPinging(false);
    }
  };
  const rotate = async () => {
    setSecret((await call<WebhookWithSecret>(`${path}/rotate`, { method: "POST" })).secret);
    await refresh();
  };
  const able = async (disabled: boolean) => {
    await call(path, { method: "PATCH", body: { disabled } });
    await refresh();
  };
  const remove = async () => {
    await call(path, { method: "DELETE" });
    navigate("/webhooks");
    toast("The webhook was deleted.");
    client.removeQueries({ queryKey: ["webhooks", "one", webhook.id] });
    client.removeQueries({ queryKey: ["webhooks", `${path}/deliveries`] });
    await client.invalidateQueries({ queryKey: ["webhooks", "list"] });
  };
  return (
    <>
      <Button leftSection={<Icon name="send" size={16} />} loading={pinging} onClick={ping}>
        Ping
      </Button>
      <Button variant="default" onClick={open}>
        {WORDS.edit}
      </Button>
      <ConfirmButton label="Rotate secret" question="Replace the secret?" deed="Rotate" onConfirm={rotate}>
        For 24 hours messages carry two signatures, one by the new and one by the old secret. Update your receiver in
        that time.
      </ConfirmButton>
      {webhook.disabled ? (
        <Button variant="default" onClick={() => able(false).catch(toastError)}>
          Enable
        </Button>
      ) : (
        <ConfirmButton label="Disable" question="Disable this webhook?" onConfirm={() => able(true)}>
          It receives no events until you enable it again. Missed events are not sent later.
        </ConfirmButton>
      )}
      <ConfirmButton
        label={WORDS.delete}
        question="Delete this webhook?"
        deed="Delete permanently"
        leftSection={<Icon name="trash" size={16} />}
        onConfirm={remove}
      >
        The webhook, its secret and its list of deliveries are deleted.
      </ConfirmButton>
      <WebhookForm
        opened={changing}
        webhook={webhook}
        onClose={close}
        onDone={() => {
          close();
          void refresh();
        }}
      />
      <SecretOnce
        title="New secret"
        secret={secret}
        about="The old secret also signs for 24 hours."
        onClose={() => setSecret(null)}
      />
    </>
  );
}

function tell(delivery: Delivery): void {
  const attempt = delivery.attempts.at(-1);
  if (delivery.status === "delivered")
    toast(`The receiver answered ${attempt?.status_code} after ${attempt?.latency_ms} ms.`, "Ping delivered");
  else if (attempt) toastError(attempt.error ?? `The receiver answered ${attempt.status_code}.`, "Ping failed");
  else toast("The ping is being sent.");
}

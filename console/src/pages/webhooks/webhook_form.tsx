/** Form to create or edit a webhook. */
import { Button, Checkbox, Group, Modal, SimpleGrid, Stack, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { call } from "../../api/call";
import type { Webhook, WebhookWithSecret } from "../../api/shapes";
import { ErrorNotice } from "../../parts/error_notice";
import { WORDS } from "../../vocabulary";
import { EVENTS, USUAL } from "./webhook_events";

interface Props {
  opened: boolean;
  /** The webhook to edit. Without it a new one is created. */
  webhook?: Webhook;
  onClose: () => void;
  onDone: (webhook: Webhook | WebhookWithSecret) => void;
}

export function WebhookForm({ opened, webhook, onClose, onDone }: Props) {
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      size="lg"
      title={webhook ? "Edit webhook" : "New webhook"}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      {opened && <Form webhook={webhook} onClose={onClose} onDone={onDone} />}
    </Modal>
  );
}

function Form({ webhook, onClose, onDone }: { webhook: Webhook | undefined } & Pick<Props, "onClose" | "onDone">) {
  const [url, setUrl] = useState(webhook?.url ?? "");
  const [description, setDescription] = useState(webhook?.description ?? "");
  const [events, setEvents] = useState<string[]>(webhook?.events ?? USUAL);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    const body = { url: url.trim(), events, description: description.trim() || null };
    try {
      const made = webhook
        ? await call<Webhook>(`/api/v1/webhooks/${webhook.id}`, { method: "PATCH", body })
        : await call<WebhookWithSecret>("/api/v1/webhooks", { body });
      onDone(made);
    } catch (caught) {
      setError(caught);
      setBusy(false);
    }
  };
  return (
    <form onSubmit={submit} aria-label={webhook ? "Edit webhook" : "New webhook"}>
      <Stack gap="sm">
        <TextInput
          label="URL"
          description="An http or https URL that answers with 2xx. Redirects are not followed."
          placeholder="https://example.com/penstock"
          type="url"
          required
          data-autofocus
          value={url}
          onChange={(event) => setUrl(event.currentTarget.value)}
        />
        <Checkbox.Group label={WORDS.events} description="Events to send" value={events} onChange={setEvents}>
          <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="xs" mt="xs">
            {EVENTS.map(({ type, about }) => (
              <Checkbox key={type} value={type} label={type} description={about} />
            ))}
          </SimpleGrid>
        </Checkbox.Group>
        <TextInput
          label={WORDS.description}
          placeholder="order service"
          maxLength={500}
          value={description}
          onChange={(event) => setDescription(event.currentTarget.value)}
        />
        {error !== null && <ErrorNotice error={error} />}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            {WORDS.cancel}
          </Button>
          <Button type="submit" loading={busy} disabled={!url.trim() || events.length === 0}>
            {webhook ? "Save" : "Create"}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

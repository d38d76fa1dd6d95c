/** A dialog with a form: sends once, shows what the server did not like, closes when it went well. */
import { Button, Group, Modal, Stack } from "@mantine/core";
import { type FormEvent, type ReactNode, useState } from "react";
import { ErrorNotice } from "../../parts/error_notice";
import { WORDS } from "../../vocabulary";

interface Props {
  title: string;
  opened: boolean;
  onClose: () => void;
  deed: string;
  ready?: boolean;
  onSubmit: () => Promise<unknown>;
  children: ReactNode;
}

export function FormModal({ title, opened, onClose, deed, ready = true, onSubmit, children }: Props) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const close = () => {
    setError(null);
    onClose();
  };
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await onSubmit();
      close();
    } catch (caught) {
      setError(caught);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Modal opened={opened} onClose={close} title={title} size="lg" closeButtonProps={{ "aria-label": "Close" }}>
      <form onSubmit={submit} aria-label={title}>
        <Stack gap="sm">
          {children}
          {error !== null && <ErrorNotice error={error} />}
          <Group justify="flex-end" gap="xs">
            <Button variant="default" onClick={close}>
              {WORDS.cancel}
            </Button>
            <Button type="submit" loading={busy} disabled={!ready}>
              {deed}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}

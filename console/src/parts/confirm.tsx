/** A button whose deed is asked about first; if it fails, the dialog says why. */
import { Button, type ButtonProps, Group, Modal, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { type ReactNode, useState } from "react";
import { ErrorNotice } from "./error_notice";

interface Props extends Pick<ButtonProps, "size" | "variant" | "disabled" | "leftSection"> {
  label: string;
  /** The dialog's heading, a question. */
  question: string;
  children: ReactNode;
  /** Label of the dialog's button. Defaults to `label`. */
  deed?: string;
  harmless?: boolean;
  ready?: boolean;
  onConfirm: () => Promise<unknown>;
}

export function ConfirmButton({ label, question, children, deed, harmless, ready, onConfirm, ...button }: Props) {
  const [opened, { open, close }] = useDisclosure(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  // The deed may change the label, and the dialog takes a moment to close: it keeps the words that were confirmed.
  const [asked, setAsked] = useState({ question, deed: deed ?? label });
  const color = harmless ? undefined : "red.9";
  const begin = () => {
    setError(null);
    setAsked({ question, deed: deed ?? label });
    open();
  };
  const confirm = async () => {
    setBusy(true);
    setError(null);
    try {
      await onConfirm();
      close();
    } catch (caught) {
      setError(caught);
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <Button variant="default" {...button} onClick={begin}>
        {label}
      </Button>
      <Modal opened={opened} onClose={close} title={asked.question} closeButtonProps={{ "aria-label": "Close" }}>
        <Stack gap="sm">
          <Text size="sm" component="div">
            {children}
          </Text>
          {error !== null && <ErrorNotice error={error} />}
          <Group justify="flex-end" gap="xs">
            <Button variant="default" onClick={close}>
              {harmless ? "Cancel" : "Keep it"}
            </Button>
            <Button {...(color ? { color } : {})} onClick={confirm} loading={busy} disabled={ready === false}>
              {asked.deed}
            </Button>
          </Group>
        </Stack>
      </Modal>
    </>
  );
}

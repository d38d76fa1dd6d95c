import { Alert, Button, CopyButton, Group, Modal, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { Icon } from "../shell/icons";
import { WORDS } from "../vocabulary";

interface Props {
  title: string;
  secret: string | null;
  /** Purpose of the secret. */
  about: string;
  onClose: () => void;
}

/** A secret that the server shows this once; the dialog closes only when it was copied, or said to be kept. */
export function SecretOnce({ title, secret, about, onClose }: Props) {
  const [kept, setKept] = useState(false);
  const close = () => {
    setKept(false);
    onClose();
  };
  return (
    <Modal
      opened={secret !== null}
      onClose={close}
      title={title}
      size="lg"
      closeOnClickOutside={false}
      closeOnEscape={kept}
      withCloseButton={false}
    >
      <Stack gap="sm">
        <Alert className="notice notice-gate" color="gate" title="Shown only once">
          Copy it now. The server cannot show it again. If you lose it, create another.
        </Alert>
        <Text size="sm">{about}</Text>
        <div className="code">
          <section
            // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
            tabIndex={0}
            aria-label={WORDS.theSecret}
          >
            <pre style={{ whiteSpace: "pre-wrap", overflowWrap: "anywhere" }}>{secret}</pre>
          </section>
        </div>
        <Group justify="flex-end" gap="xs">
          <CopyButton value={secret ?? ""} timeout={2000}>
            {({ copied, copy }) => (
              <Button
                variant={kept ? "default" : "filled"}
                data-autofocus
                leftSection={<Icon name={copied ? "check" : "copy"} size={16} />}
                onClick={() => {
                  copy();
                  setKept(true);
                }}
              >
                {copied ? "Copied" : "Copy"}
              </Button>
            )}
          </CopyButton>
          <Button variant={kept ? "filled" : "default"} onClick={close}>
            I have saved it
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

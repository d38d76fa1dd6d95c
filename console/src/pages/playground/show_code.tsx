import { Button, Modal, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { CodeTabs } from "../../parts/code_tabs";
import { Icon } from "../../shell/icons";
import type { Samples } from "./code_samples";

/** The button and what it opens: this very request, ready to paste. */
export function ShowCode({ samples, note }: { samples: () => Samples; note?: string | undefined }) {
  const [opened, { open, close }] = useDisclosure(false);
  return (
    <>
      <Button variant="default" leftSection={<Icon name="code" size={16} />} onClick={open}>
        Show code
      </Button>
      <Modal
        opened={opened}
        onClose={close}
        size="xl"
        title="This request as code"
        closeButtonProps={{ "aria-label": "Close" }}
      >
        {opened && <CodeTabs samples={{ ...samples() }} label="Code" />}
        <Text size="sm" c="dimmed" mt="sm">
          Set your key in the environment: <code className="mono">export PENSTOCK_API_KEY=psk_…</code>
          {note && ` ${note}`}
        </Text>
      </Modal>
    </>
  );
}

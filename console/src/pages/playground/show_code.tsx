import { Button, Modal, Tabs, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { CodeBlock } from "../../parts/code_block";
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
        title="The same request as code"
        closeButtonProps={{ "aria-label": "Close" }}
      >
        {opened && (
          <Tabs defaultValue="curl" keepMounted={false}>
            <Tabs.List>
              {Object.keys(samples()).map((name) => (
                <Tabs.Tab key={name} value={name}>
                  {name}
                </Tabs.Tab>
              ))}
            </Tabs.List>
            {Object.entries(samples()).map(([name, code]) => (
              <Tabs.Panel key={name} value={name} pt="sm">
                <CodeBlock code={code} label={`${name} code`} maxHeight={460} />
              </Tabs.Panel>
            ))}
          </Tabs>
        )}
        <Text size="sm" c="dimmed" mt="sm">
          Your key comes from the environment: <code className="mono">export PENSTOCK_API_KEY=psk_…</code>
          {note && ` ${note}`}
        </Text>
      </Modal>
    </>
  );
}

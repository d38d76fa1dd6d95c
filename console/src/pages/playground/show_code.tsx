import { Button, Modal, SegmentedControl, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { type ReactNode, useEffect, useState } from "react";
import { CodeTabs } from "../../parts/code_tabs";
import { SHOW_CODE } from "../../parts/first_steps/first_steps";
import type { Samples } from "../../parts/samples/samples";
import { Icon } from "../../shell/icons";
import { WORDS } from "../../vocabulary";

/** The button and what it opens: this very request as complete programs. */
export function ShowCode({ samples, note }: { samples: () => Samples; note?: string | undefined }) {
  return <CodeDialog note={note}>{() => <CodeTabs samples={samples()} label={WORDS.code} />}</CodeDialog>;
}

/** Like `ShowCode`, for a request that can be sent in several dialects. */
export function ShowDialects({ samples, note }: { samples: () => Record<string, Samples>; note?: string | undefined }) {
  return <CodeDialog note={note}>{() => <Dialects samples={samples()} />}</CodeDialog>;
}

function Dialects({ samples }: { samples: Record<string, Samples> }) {
  const titles = Object.keys(samples);
  const [title, setTitle] = useState(titles[0] ?? "");
  return (
    <>
      {titles.length > 1 && (
        <SegmentedControl
          aria-label="Dialect"
          size="xs"
          fullWidth
          data={titles}
          value={title}
          onChange={setTitle}
          mb="sm"
        />
      )}
      <CodeTabs key={title} samples={samples[title] ?? {}} label={WORDS.code} />
    </>
  );
}

function CodeDialog({ children, note }: { children: () => ReactNode; note?: string | undefined }) {
  const [opened, { open, close }] = useDisclosure(false);
  useEffect(() => {
    window.addEventListener(SHOW_CODE, open);
    return () => window.removeEventListener(SHOW_CODE, open);
  }, [open]);
  return (
    <>
      <Button variant="default" leftSection={<Icon name="code" size={16} />} onClick={open}>
        {WORDS.showCode}
      </Button>
      <Modal
        opened={opened}
        onClose={close}
        size="xl"
        title="This request as code"
        closeButtonProps={{ "aria-label": "Close" }}
      >
        {opened && children()}
        <Text size="sm" c="dimmed" mt="sm">
          Set your key in the environment: <code className="mono">export PENSTOCK_API_KEY=psk_…</code>
          {note && ` ${note}`}
        </Text>
      </Modal>
    </>
  );
}

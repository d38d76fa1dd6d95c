import { Group, Kbd, Modal, Stack, Text, Title } from "@mantine/core";
import { PAGES } from "../pages";
import { useSession } from "../session";
import { ELSEWHERE } from "./shortcuts";

export default function Help({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const session = useSession();
  const pages = PAGES.filter((page) => session[page.role]);
  return (
    <Modal opened={opened} onClose={onClose} title="Keyboard" size="sm" closeButtonProps={{ "aria-label": "Close" }}>
      <Stack gap="xs">
        {ELSEWHERE.map(({ keys, what }) => (
          <Row key={what} keys={keys} what={what} />
        ))}
        <Title order={3} mt="sm">
          Go to
        </Title>
        {pages.map((page) => (
          <Row key={page.path} keys={["g", page.shortcut]} what={page.title} />
        ))}
      </Stack>
    </Modal>
  );
}

function Row({ keys, what }: { keys: string[]; what: string }) {
  return (
    <Group justify="space-between" wrap="nowrap">
      <Text size="sm">{what}</Text>
      <Group gap={4} wrap="nowrap">
        {keys.map((key) => (
          <Kbd key={key}>{key}</Kbd>
        ))}
      </Group>
    </Group>
  );
}

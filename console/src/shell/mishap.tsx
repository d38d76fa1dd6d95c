import { Button, Stack, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";

interface Props {
  title: string;
  detail?: string;
  /** Action instead of reloading the page. */
  onRetry?: () => void;
  children: ReactNode;
}

/** Replacement for a page that cannot be shown. */
export function Mishap({ title, detail, onRetry, children }: Props) {
  return (
    <Stack align="flex-start" maw={560} mx="auto" mt="12vh" role="alert">
      <Title order={1}>{title}</Title>
      <Text>{children}</Text>
      {detail && (
        <Text className="mono" c="dimmed">
          {detail}
        </Text>
      )}
      <Button onClick={onRetry ?? (() => location.reload())}>{onRetry ? "Try again" : "Load again"}</Button>
    </Stack>
  );
}

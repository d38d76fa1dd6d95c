import { Button, Stack, Text, Title } from "@mantine/core";
import { Component, type ReactNode } from "react";

/** A mistake of ours on one page leaves the rest standing. A page that a newer build took away is loaded anew. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    const { error } = this.state;
    if (!error) return this.props.children;
    const isStale = /dynamically imported module|module script|preload/i.test(error.message);
    return (
      <Stack align="flex-start" maw={560} mx="auto" mt="12vh" role="alert">
        <Title order={1}>{isStale ? "This page was renewed" : "This page broke"}</Title>
        <Text>
          {isStale
            ? "The server has a newer console than the one in this tab. Loading it again is enough."
            : "It is a mistake in the console; your jobs and keys are not touched by it."}
        </Text>
        {!isStale && (
          <Text className="mono" c="dimmed">
            {error.message}
          </Text>
        )}
        <Button onClick={() => location.reload()}>Load again</Button>
      </Stack>
    );
  }
}

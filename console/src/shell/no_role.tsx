/** Page of a person who is signed in and has no role left. */
import { Button, Stack, Text, Title } from "@mantine/core";
import { useDocumentTitle } from "@mantine/hooks";
import type { OwnSession } from "../api/shapes";
import { leave } from "../api/sign_in";
import { WORDS } from "../vocabulary";
import { Mark } from "./mark";

export function NoRole({ person }: { person: OwnSession }) {
  useDocumentTitle("No role - Penstock");
  return (
    <main style={{ maxWidth: 460, margin: "14vh auto", padding: "0 24px" }}>
      <Stack align="flex-start">
        <div className="brand" style={{ padding: 0 }}>
          <Mark size={28} />
          Penstock
        </div>
        <Title order={1}>You have no role here</Title>
        <Text>
          {person.title} signed you in as {person.email}. This server gives you no role, so there is nothing that you
          may see.
        </Text>
        <Text>
          Ask an operator of this server, or the person who manages your groups, for a role. Then sign in again.
        </Text>
        <Button variant="default" onClick={() => void leave()}>
          {WORDS.signOut}
        </Button>
      </Stack>
    </main>
  );
}

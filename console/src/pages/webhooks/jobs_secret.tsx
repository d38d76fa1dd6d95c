/** The secret that signs the webhooks of single generations. */
import { Button, Group, Text } from "@mantine/core";
import { useState } from "react";
import { call } from "../../api/call";
import { CodeBlock } from "../../parts/code_block";
import { ConfirmButton } from "../../parts/confirm";
import { ErrorNotice } from "../../parts/error_notice";
import { Panel } from "../../parts/facts";
import { Ago } from "../../parts/time";
import { WORDS } from "../../vocabulary";

interface Secret {
  secret: string;
  former_secret_until: string | null;
}

export function JobsSecret() {
  const [shown, setShown] = useState<Secret | null>(null);
  const [error, setError] = useState<unknown>(null);
  const show = async () => {
    setError(null);
    try {
      setShown(await call<Secret>("/api/v1/webhooks/secret"));
    } catch (caught) {
      setError(caught);
    }
  };
  const rotate = async () => {
    setShown(await call<Secret>("/api/v1/webhooks/secret/rotate", { method: "POST" }));
  };
  return (
    <Panel title="Webhooks of single requests">
      <Text size="sm" c="dimmed" mb="sm">
        A generation request can name its own webhook: <code className="mono">"webhook": {'{"url": "https://…"}'}</code>
        . These messages are signed with one secret of the account.
      </Text>
      {error !== null && <ErrorNotice error={error} />}
      {shown && (
        <>
          <CodeBlock code={shown.secret} label={WORDS.theSecret} />
          {shown.former_secret_until && (
            <Text size="sm" c="dimmed" mt={6}>
              The old secret also signs, and ends <Ago time={shown.former_secret_until} />.
            </Text>
          )}
        </>
      )}
      <Group gap="xs" mt="sm">
        {shown ? (
          <Button variant="default" size="compact-sm" onClick={() => setShown(null)}>
            Hide secret
          </Button>
        ) : (
          <Button variant="default" size="compact-sm" onClick={show}>
            Show secret
          </Button>
        )}
        <ConfirmButton
          label={WORDS.rotate}
          question="Replace the secret for single requests?"
          deed="Rotate"
          size="compact-sm"
          onConfirm={rotate}
        >
          For 24 hours messages carry two signatures, one by the new and one by the old secret.
        </ConfirmButton>
      </Group>
    </Panel>
  );
}

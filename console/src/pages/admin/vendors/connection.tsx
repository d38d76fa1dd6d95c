/** Test of a vendor's connection, with the outcome as a sentence. */
import { Button, Group } from "@mantine/core";
import { useState } from "react";
import type { ConnectionTest } from "../../../api/shapes";
import { ErrorNotice } from "../../../parts/error_notice";
import { formatSeconds } from "../../../parts/time";
import { Icon } from "../../../shell/icons";
import { type Options, testConnection } from "../settings/run_time";
import "../settings/settings.css";

interface Props {
  name: string;
  /** Options that are not stored yet; without them the stored vendor is tested. */
  options?: Options | undefined;
  onTested?: (found: ConnectionTest) => void;
  onRefused?: (error: unknown) => void;
}

export function TestConnection({ name, options, onTested, onRefused }: Props) {
  const [busy, setBusy] = useState(false);
  const [found, setFound] = useState<ConnectionTest | null>(null);
  const [error, setError] = useState<unknown>(null);
  const test = async () => {
    setBusy(true);
    setError(null);
    try {
      const answer = await testConnection(name, options);
      setFound(answer);
      onTested?.(answer);
    } catch (caught) {
      setFound(null);
      setError(caught);
      onRefused?.(caught);
    } finally {
      setBusy(false);
    }
  };
  return (
    <div>
      <Group gap="sm">
        <Button variant="default" loading={busy} onClick={test}>
          Test connection
        </Button>
        <div role="status">{found && <Outcome found={found} />}</div>
      </Group>
      {error !== null && (
        <div style={{ marginTop: 10 }}>
          <ErrorNotice error={error} title="The test was not made" />
        </div>
      )}
    </div>
  );
}

function Outcome({ found }: { found: ConnectionTest }) {
  return (
    <span className="outcome" data-ok={found.ok}>
      <Icon name={found.ok ? "check" : "warning"} size={16} />
      <span>
        {found.message}
        {found.models.length > 0 && ` It lists ${found.models.length} models.`}
        {found.seconds > 0 && ` (${formatSeconds(found.seconds)})`}
      </span>
    </span>
  );
}

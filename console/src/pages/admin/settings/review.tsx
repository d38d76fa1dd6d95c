/** A change is looked at before it is made. If another came first, it is compared again and nothing is lost. */
import { Alert, Button, Group, Loader, Modal, Stack, Text, TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { call } from "../../../api/call";
import type { SettingsDifference, SettingsVersionDetail } from "../../../api/shapes";
import { ErrorNotice } from "../../../parts/error_notice";
import { toast } from "../../../parts/toasts";
import { WORDS } from "../../../vocabulary";
import { Differences } from "./differences";
import { type Change, isConflict, refresh, send } from "./run_time";

export interface Proposal {
  title: string;
  change: Change;
  /** The version that was read before the change was written. */
  base: number;
  deed?: string;
  about?: ReactNode;
  onDone?: () => void;
}

export function Review({ proposal, onClose }: { proposal: Proposal | null; onClose: () => void }) {
  return (
    <Modal
      opened={proposal !== null}
      onClose={onClose}
      title={proposal?.title}
      size="lg"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      {proposal && <Body proposal={proposal} onClose={onClose} />}
    </Modal>
  );
}

function Body({ proposal, onClose }: { proposal: Proposal; onClose: () => void }) {
  const client = useQueryClient();
  const [note, setNote] = useState("");
  const [busy, setBusy] = useState(false);
  const { base, differences, other, error, check, setError } = useCheck(proposal);
  const apply = async () => {
    setBusy(true);
    try {
      const made = await send(proposal.change, base, note);
      toast(`Version ${made.version} is in use.`, "Settings changed");
      await refresh(client);
      proposal.onDone?.();
      onClose();
    } catch (caught) {
      if (isConflict(caught)) await check();
      else setError(caught);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Stack gap="sm">
      {proposal.about && (
        <Text size="sm" component="div">
          {proposal.about}
        </Text>
      )}
      {other && <Meanwhile version={other} />}
      {error !== null && <ErrorNotice error={error} />}
      {!differences && error === null && <Loader type="dots" size="sm" role="status" aria-label={WORDS.loading} />}
      {differences && <Differences changes={differences} />}
      {differences && differences.length > 0 && (
        <TextInput
          label="Note"
          description="The reason, for the history. You may leave it out."
          maxLength={200}
          value={note}
          onChange={(event) => setNote(event.currentTarget.value)}
        />
      )}
      <Group justify="flex-end" gap="xs">
        <Button variant="default" onClick={onClose}>
          {WORDS.cancel}
        </Button>
        <Button loading={busy} disabled={!differences?.length || error !== null} onClick={apply}>
          {proposal.deed ?? "Apply"}
        </Button>
      </Group>
    </Stack>
  );
}

function Meanwhile({ version }: { version: SettingsVersionDetail }) {
  return (
    <Alert className="notice notice-gate" color="gate" title="The settings changed meanwhile" role="status">
      Version {version.version} by {version.actor} came first. Your entries are kept. Below is how they differ from that
      version.
    </Alert>
  );
}

/** Try the change, of the newest version if another came first. */
function useCheck(proposal: Proposal) {
  const [base, setBase] = useState(proposal.base);
  const [differences, setDifferences] = useState<SettingsDifference[] | null>(null);
  const [other, setOther] = useState<SettingsVersionDetail | null>(null);
  const [error, setError] = useState<unknown>(null);
  const begun = useRef(false);
  const tryOn = async (version: number) => {
    setBase(version);
    setDifferences((await send(proposal.change, version, "", true)).changes);
  };
  const check = async () => {
    setError(null);
    try {
      const { version } = await call<{ version: number }>("/admin/v1/settings");
      const newest = await call<SettingsVersionDetail>(`/admin/v1/settings/versions/${version}`);
      setOther(newest);
      await tryOn(version);
    } catch (caught) {
      setError(caught);
    }
  };
  useEffect(() => {
    if (begun.current) return;
    begun.current = true;
    tryOn(proposal.base).catch((caught) => (isConflict(caught) ? check() : setError(caught)));
  });
  return { base, differences, other, error, check, setError };
}

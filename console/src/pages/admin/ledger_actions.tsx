/** Ledger corrections of a job or chat request, each with a reason. */
import { Group, TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../../api/call";
import { ConfirmButton } from "../../parts/confirm";
import { toast } from "../../parts/toasts";
import { WORDS } from "../../vocabulary";

const DEEDS = [
  {
    deed: "refund",
    label: "Refund",
    question: "Refund the charge?",
    about: "The amount is also returned to the budget. You can do this once.",
  },
  {
    deed: "settle",
    label: "Settle",
    question: "Charge the held amount?",
    about: "Use this for a job of unknown outcome that did run.",
  },
  {
    deed: "release",
    label: "Release",
    question: "Release the held amount?",
    about: "Use this for a job of unknown outcome that should not be charged.",
  },
];

export function LedgerActions({ subject }: { subject: string }) {
  return (
    <Group mt="md" gap="xs" aria-label="Correct the ledger" role="group">
      {DEEDS.map((each) => (
        <Deed key={each.deed} subject={subject} {...each} />
      ))}
    </Group>
  );
}

interface Props {
  subject: string;
  deed: string;
  label: string;
  question: string;
  about: string;
}

function Deed({ subject, deed, label, question, about }: Props) {
  const client = useQueryClient();
  const [reason, setReason] = useState("");
  const mend = async () => {
    await call(`/admin/v1/ledger/${encodeURIComponent(subject)}/${deed}`, { body: { reason } });
    setReason("");
    toast("The entry was added.");
    await client.invalidateQueries({ queryKey: ["admin"] });
  };
  return (
    <ConfirmButton label={label} question={question} ready={reason.trim() !== ""} onConfirm={mend}>
      {about}
      <TextInput
        mt="sm"
        label={WORDS.reason}
        description="Recorded in the ledger and the audit log"
        placeholder="the film was cut off"
        maxLength={200}
        required
        data-autofocus
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
    </ConfirmButton>
  );
}

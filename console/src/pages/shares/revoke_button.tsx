import { useQueryClient } from "@tanstack/react-query";
import { call } from "../../api/call";
import type { Share } from "../../api/shapes";
import { ConfirmButton } from "../../parts/confirm";
import { toast } from "../../parts/toasts";
import { WORDS } from "../../vocabulary";

/** Ends a link after a question, as it cannot be brought back. */
export function RevokeButton({ link }: { link: Share }) {
  const client = useQueryClient();
  const revoke = async () => {
    await call(`/api/v1/shares/${link.id}`, { method: "DELETE" });
    toast("The link was revoked.");
    await client.invalidateQueries({ queryKey: ["shares"] });
  };
  return (
    <ConfirmButton
      label={WORDS.revoke}
      question="Revoke this link?"
      deed="Revoke the link"
      size="compact-sm"
      onConfirm={revoke}
    >
      The link stops working at once, for everyone who has it. This cannot be undone. The job and its outputs are kept.
    </ConfirmButton>
  );
}

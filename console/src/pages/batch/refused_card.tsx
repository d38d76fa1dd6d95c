/** A model of a batch that did not accept the request, beside the results of the others. */
import { Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ErrorNotice } from "../../parts/error_notice";
import { Frame } from "../compare/card";
import { useDrafts } from "../playground/drafts";
import { errorOfRefusal, sendTo } from "./orders";

interface Props {
  model: string;
  batch: string;
  onStarted: (job: string) => void;
  onRemove: () => void;
}

export function RefusedCard({ model, batch, onStarted, onRemove }: Props) {
  const client = useQueryClient();
  const [busy, setBusy] = useState(false);
  const refusal = useDrafts().batches.find((each) => each.key === batch)?.refusals[model];
  const send = async () => {
    setBusy(true);
    const job = await sendTo(client, batch, model);
    setBusy(false);
    if (job) onStarted(job);
  };
  return (
    <Frame label={`Refused by ${model}`} title={model} onRemove={onRemove}>
      <div className="compare-media" aria-busy={busy}>
        {refusal ? (
          <ErrorNotice
            error={errorOfRefusal(refusal)}
            {...(refusal.status === 0 ? { title: "No answer" } : {})}
            onRetry={() => busy || void send()}
          />
        ) : (
          <Text size="sm" c="dimmed">
            The request was refused. The reason is kept only in the tab that sent it.
          </Text>
        )}
      </div>
    </Frame>
  );
}

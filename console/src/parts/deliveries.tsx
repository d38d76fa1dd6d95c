/** Webhook deliveries with their attempts, and a button to send each again. */
import { Button, Text } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { call } from "../api/call";
import type { Delivery, DeliveryMessage } from "../api/shapes";
import { CodeBlock, Identifier } from "./code_block";
import { ErrorNotice } from "./error_notice";
import { StateBadge } from "./state_badge";
import { Ago } from "./time";
import { toast, toastError } from "./toasts";
import "./deliveries.css";
import { WORDS } from "../vocabulary";

/** `toOne`: all went to one URL, which is not repeated in each row. */
export function Deliveries({ deliveries, toOne = false }: { deliveries: Delivery[]; toOne?: boolean }) {
  return (
    <ul className="deliveries" aria-label={WORDS.deliveries}>
      {deliveries.map((delivery) => (
        <Line key={delivery.id} delivery={delivery} toOne={toOne} />
      ))}
    </ul>
  );
}

function Line({ delivery, toOne }: { delivery: Delivery; toOne: boolean }) {
  const [opened, setOpened] = useState(false);
  const last = delivery.attempts.at(-1);
  return (
    <li className="delivery">
      <button type="button" aria-expanded={opened} onClick={() => setOpened(!opened)}>
        <StateBadge state={delivery.status} />
        <span className="delivery-what">
          <strong>{delivery.type}</strong>
          {!toOne && <span className="delivery-url">{delivery.url}</span>}
        </span>
        <span className="delivery-code">{last ? (last.status_code ?? "no answer") : "not sent yet"}</span>
        <span className="delivery-when">
          <Ago time={delivery.created_at} />
        </span>
      </button>
      {opened && <Opened delivery={delivery} />}
    </li>
  );
}

function Opened({ delivery }: { delivery: Delivery }) {
  const client = useQueryClient();
  const redeliver = useMutation({
    mutationFn: () => call<Delivery>(`/api/v1/webhooks/deliveries/${delivery.id}/redeliver`, { method: "POST" }),
    onSuccess: () => {
      toast("The delivery is being sent again. Its id stays.");
      setTimeout(() => void client.invalidateQueries({ queryKey: ["webhooks"] }), 700);
    },
    onError: (error) => toastError(error),
  });
  return (
    <div className="delivery-more">
      <h3>{WORDS.attempts}</h3>
      {delivery.attempts.length === 0 && <Text size="sm">Not sent yet.</Text>}
      <ol aria-label={WORDS.attempts}>
        {delivery.attempts.map((attempt) => (
          <AttemptItem key={attempt.at} attempt={attempt} />
        ))}
      </ol>
      <Message id={delivery.id} />
      <div className="delivery-foot">
        <Button size="compact-sm" variant="default" loading={redeliver.isPending} onClick={() => redeliver.mutate()}>
          Redeliver
        </Button>
        {delivery.next_attempt_at && (
          <Text size="sm" c="dimmed" span>
            tried again <Ago time={delivery.next_attempt_at} />
          </Text>
        )}
        {delivery.job_id && <Link href={`/jobs/${delivery.job_id}`}>Its job</Link>}
        <Text size="xs" c="dimmed" component="span">
          <Identifier id={delivery.event_id} />
        </Text>
      </div>
    </div>
  );
}

/** One attempt: when, how long, and what the receiver answered. */
function AttemptItem({ attempt }: { attempt: Delivery["attempts"][number] }) {
  const answered = attempt.status_code === null ? "no answer" : `answered ${attempt.status_code}`;
  return (
    <li>
      <Text size="sm" span>
        <time dateTime={attempt.at}>{new Date(attempt.at).toLocaleString()}</time> · {answered} after{" "}
        {attempt.latency_ms} ms
      </Text>
      {attempt.error && (
        <Text size="sm" c="red">
          {attempt.error}
        </Text>
      )}
      {attempt.response ? (
        <CodeBlock code={attempt.response} label="Answer" maxHeight={140} />
      ) : (
        attempt.status_code !== null && (
          <Text size="sm" c="dimmed">
            The answer had no body.
          </Text>
        )
      )}
    </li>
  );
}

/** Headers and body as an attempt would send them now. */
function Message({ id }: { id: string }) {
  const message = useQuery({
    queryKey: ["webhooks", "message", id],
    queryFn: ({ signal }) => call<DeliveryMessage>(`/api/v1/webhooks/deliveries/${id}/message`, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  if (message.error) return <ErrorNotice error={message.error} />;
  if (!message.data) return null;
  const headers = Object.entries(message.data.headers).map(([name, value]) => `${name}: ${value}`);
  return (
    <>
      <h3>Headers</h3>
      <CodeBlock code={headers.join("\n")} label="Headers" maxHeight={140} />
      <h3>Body</h3>
      <CodeBlock code={JSON.stringify(JSON.parse(message.data.body), null, 2)} label="Body" maxHeight={320} />
      <Text size="xs" c="dimmed">
        As an attempt would send them now: the time, the signature and the links are fresh for each.
      </Text>
    </>
  );
}

import { Alert, Button, Group, List, Text } from "@mantine/core";
import { ApiError } from "../api/errors";
import { Icon } from "../shell/icons";
import { formatMoney } from "./money";
import { Prose } from "./prose";

interface Props {
  error: unknown;
  title?: string;
  onRetry?: () => void;
}

/** Error message of the server, with its suggestion. */
export function ErrorNotice({ error, title, onRetry }: Props) {
  const answer = error instanceof ApiError ? error : null;
  const message = error instanceof Error ? error.message : String(error);
  const details = answer?.details.filter((detail) => !message.includes(detail.message)) ?? [];
  return (
    <Alert className="notice" color="red" icon={<Icon name="warning" />} title={title ?? headline(answer)} role="alert">
      <Text size="sm">
        <Prose text={message} />
      </Text>
      {details.length > 0 && (
        <List size="sm" mt={6}>
          {details.map((detail) => (
            <List.Item key={detail.loc + detail.message}>
              {detail.loc && <span className="mono">{detail.loc}</span>} <Prose text={detail.message} />
            </List.Item>
          ))}
        </List>
      )}
      {answer && <Budget body={answer.body} />}
      {answer?.suggestion && (
        <Text size="sm" mt={6}>
          <Prose text={answer.suggestion} />
        </Text>
      )}
      {(onRetry || answer?.requestId) && (
        <Group mt="xs" gap="sm">
          {onRetry && (
            <Button size="compact-sm" variant="light" color="red" onClick={onRetry}>
              Try again
            </Button>
          )}
          {answer?.requestId && (
            <Text size="xs" c="dimmed" className="mono">
              {answer.code} · {answer.requestId}
            </Text>
          )}
        </Group>
      )}
    </Alert>
  );
}

/** Extra fields of a budget error. */
function Budget({ body }: { body: Record<string, unknown> }) {
  if (body.code !== "insufficient_budget" || body.cap === undefined) return null;
  const parts = (["cap", "spent", "held"] as const).filter((name) => body[name] !== undefined && body[name] !== null);
  return (
    <Text size="sm" mt={6}>
      {parts.map((name) => `${name} ${formatMoney(body[name] as string)}`).join(" · ")}
      {typeof body.resets_at === "string" && ` · resets ${new Date(body.resets_at).toLocaleString()}`}
    </Text>
  );
}

function headline(error: ApiError | null): string {
  if (!error) return "Something went wrong";
  if (error.status === 401) return "The key was not accepted";
  if (error.status === 402) return "Budget exceeded";
  if (error.status === 403) return "This key is not allowed to do that";
  if (error.status === 404 || error.status === 410) return "Not found";
  if (error.status === 429)
    return error.retryAfter ? `Too many requests. Try again in ${error.retryAfter} s` : "Too many requests";
  if (error.status >= 500) return "The server failed";
  return "The request was not accepted";
}

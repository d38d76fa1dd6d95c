/** Messages of a logged request. Texts are shown as they are, never as markup. */
import { Text } from "@mantine/core";
import type { ContentMessage, ContentPart, ContentRecord } from "../../api/shapes";
import "./content.css";

const MARK = /(\[redacted:[a-z_]+\])/;

export function Conversation({ record }: { record: ContentRecord }) {
  const instructions = { role: "instructions", parts: record.instructions, finish_reason: null };
  const asked = record.instructions.length > 0 ? [instructions, ...record.input] : record.input;
  return (
    <div className="conversation">
      {asked.map((message, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the messages of a record never change
        <Message key={at} message={message} />
      ))}
      {record.output.map((message, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the messages of a record never change
        <Message key={at} message={message} isAnswer />
      ))}
      {asked.length + record.output.length === 0 && <Text c="dimmed">This record has no text.</Text>}
      {record.truncated && <Text c="dimmed">Some of it was too long to be kept.</Text>}
    </div>
  );
}

function Message({ message, isAnswer }: { message: ContentMessage; isAnswer?: boolean }) {
  const ending = message.finish_reason ? ` · ${message.finish_reason}` : "";
  return (
    <section className="card message" data-answer={isAnswer || undefined} aria-label={message.role}>
      <header>
        {message.role}
        {ending}
      </header>
      {message.parts.map((part, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a message never change
        <Part key={at} part={part} />
      ))}
    </section>
  );
}

function Part({ part }: { part: ContentPart }) {
  switch (part.type) {
    case "file":
      return <p className="message-file">{describeFile(part)}</p>;
    case "tool_call":
      return (
        <div className="message-call">
          <strong>{part.name}</strong>
          <Marked text={part.arguments ?? ""} />
        </div>
      );
    case "tool_call_response":
      return <Marked text={part.response ?? ""} />;
    default:
      return <Marked text={part.content ?? ""} quiet={part.type === "reasoning"} />;
  }
}

function Marked({ text, quiet }: { text: string; quiet?: boolean }) {
  return (
    <p className="message-text" data-quiet={quiet || undefined}>
      {text.split(MARK).map((piece, at) =>
        at % 2 === 1 ? (
          // biome-ignore lint/suspicious/noArrayIndexKey: the pieces of a text never move
          <mark key={at}>{piece.slice(1, -1).replace(":", ": ")}</mark>
        ) : (
          piece
        ),
      )}
    </p>
  );
}

function describeFile({ kind, content_type, bytes, sha256, param }: ContentPart): string {
  const size = bytes ? `${bytes.toLocaleString("en")} bytes` : null;
  const hash = sha256 ? `SHA-256 ${sha256.slice(0, 16)}…` : null;
  return [param, kind, content_type, size, hash].filter(Boolean).join(" · ");
}

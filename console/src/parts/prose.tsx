import { Fragment } from "react";

/** The server's sentences: plain text with `code` in it. */
export function Prose({ text }: { text: string }) {
  const parts = text.split("`");
  if (parts.length % 2 === 0) return text;
  return parts.map((part, index) =>
    index % 2 === 1 ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: parts of one sentence never move
      <code key={index} className="mono">
        {part}
      </code>
    ) : (
      // biome-ignore lint/suspicious/noArrayIndexKey: the same
      <Fragment key={index}>{part}</Fragment>
    ),
  );
}

/** A sentence of the server that begins as a description: with a capital letter. */
export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** An output of a job: its picture, its film, or a link to its bytes. The link in the record is signed and needs no key. */
import { Button, Group, Text } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import type { Output } from "../api/shapes";
import { Icon } from "../shell/icons";
import { WORDS } from "../vocabulary";
import { CodeBlock } from "./code_block";
import { formatBytes, formatCount } from "./numbers";
import { formatSeconds } from "./time";

/**
 * The address of an output on this server, whatever name the server calls itself by. Where downloads are presigned the
 * bytes come through the server all the same: the page's policy lets nobody else in.
 */
export function localUrl(url: string): string {
  const { pathname, search } = new URL(url, location.href);
  return `${pathname}${search}${search ? "&" : "?"}proxied=true`;
}

/** Keep the first link while it works. A refreshed record has a new link to equal bytes, which would reload them. */
export function useSteadyUrl(output: Output): string {
  const kept = useRef(output);
  const isOver = Date.parse(kept.current.url_expires_at) < Date.now() + 60_000;
  if (kept.current.id !== output.id || isOver) kept.current = output;
  return localUrl(kept.current.url);
}

const MOST_LETTERS = 100_000;

export function SignedMedia({ output, maxHeight = 420 }: { output: Output; maxHeight?: number }) {
  const url = useSteadyUrl(output);
  const [failed, setFailed] = useState<string | null>(null);
  if (failed === output.id) {
    return (
      <Text size="sm" c="dimmed">
        It cannot be shown here. Download it instead.
      </Text>
    );
  }
  const onError = () => setFailed(output.id);
  const style = { display: "block", maxWidth: "100%", maxHeight, borderRadius: 6, background: "#000" };
  if (output.kind === "video") {
    return (
      // biome-ignore lint/a11y/useMediaCaption: what a model filmed has no captions
      <video
        src={url}
        controls
        loop
        playsInline
        preload="metadata"
        style={style}
        onError={onError}
        aria-label={WORDS.film}
      />
    );
  }
  if (output.kind === "audio") {
    // biome-ignore lint/a11y/useMediaCaption: what a model says is its text
    return <audio className="sound" src={url} controls preload="metadata" onError={onError} aria-label={WORDS.sound} />;
  }
  if (output.kind === "image") return <img src={url} alt={output.role} style={style} onError={onError} />;
  if (output.kind === "text") return <Transcript output={output} maxHeight={maxHeight} onError={onError} />;
  return null;
}

/** A text that a model wrote. */
function Transcript({ output, maxHeight, onError }: { output: Output; maxHeight: number; onError: () => void }) {
  const url = useSteadyUrl(output);
  const [text, setText] = useState<string | null>(null);
  const failed = useRef(onError);
  failed.current = onError;
  useEffect(() => {
    const leaving = new AbortController();
    fetch(url, { signal: leaving.signal })
      .then((answer) => (answer.ok ? answer.text() : Promise.reject(new Error(answer.statusText))))
      .then(
        (found) => setText(found.slice(0, MOST_LETTERS)),
        () => leaving.signal.aborted || failed.current(),
      );
    return () => leaving.abort();
  }, [url]);
  if (text === null) return null;
  return <CodeBlock code={readable(text, output.content_type)} label={WORDS.text} maxHeight={maxHeight} />;
}

function readable(text: string, type: string): string {
  if (!type.includes("json")) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** Return facts about the output in one line. */
export function OutputFacts({ output }: { output: Output }) {
  const facts = [
    output.width && output.height && `${output.width} × ${output.height}`,
    output.duration_seconds && formatSeconds(output.duration_seconds),
    output.fps && `${output.fps} fps`,
    output.faces && `${formatCount(output.faces)} faces`,
    output.vertices && `${formatCount(output.vertices)} vertices`,
    formatBytes(output.bytes),
  ];
  return (
    <Text size="sm" c="dimmed" component="span">
      {facts.filter(Boolean).join(" · ")}
    </Text>
  );
}

export function DownloadButton({ output }: { output: Output }) {
  const name = new URL(output.url, location.href).pathname.split("/").pop() ?? output.id;
  return (
    <Button
      component="a"
      href={localUrl(output.url)}
      download={name}
      variant="default"
      size="compact-sm"
      leftSection={<Icon name="download" size={15} />}
    >
      Download
    </Button>
  );
}

export function OutputLine({ output }: { output: Output }) {
  return (
    <Group gap="sm">
      <DownloadButton output={output} />
      <OutputFacts output={output} />
    </Group>
  );
}

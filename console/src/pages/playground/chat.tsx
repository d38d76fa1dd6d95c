/** Chat with a model. */
import { Button, Group, Text, Textarea } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { type FormEvent, type KeyboardEvent, lazy, Suspense, useEffect, useRef, useState } from "react";
import type { Model } from "../../api/shapes";
import { Copy } from "../../parts/code_block";
import { ErrorNotice } from "../../parts/error_notice";
import { formatMoney } from "../../parts/money";
import { formatCount } from "../../parts/numbers";
import { Prose } from "../../parts/prose";
import { chatSamples } from "../../parts/samples/samples";
import { formatSeconds } from "../../parts/time";
import { Icon } from "../../shell/icons";
import { WORDS } from "../../vocabulary";
import { ChatSettingsForm } from "./chat_settings";
import { answer, chatBody, forgetError, stopChat, useChatStream } from "./chat_stream";
import { changeDrafts, type Turn, useDrafts } from "./drafts";
import { ShowDialects } from "./show_code";

/** Large, and not needed before the first answer; until then words are shown as they come. */
const Markdown = lazy(() => import("./markdown"));

/** Questions that the built-in demonstration model answers well, tried by hand with several seeds. */
const BEGINNINGS = [
  "What is the capital of Japan?",
  "What is the water cycle?",
  "What is the internet?",
  "What does a doctor do?",
  "Give me three reasons to read books.",
  "Give me three tips for better sleep.",
] as const;

export default function Chat({ model }: { model: Model }) {
  const drafts = useDrafts();
  const turns = drafts.turns[model.id] ?? [];
  const { turn, error } = useChatStream(model.id);
  const setTurns = (next: Turn[]) => changeDrafts((before) => ({ turns: { ...before.turns, [model.id]: next } }));
  const say = (text: string) => {
    setTurns([...turns, { role: "user", content: text }]);
    void answer(model);
  };
  const again = () => {
    const end = turns.findLastIndex((each) => each.role === "user");
    setTurns(turns.slice(0, end + 1));
    void answer(model);
  };
  const samples = () =>
    chatSamples(
      location.origin,
      model,
      chatBody(
        model.id,
        turns.length ? turns : [{ role: "user", content: BEGINNINGS[0] }],
        drafts.settings[model.id] ?? {},
      ),
    );
  return (
    <div className="talk">
      <section className="card talk-main" aria-label="Conversation">
        <AboutModel model={model} />
        <Conversation turns={turn ? [...turns, turn] : turns} isOpen={turn !== null} onBegin={say} />
        {error !== null && (
          <div style={{ padding: "0 16px 12px" }}>
            <ErrorNotice error={error} onRetry={again} />
          </div>
        )}
        <Composer busy={turn !== null} onSay={say} onStop={() => stopChat(model.id)} />
      </section>
      <aside className="talk-side" aria-label="Settings">
        <div className="card" style={{ padding: 16 }}>
          <ChatSettingsForm model={model.id} />
        </div>
        <Totals turns={turns} model={model} />
        <div className="deeds">
          <ShowDialects samples={samples} />
          {turns.length > 0 && !turn && error === null && (
            <Button variant="default" onClick={again} leftSection={<Icon name="refresh" size={15} />}>
              Again
            </Button>
          )}
          {turns.length > 0 && !turn && (
            <Button
              variant="default"
              leftSection={<Icon name="plus" size={15} />}
              onClick={() => {
                setTurns([]);
                forgetError(model.id);
              }}
            >
              New
            </Button>
          )}
        </div>
      </aside>
    </div>
  );
}

/** Sentence about the model that answers, where the server knows one. */
function AboutModel({ model }: { model: Model }) {
  if (!model.description) return null;
  return (
    <Text size="xs" c="dimmed" className="talk-about">
      <Prose text={model.description} />
    </Text>
  );
}

function Conversation({ turns, isOpen, onBegin }: { turns: Turn[]; isOpen: boolean; onBegin: (text: string) => void }) {
  const box = useRef<HTMLDivElement>(null);
  const length = turns.length + (turns.at(-1)?.content.length ?? 0);
  const follows = useRef(true);
  // biome-ignore lint/correctness/useExhaustiveDependencies: whenever something was added
  useEffect(() => {
    if (follows.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [length]);
  const onScroll = () => {
    const element = box.current;
    if (element) follows.current = element.scrollHeight - element.scrollTop - element.clientHeight < 60;
  };
  return (
    <div
      className="talk-turns"
      ref={box}
      onScroll={onScroll}
      role="log"
      aria-label="Messages"
      aria-busy={isOpen}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
      tabIndex={0}
    >
      {turns.length === 0 && (
        <div className="talk-empty">
          <Text c="dimmed" size="sm">
            Write a message, or choose one of these. The conversation is kept only in this tab.
          </Text>
          <Group gap="xs" mt="sm">
            {BEGINNINGS.map((text) => (
              <Button key={text} variant="default" size="compact-sm" onClick={() => onBegin(text)}>
                {text}
              </Button>
            ))}
          </Group>
        </div>
      )}
      {turns.map((turn, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: turns are only ever added at the end
        <Bubble key={index} turn={turn} isOpen={isOpen && index === turns.length - 1} />
      ))}
    </div>
  );
}

function Bubble({ turn, isOpen }: { turn: Turn; isOpen: boolean }) {
  return (
    <div className="bubble" data-role={turn.role} data-open={isOpen || undefined}>
      <div className="bubble-who">{turn.role === "user" ? "You" : "Model"}</div>
      {turn.role === "user" ? <div className="bubble-said">{turn.content}</div> : <Formatted text={turn.content} />}
      {isOpen && !turn.content && <div className="waiting" role="status" aria-label="Waiting for the answer" />}
      {turn.role === "assistant" && !isOpen && (
        <Group gap="xs" mt={4} wrap="nowrap" align="flex-start">
          <Text size="xs" c="dimmed" component="span">
            {facts(turn)}
          </Text>
          <Copy text={turn.content} label="Copy answer" />
        </Group>
      )}
    </div>
  );
}

function Formatted({ text }: { text: string }) {
  return (
    <Suspense fallback={<div className="markdown plain">{text}</div>}>
      <Markdown text={text} />
    </Suspense>
  );
}

const ENDINGS = {
  stopped: "stopped",
  cut: "cut off",
  length: "stopped at max tokens",
  content_filter: "stopped by a content filter",
};

function facts({ tokens, seconds, first, cost, ending }: Turn): string {
  const speed =
    tokens && seconds && first !== undefined && seconds > first ? (tokens.completion - 1) / (seconds - first) : null;
  const parts = [
    tokens && `${formatCount(tokens.prompt)} in, ${formatCount(tokens.completion)} out`,
    cost !== undefined && cost !== null && (cost === 0 ? "free" : formatMoney(cost)),
    first !== undefined && `first token after ${formatSeconds(first)}`,
    speed && `${speed.toFixed(speed < 10 ? 1 : 0)} tokens/s`,
    ending && ENDINGS[ending],
  ];
  return parts.filter(Boolean).join(" · ");
}

function Totals({ turns, model }: { turns: Turn[]; model: Model }) {
  const answers = turns.filter((turn) => turn.tokens);
  if (answers.length === 0) return null;
  const sum = (pick: (turn: Turn) => number) => answers.reduce((total, turn) => total + pick(turn), 0);
  const cost = answers.some((turn) => turn.cost === null) ? null : sum((turn) => turn.cost ?? 0);
  return (
    <dl className="card totals" aria-label="This conversation">
      <div>
        <dt>Tokens in</dt>
        <dd>{formatCount(sum((turn) => turn.tokens?.prompt ?? 0))}</dd>
      </div>
      <div>
        <dt>Tokens out</dt>
        <dd>{formatCount(sum((turn) => turn.tokens?.completion ?? 0))}</dd>
      </div>
      <div>
        <dt>{WORDS.cost}</dt>
        <dd title={model.vendors.length > 1 ? "at the highest price of its vendors" : undefined}>
          {formatMoney(cost)}
        </dd>
      </div>
    </dl>
  );
}

function Composer({ busy, onSay, onStop }: { busy: boolean; onSay: (text: string) => void; onStop: () => void }) {
  const [text, setText] = useState("");
  const isNarrow = useMediaQuery("(max-width: 760px)", undefined, { getInitialValueInEffect: false });
  const send = (event?: FormEvent) => {
    event?.preventDefault();
    if (busy || !text.trim()) return;
    onSay(text.trim());
    setText("");
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
      event.preventDefault();
      send();
    }
  };
  return (
    <form className="composer" onSubmit={send} aria-label="Write">
      <Textarea
        aria-label="Message"
        placeholder={isNarrow ? "Message" : "Message (Enter sends, Shift+Enter adds a line)"}
        data-shortcut="/"
        autosize
        minRows={1}
        maxRows={8}
        flex={1}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      {busy ? (
        <Button variant="default" onClick={onStop} leftSection={<Icon name="stop" size={15} />}>
          Stop
        </Button>
      ) : (
        <Button type="submit" disabled={!text.trim()} leftSection={<Icon name="send" size={15} />}>
          Send
        </Button>
      )}
    </form>
  );
}

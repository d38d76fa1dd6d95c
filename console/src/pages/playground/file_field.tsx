/** The files that a model works from: dropped, pasted or chosen and uploaded at once, by URL, or outputs of own jobs. */
import { Anchor, Button, Group, Loader, Progress, Text, TextInput, UnstyledButton } from "@mantine/core";
import type { FieldProps, RJSFSchema } from "@rjsf/utils";
import { type DragEvent, useEffect, useRef, useState } from "react";
import { FILE_SIGNS, FILE_WORDS, type FileKind, kindWords } from "../../parts/file_kinds";
import { formatBytes } from "../../parts/numbers";
import { Prose } from "../../parts/prose";
import { fetchSamplePicture, SAMPLE_PATH } from "../../parts/samples/sample_picture";
import { Icon } from "../../shell/icons";
import { FileEntry } from "./file_entry";
import { type FileSlot, type FileValue, freeRole, slotOf, valuesOf } from "./file_slots";
import { OutputPicker } from "./output_picker";
import { uploadFile } from "./uploads";

export function FileField(props: FieldProps) {
  const { schema, formData, fieldPathId, required, rawErrors, errorSchema } = props;
  const slot = slotOf(props.name, schema as RJSFSchema) as FileSlot;
  const values = valuesOf(slot, formData);
  const set = (next: FileValue[]) =>
    props.onChange(next.length === 0 ? undefined : slot.isList ? next : next[0], fieldPathId.path);
  const files = useFiles(slot, values, set);
  const [isPicking, setPicking] = useState(false);
  const title = schema.title ?? "File";
  const isFull = values.length >= slot.most;
  const errors = [files.problem, ...(rawErrors ?? []), ...ownErrors(errorSchema, slot.isList)];
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be laid out as freely
    <div role="group" aria-label={title} className="file-field" ref={files.frame}>
      <Group justify="space-between" mb={4} gap={6}>
        <div className="field-label">
          {title}
          {required && <span aria-hidden="true"> *</span>}
          {slot.isList && (
            <Text span inherit c="dimmed" fw={400}>
              {" "}
              {values.length} of {slot.most}
            </Text>
          )}
        </div>
        {!(isFull && slot.isList) && (
          <Group gap="sm">
            <Anchor component="button" type="button" size="xs" onClick={() => setPicking(true)}>
              Use an output
            </Anchor>
            <Anchor component="button" type="button" size="xs" onClick={files.switchToAddress}>
              {files.byAddress ? "Upload a file" : "Use a URL"}
            </Anchor>
          </Group>
        )}
      </Group>
      {schema.description && (
        <div className="field-about">
          <Prose text={schema.description} />
        </div>
      )}
      {values.map((value, index) => (
        <FileEntry
          // biome-ignore lint/suspicious/noArrayIndexKey: files have no other name, and are only added and removed
          key={index}
          slot={slot}
          value={value}
          errors={slot.isList ? innerErrors((errorSchema as Tree)?.[index]) : []}
          busy={files.busy}
          onChange={(next) => set(values.map((each, at) => (at === index ? next : each)))}
          onRemove={() => set(values.filter((_, at) => at !== index))}
          onReplace={() => files.choose(index)}
        />
      ))}
      <input
        ref={files.chooser}
        type="file"
        accept={[...slot.endings, ...slot.kinds.filter((kind) => kind !== "3d").map((kind) => `${kind}/*`)].join(",")}
        hidden
        aria-label={`${capital(FILE_WORDS[slot.kinds[0] as FileKind])} file`}
        onChange={(event) => {
          void files.take([...(event.currentTarget.files ?? [])]);
          event.currentTarget.value = "";
        }}
        multiple={slot.isList}
      />
      {files.sending && <Sending {...files.sending} />}
      {!isFull && (files.byAddress ? <Address slot={slot} onAdd={files.addAddress} /> : <Drop {...{ slot, files }} />)}
      {errors.filter(Boolean).map((error) => (
        <div key={error} className="field-error" role="alert">
          {error}
        </div>
      ))}
      {isPicking && (
        <OutputPicker
          kinds={slot.kinds}
          onClose={() => setPicking(false)}
          onPick={(file) => {
            setPicking(false);
            files.add(file);
          }}
        />
      )}
    </div>
  );
}

type Files = ReturnType<typeof useFiles>;

/** The ways in which files come, and what goes wrong on them. */
function useFiles(slot: FileSlot, values: FileValue[], set: (next: FileValue[]) => void) {
  const [byAddress, setByAddress] = useState(false);
  const [busy, setBusy] = useState(false);
  const [sending, setSending] = useState<SendingFile | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const chooser = useRef<HTMLInputElement>(null);
  const frame = useRef<HTMLDivElement>(null);
  const replaced = useRef<number | null>(null);
  const latest = useRef(values);
  latest.current = values;

  const put = (file: FileValue, at: number | null) => {
    const now = latest.current;
    const index = at ?? (now.length < slot.most ? now.length : slot.most - 1);
    const role = now[index]?.role ?? freeRole(slot, now);
    const next = [...now];
    next[index] = { ...file, ...(role ? { role } : {}) };
    latest.current = next;
    set(next);
  };
  const doing = async (work: () => Promise<void>) => {
    setBusy(true);
    setProblem(null);
    try {
      await work();
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    } finally {
      setBusy(false);
      setSending(null);
    }
  };
  const take = async (files: File[]) => {
    const at = replaced.current;
    replaced.current = null;
    const room = at === null && slot.isList ? slot.most - latest.current.length : 1;
    await doing(async () => {
      for (const file of files.slice(0, room)) {
        const record = await uploadFile(file, (sent) => setSending({ sent, size: file.size }));
        if (!slot.kinds.includes(record.kind)) {
          throw new Error(`This is a ${FILE_WORDS[record.kind]}. A ${kindWords(slot.kinds)} is needed here.`);
        }
        put({ file_token: record.file_token }, at);
      }
    });
  };
  usePaste(frame, slot, take);
  return {
    byAddress,
    busy,
    sending,
    problem,
    chooser,
    frame,
    take,
    takeSample: () => void doing(async () => take([await fetchSamplePicture()])),
    choose: (at: number | null) => {
      replaced.current = at;
      chooser.current?.click();
    },
    add: (file: FileValue) => put(file, null),
    addAddress: (url: string) => {
      put({ url }, null);
      setByAddress(false);
    },
    switchToAddress: () => {
      if (!slot.isList && !byAddress) set([]);
      setByAddress(!byAddress);
    },
  };
}

interface SendingFile {
  sent: number;
  size: number;
}

/** How far the upload of a large file is. */
function Sending({ sent, size }: SendingFile) {
  const words = `${formatBytes(sent)} of ${formatBytes(size)} uploaded`;
  return (
    <div data-full>
      <Progress value={(100 * sent) / size} aria-label="Upload" aria-valuetext={words} animated my={6} />
      <Text size="xs" c="dimmed">
        {words}
      </Text>
    </div>
  );
}

/** A pasted file goes to the field that has the focus, else to the first that takes its kind. */
function usePaste(
  frame: React.RefObject<HTMLDivElement | null>,
  slot: FileSlot,
  take: (files: File[]) => Promise<void>,
): void {
  const now = useRef({ slot, take });
  now.current = { slot, take };
  useEffect(() => {
    const onPaste = (event: ClipboardEvent) => {
      const files = fitting(event.clipboardData, now.current.slot);
      const focused = document.activeElement?.closest(".file-field");
      if (files.length === 0 || event.defaultPrevented || (focused && focused !== frame.current)) return;
      event.preventDefault();
      void now.current.take(files);
    };
    document.addEventListener("paste", onPaste);
    return () => document.removeEventListener("paste", onPaste);
  }, [frame]);
}

function Drop({ slot, files }: { slot: FileSlot; files: Files }) {
  const [over, setOver] = useState(false);
  const word = kindWords(slot.kinds);
  const onDrop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    void files.take([...event.dataTransfer.files]);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: dropping is one more way; the button inside is for everyone
    <div
      className="drop"
      data-over={over || undefined}
      data-small={slot.isList || slot.kinds[0] !== "image" || undefined}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={onDrop}
    >
      <UnstyledButton className="drop-button" onClick={() => files.choose(null)} disabled={files.busy}>
        {files.busy ? <Loader size="sm" type="dots" /> : <Icon name={FILE_SIGNS[slot.kinds[0] ?? "image"]} size={24} />}
        <span>
          <b>Choose a {word}</b>, drop it here, or paste it
        </span>
        <small>{[slot.endings.join(", ").replaceAll(".", ""), slot.limits].filter(Boolean).join(" · ")}</small>
      </UnstyledButton>
      {slot.name === "file" && slot.kinds.includes("image") && (
        <Button
          className="sample-button"
          size="compact-sm"
          variant="default"
          disabled={files.busy}
          leftSection={<img src={SAMPLE_PATH} alt="" width={22} height={22} />}
          onClick={files.takeSample}
        >
          Use a sample picture
        </Button>
      )}
    </div>
  );
}

/** A field for an address, which becomes a file when it is left. */
function Address({ slot, onAdd }: { slot: FileSlot; onAdd: (url: string) => void }) {
  const [text, setText] = useState("");
  const add = () => text.trim() && onAdd(text.trim());
  return (
    <TextInput
      aria-label={`URL of the ${kindWords(slot.kinds)}`}
      placeholder="https://…"
      value={text}
      onChange={(event) => setText(event.currentTarget.value)}
      onBlur={add}
      onKeyDown={(event) => event.key === "Enter" && !event.ctrlKey && add()}
    />
  );
}

/** Pasted files that may be of a kind of the slot. */
function fitting(data: DataTransfer | null, slot: FileSlot): File[] {
  return [...(data?.files ?? [])].filter(
    (file) =>
      slot.kinds.some((kind) => file.type.startsWith(`${kind}/`)) ||
      slot.endings.some((ending) => file.name.toLowerCase().endsWith(ending)),
  );
}

type Tree = Record<string | number, unknown> | undefined;

/** Errors of `file.url` and such, at any depth. */
function innerErrors(tree: unknown): string[] {
  return Object.entries((tree ?? {}) as Record<string, unknown>).flatMap(([name, inner]) =>
    name === "__errors" ? (inner as string[]) : innerErrors(inner),
  );
}

/** Errors to show below the field: those of a list's entries are shown beside them. */
function ownErrors(tree: unknown, isList: boolean): string[] {
  const inner = Object.entries((tree ?? {}) as Record<string, unknown>).filter(([name]) => name !== "__errors");
  return isList ? [] : inner.flatMap(([, each]) => innerErrors(each));
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The picture that a model works from: dropped, pasted or chosen and uploaded at once, or named by its address. */
import { Anchor, Button, Group, Loader, Text, TextInput, UnstyledButton } from "@mantine/core";
import type { FieldProps } from "@rjsf/utils";
import { type ClipboardEvent, type DragEvent, useEffect, useRef, useState } from "react";
import { call } from "../../api/call";
import type { FileRecord } from "../../api/shapes";
import { formatBytes } from "../../parts/numbers";
import { fetchSamplePicture, SAMPLE_PATH } from "../../parts/samples/sample_picture";
import { Icon } from "../../shell/icons";
import { WORDS } from "../../vocabulary";
import { rememberPicture, usePicture } from "./pictures";

interface Picture {
  file_token?: string;
  url?: string;
}

export function PictureField(props: FieldProps) {
  const { formData, fieldPathId, required, rawErrors, errorSchema } = props;
  const picture = (formData ?? {}) as Picture;
  const [byAddress, setByAddress] = useState(Boolean(picture.url));
  const [busy, setBusy] = useState(false);
  const [over, setOver] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const chooser = useRef<HTMLInputElement>(null);
  const set = (value: Picture | undefined) => props.onChange(value, fieldPathId.path);
  const known = usePicture(picture.file_token);
  const errors = [...(rawErrors ?? []), ...innerErrors(errorSchema)];

  const upload = async (file: File | undefined | null) => {
    if (!file) return;
    setBusy(true);
    setProblem(null);
    try {
      const body = new FormData();
      body.append("file", file);
      const record = await call<FileRecord>("/api/v1/files", { body });
      const about = `${file.name || "pasted"} · ${record.width} × ${record.height} · ${formatBytes(record.bytes)}`;
      rememberPicture(record.file_token, { preview: URL.createObjectURL(file), about, name: file.name });
      set({ file_token: record.file_token });
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    } finally {
      setBusy(false);
    }
  };
  const takeSample = async () => {
    setBusy(true);
    try {
      await upload(await fetchSamplePicture());
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
      setBusy(false);
    }
  };
  const uploadNow = useRef(upload);
  uploadNow.current = upload;
  useEffect(() => {
    const onPaste = (event: Event) => {
      const file = droppedPicture((event as unknown as ClipboardEvent).clipboardData);
      if (file) void uploadNow.current(file);
    };
    document.addEventListener("paste", onPaste);
    return () => document.removeEventListener("paste", onPaste);
  }, []);

  const onDrop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    void upload(droppedPicture(event.dataTransfer));
  };
  return (
    <div>
      <Group justify="space-between" mb={4}>
        <div className="field-label">
          {props.schema.title ?? "Picture"}
          {required && <span aria-hidden="true"> *</span>}
        </div>
        <Anchor component="button" type="button" size="xs" onClick={() => setByAddress(!byAddress)}>
          {byAddress ? "Upload a file" : "Use a URL"}
        </Anchor>
      </Group>
      {byAddress ? (
        <TextInput
          aria-label="URL of the picture"
          placeholder="https://…"
          value={picture.url ?? ""}
          onChange={(event) => set(event.currentTarget.value ? { url: event.currentTarget.value } : undefined)}
        />
      ) : (
        // biome-ignore lint/a11y/noStaticElementInteractions: dropping is one more way; the button inside is for everyone
        <div
          className="drop"
          data-over={over || undefined}
          data-full={picture.file_token ? true : undefined}
          onDragOver={(event) => {
            event.preventDefault();
            setOver(true);
          }}
          onDragLeave={() => setOver(false)}
          onDrop={onDrop}
        >
          <input
            ref={chooser}
            type="file"
            accept="image/png,image/jpeg,image/webp"
            hidden
            aria-label="Picture file"
            onChange={(event) => {
              void upload(event.currentTarget.files?.[0]);
              event.currentTarget.value = "";
            }}
          />
          {picture.file_token ? (
            <Group wrap="nowrap" gap="md">
              {known && <img src={known.preview} alt="Your upload" />}
              <div style={{ minWidth: 0 }}>
                <Text size="sm" truncate>
                  {known?.about ?? "The picture you uploaded"}
                </Text>
                <Group gap={6} mt={6}>
                  <Button size="compact-xs" variant="default" loading={busy} onClick={() => chooser.current?.click()}>
                    Choose another
                  </Button>
                  <Button size="compact-xs" variant="subtle" color="red" onClick={() => set(undefined)}>
                    {WORDS.remove}
                  </Button>
                </Group>
              </div>
            </Group>
          ) : (
            <>
              <UnstyledButton className="drop-button" onClick={() => chooser.current?.click()} disabled={busy}>
                {busy ? <Loader size="sm" type="dots" /> : <Icon name="image" size={26} />}
                <span>
                  <b>Choose a picture</b>, drop it here, or paste it
                </span>
                <small>JPEG, PNG or WebP, up to 20 MB, sides of 20 to 6000 pixels</small>
              </UnstyledButton>
              <Button
                className="sample-button"
                size="compact-sm"
                variant="default"
                disabled={busy}
                leftSection={<img src={SAMPLE_PATH} alt="" width={22} height={22} />}
                onClick={() => void takeSample()}
              >
                Use a sample picture
              </Button>
            </>
          )}
        </div>
      )}
      {[problem, ...errors].filter(Boolean).map((error) => (
        <div key={error} className="field-error" role="alert">
          {error}
        </div>
      ))}
    </div>
  );
}

function droppedPicture(data: DataTransfer | null): File | null {
  return [...(data?.files ?? [])].find((file) => file.type.startsWith("image/")) ?? null;
}

/** Of `file.url` and such: they are said here, as there is only one field to see. */
function innerErrors(tree: FieldProps["errorSchema"]): string[] {
  return Object.entries(tree ?? {}).flatMap(([name, inner]) =>
    name === "__errors" ? [] : ((inner as { __errors?: string[] } | undefined)?.__errors ?? []),
  );
}

/** One file that is given: what it is, where it comes from, and its role. */
import { Anchor, Button, Group, Select, Text, TextInput } from "@mantine/core";
import { lazy, Suspense, useState } from "react";
import { Link } from "wouter";
import { useJob } from "../../api/queries";
import { FILE_SIGNS, type FileKind, kindWords, outputNamed } from "../../parts/file_kinds";
import { OutputFacts } from "../../parts/signed_media";
import { Icon } from "../../shell/icons";
import { WORDS } from "../../vocabulary";
import { nameOf } from "../jobs/job_words";
import { OutputThumb } from "../jobs/thumbnail";
import type { FileSlot, FileValue } from "./file_slots";
import { words } from "./form_schema";
import { useUpload } from "./uploads";

const ModelStage = lazy(() => import("../../parts/model_view").then((module) => ({ default: module.ModelStage })));

interface Props {
  slot: FileSlot;
  value: FileValue;
  errors: string[];
  busy: boolean;
  onChange: (value: FileValue) => void;
  onRemove: () => void;
  onReplace: () => void;
}

export function FileEntry({ slot, value, errors, busy, onChange, onRemove, onReplace }: Props) {
  const remove = (
    <Button size="compact-xs" variant="subtle" color="red" onClick={onRemove}>
      {WORDS.remove}
    </Button>
  );
  return (
    <div className="drop file-entry" data-full>
      {value.job ? (
        <FromJob job={value.job} output={value.output} />
      ) : value.file_token ? (
        <Uploaded token={value.file_token} />
      ) : (
        <TextInput
          aria-label={`URL of the ${kindWords(slot.kinds)}`}
          placeholder="https://…"
          className="file-url"
          value={value.url ?? ""}
          onChange={(event) => onChange({ ...value, url: event.currentTarget.value })}
        />
      )}
      <Group gap={6} mt={8}>
        {slot.roles.length > 0 && (
          <Select
            size="xs"
            w={118}
            aria-label="Role of the file"
            data={slot.roles.map((role) => ({ value: role, label: words(role) }))}
            value={value.role ?? slot.roles[0] ?? null}
            allowDeselect={false}
            onChange={(role) => role && onChange({ ...value, role })}
          />
        )}
        {!value.url && (
          <Button size="compact-xs" variant="default" loading={busy} onClick={onReplace}>
            Choose another
          </Button>
        )}
        {remove}
      </Group>
      {errors.map((error) => (
        <div key={error} className="field-error" role="alert">
          {error}
        </div>
      ))}
    </div>
  );
}

function Uploaded({ token }: { token: string }) {
  const known = useUpload(token);
  return (
    <>
      <Group wrap="nowrap" gap="md">
        {known && <Preview kind={known.kind} url={known.preview} />}
        <Text size="sm" lineClamp={2} miw={0}>
          {known?.about ?? "The file you uploaded"}
        </Text>
      </Group>
      {known?.kind === "3d" && known.name.endsWith(".glb") && <TurnIt url={known.preview} />}
    </>
  );
}

function Preview({ kind, url }: { kind: FileKind; url: string }) {
  if (kind === "image") return <img className="file-upload" src={url} alt="Your upload" />;
  if (kind === "video") {
    return <video src={url} muted playsInline controls preload="metadata" aria-label="Your film" />;
  }
  // biome-ignore lint/a11y/useMediaCaption: a sound that somebody gives has no captions
  if (kind === "audio") return <audio src={url} controls preload="metadata" aria-label="Your sound" />;
  return (
    <span className="file-sign fit">
      <Icon name={FILE_SIGNS[kind]} size={26} />
    </span>
  );
}

/** The viewer is large, and loaded only on demand. */
function TurnIt({ url }: { url: string }) {
  const [isShown, setShown] = useState(false);
  if (!isShown) {
    return (
      <Button mt={8} size="compact-xs" variant="default" onClick={() => setShown(true)}>
        Show the model
      </Button>
    );
  }
  return (
    <Suspense fallback={<Text size="sm">{WORDS.loadingTheViewer}</Text>}>
      <ModelStage url={url} height={200} />
    </Suspense>
  );
}

/** An output of a job, with the way to it. */
function FromJob({ job: id, output: name }: { job: string; output: number | string | undefined }) {
  const job = useJob(id);
  const output = job.data && outputNamed(job.data.outputs, name);
  return (
    <Group wrap="nowrap" gap="md">
      {job.data && output ? (
        <span className="file-thumb fit">
          <OutputThumb outputs={job.data.outputs} output={output} />
        </span>
      ) : (
        <span className="file-sign fit">
          <Icon name="input" size={24} />
        </span>
      )}
      <div style={{ minWidth: 0 }}>
        <Text size="sm" truncate>
          {job.data ? nameOf(job.data) : id}
        </Text>
        <Text size="xs" c={job.error ? "red" : "dimmed"} component="div">
          {job.error
            ? job.error.message
            : typeof name === "number"
              ? `Output ${name} of `
              : `${words(name ?? "output")} of `}
          {!job.error && (
            <Anchor component={Link} href={`/jobs/${id}`} inherit underline="always">
              {job.data?.model ?? "a job"}
            </Anchor>
          )}
        </Text>
        {output && <OutputFacts output={output} />}
      </div>
    </Group>
  );
}

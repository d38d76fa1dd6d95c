import { Anchor, Text } from "@mantine/core";
import { lazy, Suspense } from "react";
import type { Job, Output } from "../../api/shapes";
import { DownloadButton, OutputFacts, SignedMedia } from "../../parts/signed_media";
import { WORDS } from "../../vocabulary";
import { UseAsInput } from "../playground/use_as_input";

const ModelView = lazy(() => import("../../parts/model_view").then((module) => ({ default: module.ModelView })));

/** Outputs of a job, to view and download. */
export function JobOutputs({ job }: { job: Job }) {
  if (job.outputs.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        {job.done ? "The job ended without outputs." : "Outputs appear here when they are stored."}
      </Text>
    );
  }
  const preview = job.outputs.find((output) => output.role === "preview" && output.kind === "image");
  return job.outputs.map((output) => (
    <article className="output" key={output.id} aria-label={`${output.role} output`}>
      <Shown output={output} preview={preview} />
      <div className="output-foot">
        <DownloadButton output={output} />
        <UseAsInput job={job} output={output} />
        <Text size="sm" fw={550} span>
          {output.role}
        </Text>
        <OutputFacts output={output} />
        <Text size="xs" c="dimmed" className="mono" span title={`sha256 ${output.sha256}`}>
          {output.content_type}
        </Text>
        <SignatureNote output={output} />
      </div>
    </article>
  ));
}

/** Whether the output is signed, with its sidecar to download. */
function SignatureNote({ output }: { output: Output }) {
  if (output.provenance === null) return null;
  if (output.sidecar_url === null) {
    return (
      <Text size="xs" c="dimmed" span title="A C2PA manifest inside the file says by whom and how it was made.">
        {WORDS.signedInside}
      </Text>
    );
  }
  return (
    <Anchor size="xs" href={output.sidecar_url} download>
      {WORDS.signedBeside}
    </Anchor>
  );
}

/** The viewer is large, and loaded only where there is something to turn. */
function Shown({ output, preview }: { output: Output; preview: Output | undefined }) {
  if (output.kind !== "model") return <SignedMedia output={output} maxHeight={output.role === "preview" ? 220 : 460} />;
  return (
    <Suspense fallback={<Text size="sm">{WORDS.loadingTheViewer}</Text>}>
      <ModelView output={output} preview={preview} height={420} />
    </Suspense>
  );
}

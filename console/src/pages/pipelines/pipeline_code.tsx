/** A pipeline as complete programs. */
import { pipelineSamples } from "../../parts/samples/samples";
import { ShowCode } from "../playground/show_code";
import { fileNameOf } from "../playground/uploads";

export function PipelineCode({ body }: { body: Record<string, unknown> }) {
  const { on_error, ...rest } = body;
  const short = on_error && on_error !== "stop" ? body : rest;
  return (
    <ShowCode
      samples={() => pipelineSamples(location.origin, short, fileNameOf)}
      note={JSON.stringify(body).includes("file_token") ? "Run it in the folder of the files." : undefined}
    />
  );
}

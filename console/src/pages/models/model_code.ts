/** A model's example request as complete programs, and its body. */
import type { Model } from "../../api/shapes";
import { embeddingSamples } from "../../parts/samples/embeddings";
import { chatSamples, generationSamples, type Samples } from "../../parts/samples/samples";

export function modelCode(origin: string, model: Model): Samples {
  const example = (model.example.input as { params: Record<string, unknown> }[] | undefined)?.[0]?.params ?? {};
  if (model.kind === "embedding") {
    return { ...embeddingSamples(origin, model.example), JSON: JSON.stringify(model.example, null, 2) };
  }
  const [endpoint = ""] = model.endpoints;
  if (model.kind === "speech") {
    const body = JSON.stringify(model.example).replaceAll("'", "'\\''");
    return {
      curl: `${curl(origin + endpoint)} \\\n  -H "Content-Type: application/json" -d '${body}' --output speech.mp3`,
    };
  }
  if (model.kind === "transcription")
    return { curl: `${curl(origin + endpoint)} \\\n  -F model=${model.id} -F file=@speech.mp3` };
  const samples =
    model.kind === "chat"
      ? Object.values(chatSamples(origin, model, model.example))[0]
      : generationSamples(origin, model, example);
  return { ...samples, JSON: JSON.stringify(model.example, null, 2) };
}

function curl(address: string): string {
  return `curl ${address} \\\n  -H "Authorization: Bearer $PENSTOCK_API_KEY"`;
}

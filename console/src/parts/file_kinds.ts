/** The kinds of files that models take, and their words. */
import type { Output } from "../api/shapes";
import type { IconName } from "../shell/icons";

export const FILE_KINDS = ["image", "video", "audio", "3d"] as const;
export type FileKind = (typeof FILE_KINDS)[number];

export const FILE_WORDS: Record<FileKind, string> = {
  image: "picture",
  video: "film",
  audio: "sound",
  "3d": "3D model",
};

export const FILE_SIGNS: Record<FileKind, IconName> = {
  image: "image",
  video: "video",
  audio: "sound",
  "3d": "models",
};

/** `picture or film`. */
export function kindWords(kinds: readonly FileKind[]): string {
  return kinds.map((kind) => FILE_WORDS[kind]).join(" or ");
}

/** Return the kind of an output as models take it; null for texts. */
export function fileKindOfOutput(output: Output): FileKind | null {
  if (output.kind === "model") return "3d";
  return output.kind === "text" ? null : output.kind;
}

/** Return the kind of a content type or of a file's ending. */
export function kindOfType(type: string): FileKind {
  const start = type.split("/")[0] ?? "";
  if (start === "video" || start === "audio" || start === "image") return start;
  if (start === "model" || /^(3d|glb|obj|fbx|stl|usdz)$|fbx/.test(type)) return "3d";
  if (/^(mp4|mov|webm)$/.test(type)) return "video";
  return /^(mp3|wav|flac|ogg|m4a)$/.test(type) ? "audio" : "image";
}

/** How a request names an output of a job: by its role if it is the first of the role, else by its number. */
export function outputName(outputs: Output[], output: Output): number | string {
  const first = outputs.find((each) => each.role === output.role);
  return first?.id === output.id ? output.role : outputs.findIndex((each) => each.id === output.id);
}

/** Return the output of that name. */
export function outputNamed(outputs: Output[], name: number | string = "primary"): Output | undefined {
  return typeof name === "number" ? outputs[name] : outputs.find((each) => each.role === name);
}

/** Kinds of outputs. */
import type { Job, Output } from "../../api/shapes";
import { WORDS } from "../../vocabulary";

export const KINDS = [
  { value: "", label: WORDS.all },
  { value: "video", label: "Videos" },
  { value: "image", label: "Images" },
  { value: "model", label: "3D" },
  { value: "audio", label: "Sounds" },
];

/** The output that a job was made for, without previews. */
export function primaryOf(job: Job): Output | undefined {
  return job.outputs.find((output) => output.role === "primary") ?? job.outputs[0];
}

export function kindOf(job: Job): string | null {
  return primaryOf(job)?.kind ?? null;
}

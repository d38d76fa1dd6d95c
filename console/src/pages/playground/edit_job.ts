/** Open a job in the playground, with its params and its files. */
import type { Job, Model } from "../../api/shapes";
import {
  fileFacts,
  fileKindOf,
  type InputFile,
  inputFiles,
  isFile,
  type PlacedFile,
  previewUrl,
} from "../../parts/input_file";
import { paramsOf } from "../jobs/rerun";
import { changeDrafts } from "./drafts";
import { rememberFile } from "./uploads";

/** Fill the form with a job's params. Return the address of the form. */
export async function editJob(job: Job, model: Model): Promise<string> {
  const files = inputFiles(job);
  const there = await Promise.all(files.map(({ file }) => isThere(file)));
  const lost = files.filter((_, index) => !there[index]);
  const params = paramsOf(without(job, lost));
  changeDrafts((drafts) => ({
    model: model.id,
    kind: model.kind,
    params: { ...drafts.params, [model.id]: params },
    notices: { ...drafts.notices, [model.id]: lost.length ? noticeOf(lost) : null },
  }));
  return `/playground/${encodeURIComponent(model.id)}`;
}

function noticeOf(lost: PlacedFile[]): string {
  const [first] = lost;
  const kind = first && fileKindOf(first.file) === "image" ? "picture" : "file";
  const names = lost.map(({ file }) => file.name ?? `The ${kind}`).join(", ");
  return `${names} ${lost.length > 1 ? "are" : "is"} no longer kept. Choose a ${kind} again; all other params are filled in.`;
}

/** The job without these files. */
function without(job: Job, lost: PlacedFile[]): Job {
  const isLost = (path: string) => lost.some((each) => each.path === path);
  const input = Object.entries(job.input).flatMap(([name, value]) => {
    if (isLost(name)) return [];
    if (!Array.isArray(value)) return [[name, value]];
    return [[name, value.filter((each, index) => !(isFile(each) && isLost(`${name}.${index}`)))]];
  });
  return { ...job, input: Object.fromEntries(input) };
}

/** Return whether the file can be used again. The bytes of a picture are kept, as the form shows them. */
async function isThere(file: InputFile): Promise<boolean> {
  const url = previewUrl(file);
  if (!url) return Boolean(file.copy_token || file.job || file.url || "file_token" in file || "object" in file);
  const kind = fileKindOf(file);
  try {
    const answer = await fetch(url, kind === "image" ? {} : { headers: { range: "bytes=0-0" } });
    if (answer.status === 404 || answer.status === 410) return false;
    if (answer.ok && file.copy_token && kind === "image") {
      const preview = URL.createObjectURL(await answer.blob());
      rememberFile(file.copy_token, { preview, about: fileFacts(file), name: file.name ?? "", kind });
    }
  } catch {
    // Offline: the form itself shows what is wrong when it is sent.
  }
  return true;
}

/** Open a job in the playground, with its params and its picture. */
import type { Job, Model } from "../../api/shapes";
import { fileFacts, inputFile, previewUrl } from "../../parts/input_file";
import { paramsOf } from "../jobs/rerun";
import { changeDrafts } from "./drafts";
import { rememberPicture } from "./pictures";

/** Fill the form with a job's params. Return the address of the form. */
export async function editJob(job: Job, model: Model): Promise<string> {
  const params = paramsOf(job);
  const file = inputFile(job);
  let notice: string | null = null;
  if (file && !(await isThere(job))) {
    delete params.file;
    notice = `${file.name ?? "The picture"} is no longer kept. Choose a picture again; all other params are filled in.`;
  }
  changeDrafts((drafts) => ({
    model: model.id,
    kind: model.kind,
    params: { ...drafts.params, [model.id]: params },
    notices: { ...drafts.notices, [model.id]: notice },
  }));
  return `/playground/${encodeURIComponent(model.id)}`;
}

/** Return whether the picture can be used again. Its bytes are looked at, as the form shows them. */
async function isThere(job: Job): Promise<boolean> {
  const file = inputFile(job);
  if (!file?.copy_token) return Boolean(paramsOf(job).file);
  const url = previewUrl(file);
  if (!url) return true;
  try {
    const answer = await fetch(url);
    if (answer.status === 404 || answer.status === 410) return false;
    if (answer.ok) {
      const preview = URL.createObjectURL(await answer.blob());
      rememberPicture(file.copy_token, { preview, about: fileFacts(file), name: file.name ?? "" });
    }
  } catch {
    // Offline: the form itself shows what is wrong when it is sent.
  }
  return true;
}

/** Large files in pieces, by tus: after a cut, also after a reload, what has arrived is not sent again. */
import { DetailedError, Upload } from "tus-js-client";
import { errorOf, Unreachable } from "../../api/errors";
import { getSession, headersOf } from "../../session";

const PIECE = 8 << 20;
const PAUSES = [500, 1000, 2000, 4000, 8000];
/** Answers of a server that does not have the pieces: behind an S3 store, only the one that began has them. */
const ELSEWHERE = new Set([404, 410]);

/** Upload a file and return its token; null if this way is closed, and the file has to be sent in one request. */
export async function uploadInPieces(file: File, onProgress: (sent: number) => void): Promise<string | null> {
  try {
    return await send(file, onProgress);
  } catch (error) {
    const answer = error instanceof DetailedError ? error.originalResponse : null;
    if (!answer) throw new Unreachable();
    if (ELSEWHERE.has(answer.getStatus())) return null;
    throw await errorOf(new Response(answer.getBody(), { status: answer.getStatus() }));
  }
}

function send(file: File, onProgress: (sent: number) => void): Promise<string> {
  return new Promise((resolve, reject) => {
    const upload: Upload = new Upload(file, {
      endpoint: "/api/v1/files/tus",
      headers: headersOf(getSession().account),
      metadata: { filename: file.name, filetype: file.type },
      chunkSize: PIECE,
      retryDelays: PAUSES,
      removeFingerprintOnSuccess: true,
      onProgress,
      onError: reject,
      onSuccess: ({ lastResponse }) => resolve(lastResponse.getHeader("x-penstock-file-token") ?? ""),
    });
    upload.findPreviousUploads().then((earlier) => {
      if (earlier[0]) upload.resumeFromPreviousUpload(earlier[0]);
      upload.start();
    }, reject);
  });
}

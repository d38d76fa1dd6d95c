// Uploads a file with tus-js-client, cut in the middle and resumed. Prints one line of JSON for each event.

import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { createInterface } from "node:readline";
import { Upload } from "tus-js-client";

const [path, mode] = process.argv.slice(2);
const MEBIBYTE = 1 << 20;
const bytes = await readFile(path);
const say = (event) => console.log(JSON.stringify(event));

const options = {
  endpoint: `${process.env.PENSTOCK_URL}/api/v1/files/tus`,
  headers: { authorization: `Bearer ${process.env.PENSTOCK_API_KEY}` },
  metadata: { filename: basename(path), filetype: "audio/wav" },
  chunkSize: 4 * MEBIBYTE,
  retryDelays: Array(240).fill(250),
};

function upload(more) {
  return new Promise((resolve, reject) => {
    const started = new Upload(bytes, {
      ...options,
      ...more,
      onError: reject,
      onSuccess: ({ lastResponse }) => resolve(lastResponse.getHeader("x-penstock-file-token")),
      onChunkComplete: (size, sent) => {
        say({ sent, url: started.url });
        more.onPiece?.(started, sent);
      },
    });
    started.start();
  });
}

if (mode === "abort") {
  const url = await new Promise((resolve, reject) => {
    const onPiece = (started) => started.abort().then(() => resolve(started.url));
    upload({ onPiece }).catch(reject);
  });
  const resumed = [];
  const token = await upload({ uploadUrl: url, onPiece: (_, sent) => resumed.push(sent) });
  say({ token, first: resumed[0] });
} else if (mode === "end") {
  await new Promise((resolve, reject) => {
    upload({ onPiece: (started) => started.abort(true).then(resolve, reject) }).catch(reject);
  });
  say({ ended: true });
} else {
  // One piece at a time, each when a line comes in, so that the test can kill the server in between.
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const token = await upload({ onBeforeRequest: (request) => (request.getMethod() === "PATCH" ? lines.next() : null) });
  say({ token });
}
process.exit(0);

// Films and pictures as the Vercel AI SDK sees them: `createReplicate({ baseURL: "…/replicate/v1" })`.

import assert from "node:assert/strict";
import process from "node:process";

import { createReplicate } from "@ai-sdk/replicate";
import { generateImage, experimental_generateVideo as generateVideo } from "ai";

import { run, test } from "../cases.mjs";

const QUICK = { latency: 0.05 };
const connect = (apiToken) => createReplicate({ apiToken, baseURL: `${process.env.PENSTOCK_URL}/replicate/v1` });
const penstock = connect(process.env.PENSTOCK_API_KEY);
const film = (options = {}, script = QUICK, provider = penstock) =>
  generateVideo({
    model: provider.video("penstock/sim_text_to_video"),
    prompt: "a boat",
    maxRetries: 0,
    providerOptions: { replicate: { script, pollIntervalMs: 50, pollTimeoutMs: 10_000 } },
    ...options,
  });
const picture = (options = {}, script = QUICK, provider = penstock) =>
  generateImage({
    model: provider.image("penstock/sim_text_to_image"),
    prompt: "a boat",
    maxRetries: 0,
    providerOptions: { replicate: { script, pollIntervalMillis: 50 } },
    ...options,
  });

test("a film", async () => {
  const { video } = await film({ duration: 1, aspectRatio: "16:9" });
  assert.equal(video.mediaType, "video/mp4");
  assert.equal(Buffer.from(video.uint8Array).toString("latin1", 4, 8), "ftyp");
});

test("a picture", async () => {
  const { image } = await picture();
  assert.ok(image.uint8Array.length > 100);
});

test("a film of a picture", async () => {
  const { image } = await picture();
  const { video } = await film({ prompt: { text: "a boat", image: image.uint8Array } });
  assert.ok(video.uint8Array.length > 100);
});

for (const [ending, says] of [["failed", /failed/], ["filtered", /content_filtered/]]) {
  test(`what is ${ending}`, async () => {
    await assert.rejects(film({}, { ...QUICK, ending }), says);
    await assert.rejects(picture({}, { ...QUICK, ending }), says);
  });
}

test("what is refused", async () => {
  await assert.rejects(film({ duration: 99 }), (error) => error.statusCode === 422 && /input\.duration/.test(error.message));
  for (const [name, status] of [["POOR", 402], ["READ", 403], ["UNKNOWN", 401]]) {
    const stranger = connect(process.env[`PENSTOCK_${name}_API_KEY`]);
    await assert.rejects(film({}, QUICK, stranger), (error) => error.statusCode === status && error.message.length > 10);
  }
});

await run();

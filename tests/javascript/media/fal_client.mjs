// Requests as fal's client for JavaScript sees them: `proxyUrl: {url: "…/fal/proxy", when: "always"}`.

import assert from "node:assert/strict";
import process from "node:process";

import { ApiError, ValidationError, createFalClient } from "@fal-ai/client";

import { run, test } from "../cases.mjs";

const FILM = "penstock/sim_text_to_video";
const PICTURE = "penstock/sim_text_to_image";
const SOLID = "penstock/sim_image_to_model";
const QUICK = { latency: 0.05 };
const NEVER = { ending: "never" };

const connect = (credentials) =>
  createFalClient({ credentials, proxyUrl: { url: `${process.env.PENSTOCK_URL}/fal/proxy`, when: "always" } });
const fal = connect(process.env.PENSTOCK_API_KEY);
let number = 0; // each order is another one
const film = (input = {}) => ({ input: { prompt: `boat ${number++}`, script: QUICK, ...input } });

async function refusal(promise) {
  const error = await promise.then(() => assert.fail("it did not fail"), (found) => found);
  assert.ok(error instanceof ApiError, String(error));
  assert.ok(error.body.detail);
  assert.equal(error.message, error.body.message);
  assert.ok(error.message.length > 15, error.message);
  return error;
}

async function read(url) {
  const response = await fetch(url);
  assert.equal(response.status, 200);
  return Buffer.from(await response.arrayBuffer());
}

test("a run", async () => {
  const { data, requestId } = await fal.run(FILM, film());
  assert.equal((await read(data.video.url)).toString("latin1", 4, 8), "ftyp");
  assert.match(requestId, /^job_/);
});

for (const mode of ["polling", "streaming"]) {
  test(`a subscription by ${mode}`, async () => {
    const seen = [];
    const options = { mode, logs: true, pollInterval: 50, onQueueUpdate: ({ status }) => seen.push(status) };
    const { data } = await fal.subscribe(PICTURE, { ...film(), ...options });
    assert.ok((await read(data.images[0].url)).length > 100);
    assert.equal(seen.at(-1), "COMPLETED");
  });
}

test("a request by hand", async () => {
  const { request_id: requestId } = await fal.queue.submit(`${FILM}/image-to-video`, { ...film(), priority: "low" });
  await fal.queue.subscribeToStatus(FILM, { requestId, pollInterval: 50 });
  const status = await fal.queue.status(FILM, { requestId, logs: true });
  assert.equal(status.status, "COMPLETED");
  assert.equal(status.logs.at(-1).message, "100% done");
  assert.ok((await fal.queue.result(FILM, { requestId })).data.video);
});

test("while it is open, and a cancel", async () => {
  const { request_id: requestId } = await fal.queue.submit(FILM, film({ script: NEVER }));
  const error = await refusal(fal.queue.result(FILM, { requestId }));
  assert.deepEqual([error.status, error.body.detail], [400, "Request is still in progress"]);
  await fal.queue.cancel(FILM, { requestId });
  const status = await fal.queue.subscribeToStatus(FILM, { requestId, pollInterval: 50 });
  assert.equal(status.error_type, "canceled");
});

for (const [ending, kind] of [["failed", "upstream_error"], ["filtered", "content_policy_violation"]]) {
  test(`a request that is ${ending}`, async () => {
    const error = await refusal(fal.subscribe(FILM, { ...film({ script: { ...QUICK, ending } }), pollInterval: 50 }));
    assert.ok(error instanceof ValidationError);
    assert.equal(error.fieldErrors[0].type, kind);
  });
}

test("an upload, by itself and as an input", async () => {
  const { data } = await fal.run(PICTURE, film());
  const file = new File([await read(data.images[0].url)], "my boat.png", { type: "image/png" });
  const url = await fal.storage.upload(file);
  assert.equal((await read(url)).length, file.size);
  const solid = await fal.run(SOLID, { input: { image_url: file, script: QUICK } });
  assert.equal((await read(solid.data.model_mesh.url)).toString("latin1", 0, 4), "glTF");
  assert.ok((await fal.run(SOLID, { input: { image_url: url, script: QUICK } })).data.model_mesh);
});

test("an upload in parts", async () => {
  const { data } = await fal.run(FILM, film());
  const padding = Buffer.alloc(91 << 20); // a box that readers skip
  padding.writeUInt32BE(padding.length);
  padding.write("free", 4);
  const file = new File([await read(data.video.url), padding], "long.mp4", { type: "video/mp4" });
  const url = await fal.storage.upload(file);
  assert.equal((await read(url)).length, file.size);
  assert.ok((await fal.run(FILM, film({ video_url: url }))).data.video);
});

test("what is refused", async () => {
  const error = await refusal(fal.run(FILM, film({ duration: 99 })));
  assert.deepEqual([error.status, error.getFieldErrors("duration").length], [422, 1]);
  assert.equal((await refusal(fal.run("penstock/nothing", film()))).status, 404);
  assert.equal((await refusal(fal.queue.status(FILM, { requestId: "job_none" }))).status, 404);
  for (const [name, status] of [["POOR", 402], ["READ", 403], ["UNKNOWN", 401]]) {
    const stranger = connect(process.env[`PENSTOCK_${name}_API_KEY`]);
    assert.equal((await refusal(stranger.queue.submit(FILM, film()))).status, status);
  }
});

await run();

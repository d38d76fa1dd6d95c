// Pictures and films as OpenAI's client for JavaScript sees them: `new OpenAI({ baseURL: "…/v1" })`.

import assert from "node:assert/strict";
import process from "node:process";

import OpenAI, { toFile } from "openai";

import { run, test } from "../cases.mjs";

const PICTURE = "sim_text_to_image";
const FILM = "sim_text_to_video";
const QUICK = { latency: 0.05 };
const NEVER = { ending: "never" };

const connect = (apiKey, rest = {}) =>
  new OpenAI({ apiKey, baseURL: `${process.env.PENSTOCK_URL}/v1`, maxRetries: 0, ...rest });
const openai = connect(process.env.PENSTOCK_API_KEY);
const draw = (rest = {}, client = openai) =>
  client.images.generate({ model: PICTURE, prompt: "a boat", script: QUICK, ...rest });
const film = (rest = {}, client = openai) =>
  client.videos.create({ model: FILM, prompt: "a boat", seconds: "4", size: "1280x720", script: QUICK, ...rest });
const png = async () => Buffer.from((await draw()).data[0].b64_json, "base64");

async function poll(id) {
  for (;;) {
    const { data, response } = await openai.videos.retrieve(id).withResponse();
    if (data.status !== "queued" && data.status !== "in_progress") return data;
    assert.ok(Number(response.headers.get("openai-poll-after-ms")) > 0);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const refusal = (promise) => promise.then(() => assert.fail("it did not fail"), (error) => error);

test("a picture in base64", async () => {
  const { data, size, output_format } = await draw({ n: 2, size: "256x256" });
  assert.equal(data.length, 2);
  assert.equal(Buffer.from(data[0].b64_json, "base64").toString("latin1", 1, 4), "PNG");
  assert.deepEqual([size, output_format], ["256x256", "png"]);
});

test("a picture as a link", async () => {
  const { data } = await draw({ response_format: "url" });
  assert.equal((await fetch(data[0].url)).headers.get("content-type"), "image/png");
});

test("a picture as a stream", async () => {
  const events = [];
  for await (const event of await draw({ stream: true, partial_images: 2 })) events.push(event.type);
  assert.deepEqual(events, ["image_generation.completed"]);
});

test("an edit of pictures", async () => {
  const image = [await toFile(await png(), "a.png"), await toFile(await png(), "b.png")];
  const { data } = await openai.images.edit({ model: PICTURE, prompt: "join them", image });
  assert.ok(data[0].b64_json.length > 1000);
});

test("a film from a picture", async () => {
  const created = await film({ input_reference: await toFile(await png(), "a.png", { type: "image/png" }) });
  assert.deepEqual([created.status, created.seconds, created.size], ["queued", "4", "1280x720"]);
  const done = await poll(created.id);
  assert.deepEqual([done.status, done.progress, done.error], ["completed", 100, null]);
  const content = Buffer.from(await (await openai.videos.downloadContent(created.id)).arrayBuffer());
  assert.equal(content.toString("latin1", 4, 8), "ftyp");
  const remixed = await openai.videos.remix(created.id, { prompt: "at night" });
  assert.equal(remixed.remixed_from_video_id, created.id);
  const edited = await openai.videos.edit({ prompt: "in snow", video: await toFile(content, "boat.mp4") });
  assert.equal(edited.prompt, "in snow");
  const ids = [];
  for await (const video of openai.videos.list({ limit: 1 })) ids.push(video.id);
  assert.ok(ids.includes(created.id));
  assert.equal((await openai.videos.delete(created.id)).deleted, true);
  assert.equal((await refusal(openai.videos.retrieve(created.id))).status, 404);
});

test("what fails", async () => {
  for (const [ending, code, status] of [["failed", "upstream_error", 502], ["filtered", "moderation_blocked", 400]]) {
    const error = await refusal(draw({ script: { ...QUICK, ending } }));
    assert.deepEqual([error.status, error.code], [status, code]);
    const { id } = await film({ script: { ...QUICK, ending } });
    const done = await poll(id);
    assert.deepEqual([done.status, done.error.code], ["failed", code]);
  }
});

test("a film that is deleted while it is made", async () => {
  const { id } = await film({ script: NEVER });
  assert.equal((await openai.videos.delete(id)).deleted, true);
});

test("what is refused", async () => {
  const error = await refusal(film({ size: "1024x1792" }));
  assert.deepEqual([error.status, error.param], [400, "size"]);
  for (const [name, status] of [["POOR", 402], ["READ", 403], ["UNKNOWN", 401]]) {
    const stranger = connect(process.env[`PENSTOCK_${name}_API_KEY`]);
    assert.equal((await refusal(draw({}, stranger))).status, status);
    assert.equal((await refusal(film({}, stranger))).status, status);
  }
});

test("a retry by the client itself", async () => {
  let calls = 0;
  const jobs = [];
  const cut = async (url, options) => {
    const response = await fetch(url, options);
    jobs.push(response.headers.get("x-penstock-job"));
    calls += 1;
    if (calls === 1) throw new TypeError("the connection is lost before the answer");
    return response;
  };
  await draw({}, connect(process.env.PENSTOCK_API_KEY, { maxRetries: 2, fetch: cut }));
  assert.equal(calls, 2);
  assert.equal(jobs[0], jobs[1]);
});

test("the models", async () => {
  const ids = [];
  for await (const model of openai.models.list()) ids.push(model.id);
  assert.ok(ids.includes(PICTURE) && ids.includes(FILM));
});

await run();

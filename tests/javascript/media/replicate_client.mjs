// Predictions as Replicate's client for JavaScript sees them: `new Replicate({ baseUrl: "…/replicate/v1" })`.

import assert from "node:assert/strict";
import process from "node:process";

import Replicate, { validateWebhook } from "replicate";

import { run, test } from "../cases.mjs";

const FILM = "penstock/sim_text_to_video";
const PICTURE = "penstock/sim_text_to_image";
const SOLID = "penstock/sim_image_to_model";
const QUICK = { latency: 0.05 };
const NEVER = { ending: "never" };

const connect = (auth) => new Replicate({ auth, baseUrl: `${process.env.PENSTOCK_URL}/replicate/v1` });
const replicate = connect(process.env.PENSTOCK_API_KEY);
const create = (input = {}, rest = {}) =>
  replicate.predictions.create({ model: FILM, input: { prompt: "a boat", script: QUICK, ...input }, ...rest });

async function refusal(promise) {
  const error = await promise.then(() => assert.fail("it did not fail"), (found) => found);
  assert.ok(error.response, String(error));
  return error.response.status;
}

async function read(url) {
  const response = await fetch(url);
  assert.equal(response.status, 200);
  return Buffer.from(await response.arrayBuffer());
}

const png = async () => read(String((await replicate.run(PICTURE, { input: { prompt: "a boat", script: QUICK } }))[0]));

test("a film by run", async () => {
  const seen = [];
  const output = await replicate.run(FILM, { input: { prompt: "a boat", script: QUICK } }, (each) => seen.push(each.status));
  assert.equal((await read(output)).toString("latin1", 4, 8), "ftyp");
  assert.equal(seen.at(-1), "succeeded");
});

test("a film by polling and by version", async () => {
  const { latest_version } = await replicate.models.get("penstock", "sim_text_to_video");
  const ref = `${FILM}:${latest_version.id}`;
  const output = await replicate.run(ref, { input: { script: QUICK }, wait: { mode: "poll", interval: 50 } });
  assert.equal(typeof output, "string");
});

test("a picture is a list", async () => {
  assert.ok((await png()).length > 100);
});

test("a prediction to its end", async () => {
  const prediction = await create();
  assert.deepEqual([prediction.status, prediction.error, prediction.model], ["starting", null, FILM]);
  const done = await replicate.wait(prediction, { interval: 50 });
  assert.equal(done.status, "succeeded");
  assert.match(done.logs, /100%/);
  assert.ok(done.metrics.predict_time >= 0);
});

test("waiting in vain answers starting", async () => {
  const prediction = await create({ script: NEVER }, { wait: 1 });
  assert.equal(prediction.status, "starting");
  assert.notEqual((await replicate.predictions.get(prediction.id)).status, "starting");
});

test("a cancel", async () => {
  const { id } = await create({ script: NEVER });
  await replicate.predictions.cancel(id);
  assert.equal((await replicate.wait({ id }, { interval: 50 })).status, "canceled");
});

for (const [ending, says] of [["failed", /vendor/], ["filtered", /content_filtered/]]) {
  test(`a prediction that is ${ending}`, async () => {
    await assert.rejects(replicate.run(FILM, { input: { script: { ...QUICK, ending } } }), says);
  });
}

test("pages", async () => {
  const { id } = await create({ script: NEVER });
  for await (const page of replicate.paginate(replicate.predictions.list)) {
    assert.equal(page[0].id, id);
    break;
  }
});

test("files", async () => {
  const data = await png();
  const file = await replicate.files.create(new File([data], "cat.png", { type: "image/png" }), { a: 1 });
  assert.deepEqual([file.name, file.size], ["cat.png", data.length]);
  assert.equal((await replicate.files.get(file.id)).id, file.id);
  assert.ok((await replicate.files.list()).results.some(({ id }) => id === file.id));
  assert.equal(await replicate.files.delete(file.id), true);
  assert.equal(await refusal(replicate.files.get(file.id)), 404);
});

test("a file as an input is uploaded", async () => {
  const prediction = await replicate.predictions.create({ model: SOLID, input: { image: await png(), script: QUICK } });
  const done = await replicate.wait(prediction, { interval: 50 });
  assert.equal((await read(done.output)).toString("latin1", 0, 4), "glTF");
});

test("a webhook, verified", async () => {
  const { createServer } = await import("node:http");
  const server = createServer();
  const heard = new Promise((resolve) => {
    server.on("request", async (request, response) => {
      const pieces = [];
      for await (const piece of request) pieces.push(piece);
      response.end();
      resolve({ headers: request.headers, body: Buffer.concat(pieces).toString() });
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { id } = await create({}, {
    webhook: `http://127.0.0.1:${server.address().port}/`,
    webhook_events_filter: ["completed"],
  });
  const told = await heard;
  server.close();
  const { key } = await replicate.webhooks.default.secret.get();
  assert.equal(await validateWebhook(told, key), true);
  assert.deepEqual([JSON.parse(told.body).id, JSON.parse(told.body).status], [id, "succeeded"]);
});

test("an order whose connection is cut is one prediction", async () => {
  const { connect: open, createServer } = await import("node:net");
  const { hostname, port } = new URL(process.env.PENSTOCK_URL);
  const cut = new Set();
  const proxy = createServer((outer) => {
    const inner = open(Number(port), hostname);
    cut.add(() => [outer, inner].forEach((each) => each.destroy()));
    for (const each of [outer, inner]) each.on("error", () => {});
    outer.pipe(inner).pipe(outer);
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const far = new Replicate({
    auth: process.env.PENSTOCK_API_KEY,
    baseUrl: `http://127.0.0.1:${proxy.address().port}/replicate/v1`,
  });
  const input = { prompt: "cut in the middle", script: { latency: 4 } };
  const running = far.run(FILM, { input });
  const list = async () => (await replicate.predictions.list()).results.filter((each) => each.input.prompt === input.prompt);
  const isHeld = ([first]) => first && Date.now() - Date.parse(first.created_at) > 1200;
  while (!isHeld(await list())) await new Promise((resolve) => setTimeout(resolve, 50));
  for (const end of cut) end();
  assert.match(await running, /^http/);
  assert.equal((await list()).length, 1);
  proxy.close();
});

test("what is refused", async () => {
  assert.equal(await refusal(create({ duration: 99 })), 422);
  assert.equal(await refusal(replicate.predictions.create({ model: "penstock/nothing", input: {} })), 404);
  assert.equal(await refusal(replicate.predictions.get("job_none")), 404);
  for (const [name, status] of [["POOR", 402], ["READ", 403], ["UNKNOWN", 401]]) {
    const stranger = connect(process.env[`PENSTOCK_${name}_API_KEY`]);
    assert.equal(await refusal(stranger.predictions.create({ model: FILM, input: {} })), status);
  }
});

test("account and hardware", async () => {
  assert.equal((await replicate.accounts.current()).username, "default");
  assert.equal((await replicate.hardware.list()).length, 1);
});

await run();

// Pictures as the Vercel AI SDK sees them: `createOpenAICompatible({ baseURL: "…/v1" })` and `createOpenAI`.

import assert from "node:assert/strict";
import process from "node:process";

import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateImage } from "ai";

import { run, test } from "../cases.mjs";

const MODEL = "sim_text_to_image";
const baseURL = `${process.env.PENSTOCK_URL}/v1`;
const connect = (apiKey, rest = {}) => createOpenAICompatible({ name: "penstock", baseURL, apiKey, ...rest });
const penstock = connect(process.env.PENSTOCK_API_KEY);
const draw = (options = {}, script = { latency: 0.05 }, provider = penstock) =>
  generateImage({
    model: provider.imageModel(MODEL),
    prompt: "a boat",
    maxRetries: 0,
    providerOptions: { penstock: { script }, openai: { script } },
    ...options,
  });

test("a picture", async () => {
  const { image } = await draw({ size: "256x256" });
  assert.equal(image.mediaType, "image/png");
  assert.ok(image.uint8Array.length > 100);
});

test("several pictures", async () => {
  const { images } = await draw({ n: 3 });
  assert.equal(images.length, 3);
});

test("a picture by the provider of OpenAI", async () => {
  const openai = createOpenAI({ baseURL, apiKey: process.env.PENSTOCK_API_KEY });
  const { image } = await draw({}, { latency: 0.05 }, { imageModel: (name) => openai.image(name) });
  assert.ok(image.uint8Array.length > 100);
});

test("an edit of pictures", async () => {
  const { image } = await draw();
  for (const images of [[image.uint8Array], [image.uint8Array, image.uint8Array]]) {
    const edited = await draw({ prompt: { text: "a scarf", images }, providerOptions: {} });
    assert.ok(edited.image.uint8Array.length > 100);
  }
});

test("what fails", async () => {
  await assert.rejects(draw({}, { ending: "failed", latency: 0 }), (error) => error.statusCode === 502);
  await assert.rejects(
    draw({}, { ending: "filtered", latency: 0 }),
    (error) => error.statusCode === 400 && /content filter/.test(error.message),
  );
});

test("what is refused", async () => {
  await assert.rejects(draw({ size: "1x1" }), (error) => error.statusCode === 400 && /size/.test(error.message));
  for (const [name, status] of [["POOR", 402], ["READ", 403], ["UNKNOWN", 401]]) {
    const stranger = connect(process.env[`PENSTOCK_${name}_API_KEY`]);
    await assert.rejects(draw({}, undefined, stranger), (error) => error.statusCode === status);
  }
});

test("a retry by the SDK itself, which does not say so", async () => {
  const jobs = [];
  const cut = async (url, options) => {
    const leave = new AbortController();
    if (jobs.length) {
      const response = await fetch(url, options);
      jobs.push(response.headers.get("x-penstock-job"));
      return response;
    }
    const lost = fetch(url, { ...options, signal: leave.signal }).catch(() => undefined);
    const list = `${process.env.PENSTOCK_URL}/api/v1/jobs?status=running&limit=1`;
    while (!jobs.length) {
      const { data } = await (await fetch(list, { headers: options.headers })).json();
      jobs.push(...data.filter(({ input }) => input.prompt === "a lighthouse").map(({ id }) => id));
    }
    leave.abort();
    await lost;
    throw Object.assign(new TypeError("fetch failed"), { cause: new Error("the connection was lost") });
  };
  const provider = connect(process.env.PENSTOCK_API_KEY, { fetch: cut });
  const { image } = await draw({ prompt: "a lighthouse", maxRetries: 2 }, { latency: 4 }, provider);
  assert.ok(image.uint8Array.length > 100);
  assert.equal(jobs.length, 2);
  assert.equal(jobs[0], jobs[1]);
});

await run();

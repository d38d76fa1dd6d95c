// The gateway's chat as the Vercel AI SDK sees it.

import assert from "node:assert/strict";
import process from "node:process";

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, Output, RetryError, generateText, isStepCount, streamText, tool } from "ai";
import { z } from "zod";

import { run, staged, test, untilTold } from "./cases.mjs";

const GREETING = "Hello! How can I help you today? 🙂";
const THOUGHT = "The user greets me. I greet back.";

const connect = (apiKey) =>
  createOpenAICompatible({
    name: "penstock",
    baseURL: process.env.PENSTOCK_BASE_URL,
    apiKey,
    includeUsage: true,
    supportsStructuredOutputs: true,
  });
const penstock = connect(process.env.PENSTOCK_API_KEY);
const ask = (model, rest = {}) => ({ model: penstock(model), prompt: "Hi", maxRetries: 0, ...rest });
const quiet = { onError: () => {} }; // by default errors of a stream are printed

async function collect(stream, parts = []) {
  for await (const part of stream) parts.push(part);
  return parts;
}

async function errorOf(promise) {
  return promise.then(
    () => assert.fail("it did not fail"),
    (error) => error,
  );
}

// -- text

test("a text", async () => {
  const { text, finishReason, usage, response } = await generateText(ask("plain"));
  assert.deepEqual([text, finishReason], [GREETING, "stop"]);
  assert.equal(usage.inputTokens, 19);
  assert.equal(usage.totalTokens, usage.inputTokens + usage.outputTokens);
  assert.match(response.id, /^chatcmpl-/);
  assert.ok(response.headers["x-request-id"]);
});

test("a streamed text", async () => {
  const result = streamText(ask("plain"));
  const pieces = await collect(result.textStream);
  assert.ok(pieces.length > 1);
  assert.equal(pieces.join(""), GREETING);
  assert.equal(await result.finishReason, "stop");
  assert.equal((await result.usage).inputTokens, 19);
  assert.ok((await result.usage).outputTokens > 0);
});

test("system words, settings and an image", async () => {
  const image = new Uint8Array(3000).fill(7);
  const content = [
    { type: "text", text: "What is this?" },
    { type: "file", data: image, mediaType: "image/png" },
  ];
  const settings = { instructions: "Be brief.", temperature: 0.5, maxOutputTokens: 50, seed: 1, stopSequences: ["END"] };
  const messages = [{ role: "user", content }];
  const { text } = await generateText(ask("image", { ...settings, prompt: undefined, messages }));
  assert.equal(text, `I see 1 images of ${"data:image/png;base64,".length + 4000} characters.`);
});

test("a text cut by its length", async () => {
  assert.equal((await generateText(ask("length"))).finishReason, "length");
  assert.equal((await generateText(ask("filter"))).finishReason, "content-filter");
});

// -- tools

function toolbox() {
  const asked = [];
  const answering = (name, said) =>
    tool({
      description: `The ${name} of a city.`,
      inputSchema: z.object({ city: z.string() }),
      execute: async ({ city }) => (asked.push(name), `${said} ${city}`),
    });
  return { asked, tools: { weather: answering("weather", "sunny in"), news: answering("news", "calm in") } };
}

test("a loop of tools in three steps", async () => {
  const { asked, tools } = toolbox();
  const { text, steps } = await generateText(ask("tools", { tools, stopWhen: isStepCount(5) }));
  assert.deepEqual(asked, ["weather", "news"]);
  assert.deepEqual(steps.map(({ finishReason }) => finishReason), ["tool-calls", "tool-calls", "stop"]);
  assert.deepEqual(steps[0].toolCalls[0].input, { city: "Paris" });
  assert.match(text, /sunny in Paris.*calm in Paris/);
});

test("a loop of tools in three steps, streamed", async () => {
  const { asked, tools } = toolbox();
  const result = streamText(ask("tools", { tools, stopWhen: isStepCount(5) }));
  const kinds = (await collect(result.fullStream)).map(({ type }) => type);
  assert.deepEqual(asked, ["weather", "news"]);
  assert.equal(kinds.filter((kind) => kind === "tool-result").length, 2);
  assert.equal(kinds.includes("error"), false);
  assert.equal((await result.steps).length, 3);
  assert.match(await result.text, /sunny in Paris.*calm in Paris/);
});

test("parallel tool calls, streamed", async () => {
  const { tools } = toolbox();
  const result = streamText(ask("parallel-tools", { tools }));
  const calls = await result.toolCalls;
  assert.deepEqual(calls.map(({ toolName, input }) => [toolName, input.city]), Array(2).fill(["weather", "Paris"]));
  assert.equal(new Set(calls.map(({ toolCallId }) => toolCallId)).size, 2);
});

// -- structured output

const output = Output.object({ schema: z.object({ city: z.string(), days: z.number().int() }) });

test("an object", async () => {
  const result = await generateText(ask("json", { output }));
  assert.deepEqual(result.output, { city: "Paris", days: 7 });
});

test("an object, streamed", async () => {
  const result = streamText(ask("json", { output }));
  const partial = await collect(result.partialOutputStream);
  assert.deepEqual(partial.at(-1), { city: "Paris", days: 7 });
  assert.deepEqual(await result.output, { city: "Paris", days: 7 });
});

// -- reasoning, whichever name the upstream gives it

for (const model of ["reasoning", "vllm", "ollama"]) {
  test(`reasoning text of ${model}`, async () => {
    const { text, reasoningText } = await generateText(ask(model));
    assert.deepEqual([reasoningText, text], [THOUGHT, GREETING]);
  });

  test(`reasoning text of ${model}, streamed`, async () => {
    const result = streamText(ask(model));
    const parts = await collect(result.fullStream);
    const told = (kind) =>
      parts
        .filter(({ type }) => type === kind)
        .map(({ text }) => text)
        .join("");
    assert.deepEqual([told("reasoning-delta"), told("text-delta")], [THOUGHT, GREETING]);
    assert.equal(await result.reasoningText, THOUGHT);
  });
}

// -- errors

for (const model of ["error-mid", "cut", "clean-cut"]) {
  test(`a stream that breaks has an error part: ${model}`, async () => {
    const parts = [];
    const reading = collect(streamText(ask(model, quiet)).fullStream, parts);
    if (model === "error-mid") await reading;
    else await reading.catch((error) => assert.ok(APICallError.isInstance(error))); // the connection is cut after it
    const errors = parts.filter(({ type }) => type === "error");
    assert.ok(errors.length >= 1, JSON.stringify(parts));
    assert.match(JSON.stringify(errors[0].error), /upstream_error/);
    assert.ok(parts.some(({ type }) => type === "text-delta"), "what came before is given");
    assert.notEqual(parts.find(({ type }) => type === "finish")?.finishReason, "stop");
  });
}

test("an error before the first byte is an error part with its status", async () => {
  const parts = await collect(streamText(ask("error-first", quiet)).fullStream);
  const [{ error }] = parts.filter(({ type }) => type === "error");
  assert.ok(APICallError.isInstance(error), String(error));
  assert.equal(error.statusCode, 502);
});

for (const [model, statusCode, code, isRetryable] of [
  ["nothing", 404, "model_not_found", false],
  ["context", 400, "context_length_exceeded", false],
  ["retry-after:7", 429, "rate_limit_exceeded", true],
  ["status:503", 503, "overloaded", true],
]) {
  test(`${statusCode} ${code}`, async () => {
    const error = await errorOf(generateText(ask(model)));
    assert.ok(APICallError.isInstance(error), String(error));
    assert.deepEqual([error.statusCode, error.isRetryable, error.data.error.code], [statusCode, isRetryable, code]);
    assert.equal(error.message, error.data.error.message);
    assert.ok(error.responseHeaders["x-request-id"]);
  });
}

test("401 of a wrong key", async () => {
  const stranger = connect("psk_wrong");
  const { statusCode, message } = await errorOf(generateText(ask("plain", { model: stranger("plain") })));
  assert.equal(statusCode, 401);
  assert.match(message, /Incorrect API key provided/);
});

test("retries until there are none left", async () => {
  const error = await errorOf(generateText(ask("status:503", { maxRetries: 1 })));
  assert.ok(RetryError.isInstance(error), String(error));
  assert.deepEqual(error.errors.map(({ statusCode }) => statusCode), [503, 503]);
});

// -- leaving

staged("abort of a stream", async () => {
  const controller = new AbortController();
  const result = streamText(ask("think:60", { ...quiet, abortSignal: controller.signal }));
  const reading = collect(result.fullStream);
  await untilTold();
  controller.abort();
  await reading.catch(() => {});
  await untilTold();
});

await run();

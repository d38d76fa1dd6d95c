// The gateway's Messages and Responses as the Vercel AI SDK sees them.

import assert from "node:assert/strict";
import process from "node:process";

import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { APICallError, Output, generateText, isStepCount, streamText, tool } from "ai";
import { z } from "zod";

import { run, test } from "./cases.mjs";
import { CITIES, CUT, GREETING, MODEL, OVERLOADED, REASONING, WEATHER, tellWeather } from "./script.mjs";

const baseURL = `${process.env.PENSTOCK_URL}/v1`;
const DOORS = {
  messages: {
    connect: (apiKey) => createAnthropic({ baseURL, apiKey })(MODEL),
    providerOptions: { anthropic: { thinking: { type: "enabled", budgetTokens: 1024 } } },
  },
  responses: {
    connect: (apiKey) => createOpenAI({ baseURL, apiKey }).responses(MODEL),
    providerOptions: {
      openai: { store: false, forceReasoning: true, reasoningSummary: "auto", include: ["reasoning.encrypted_content"] },
    },
  },
};
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

function toolbox(asked) {
  const execute = async ({ city }) => (asked.push(city), tellWeather(city));
  const inputSchema = z.object({ city: z.string() });
  return { get_weather: tool({ description: "Tell the weather of a city.", inputSchema, execute }) };
}

for (const [door, { connect, providerOptions }] of Object.entries(DOORS)) {
  const model = connect(process.env.PENSTOCK_API_KEY);
  const ask = (rest = {}) => ({ model, prompt: "Hi", maxRetries: 0, maxOutputTokens: 4096, providerOptions, ...rest });

  test(`${door}: a text`, async () => {
    const { text, reasoningText, finishReason, usage } = await generateText(ask());
    assert.deepEqual([text, reasoningText, finishReason], [GREETING, REASONING, "stop"]);
    assert.deepEqual([usage.inputTokens, usage.outputTokens], [120, 30]);
  });

  test(`${door}: a streamed text`, async () => {
    const result = streamText(ask());
    const parts = await collect(result.fullStream);
    const said = (kind) =>
      parts
        .filter(({ type }) => type === kind)
        .map(({ text }) => text)
        .join("");
    assert.deepEqual([said("reasoning-delta"), said("text-delta")], [REASONING, GREETING]);
    assert.equal(await result.finishReason, "stop");
    assert.deepEqual([(await result.usage).inputTokens, (await result.usage).outputTokens], [120, 30]);
  });

  test(`${door}: a loop of parallel tools`, async () => {
    const asked = [];
    const { text, steps } = await generateText(ask({ tools: toolbox(asked), stopWhen: isStepCount(3) }));
    assert.deepEqual(asked, CITIES);
    assert.deepEqual(steps.map(({ finishReason }) => finishReason), ["tool-calls", "stop"]);
    for (const city of CITIES) assert.ok(text.includes(city), text);
  });

  test(`${door}: a loop of parallel tools, streamed`, async () => {
    const asked = [];
    const result = streamText(ask({ tools: toolbox(asked), stopWhen: isStepCount(3) }));
    const kinds = (await collect(result.fullStream)).map(({ type }) => type);
    assert.deepEqual(asked, CITIES);
    assert.equal(kinds.includes("error"), false);
    assert.equal((await result.steps).length, 2);
    for (const city of CITIES) assert.ok((await result.text).includes(city));
  });

  test(`${door}: an object`, async () => {
    const output = Output.object({ schema: z.object({ city: z.string(), degrees: z.number().int() }) });
    const wanted = ask({ output, providerOptions: { ...providerOptions, anthropic: { structuredOutputMode: "outputFormat" } } });
    assert.deepEqual((await generateText(wanted)).output, WEATHER);
  });

  test(`${door}: errors`, async () => {
    const stranger = await errorOf(generateText(ask({ model: connect("psk_wrong") })));
    assert.ok(APICallError.isInstance(stranger), String(stranger));
    assert.deepEqual([stranger.statusCode, stranger.isRetryable], [401, false]);
    const busy = await errorOf(generateText(ask({ prompt: OVERLOADED })));
    assert.ok(APICallError.isInstance(busy), String(busy));
    assert.ok(busy.statusCode >= 500 && busy.isRetryable, String(busy.statusCode));
  });

  test(`${door}: a stream that breaks has an error`, async () => {
    const parts = [];
    const broken = await collect(streamText(ask({ ...quiet, prompt: CUT })).fullStream, parts).catch((error) => error);
    const failed = broken instanceof Error || parts.some(({ type }) => type === "error");
    assert.ok(failed, JSON.stringify(parts.map(({ type }) => type)));
    assert.notEqual(parts.find(({ type }) => type === "finish")?.finishReason, "stop");
  });
}

await run();

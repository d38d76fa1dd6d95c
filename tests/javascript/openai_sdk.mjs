// The gateway's chat as the official `openai` package for JavaScript sees it, when all goes well.

import assert from "node:assert/strict";

import OpenAI from "openai";
import { zodFunction, zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";

import { run, test } from "./cases.mjs";
import { BASE, GREETING, ask, chat, client, collect, connect, failureOf, textOf } from "./openai_client.mjs";

const REFUSAL = "I'm sorry, I can't assist with that request.";
const WEATHER = {
  type: "function",
  function: {
    name: "weather",
    description: "The weather of a city.",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
};

// -- answers

test("a completion", async () => {
  const { data, response, request_id } = await chat.create(ask("plain")).withResponse();
  assert.match(data.id, /^chatcmpl-/);
  assert.equal(data.object, "chat.completion");
  assert.equal(data.choices.length, 1);
  const [choice] = data.choices;
  assert.deepEqual([choice.index, choice.finish_reason, choice.logprobs], [0, "stop", null]);
  assert.deepEqual([choice.message.role, choice.message.content], ["assistant", GREETING]);
  assert.equal(choice.message.refusal, null);
  assert.equal("tool_calls" in choice.message, false);
  assert.equal(data.usage.total_tokens, data.usage.prompt_tokens + data.usage.completion_tokens);
  assert.ok(request_id);
  assert.equal(request_id, data._request_id);
  assert.equal(response.headers.get("content-type"), "application/json");
});

test("a base address that ends in a slash", async () => {
  const { choices } = await connect({ baseURL: `${BASE}/` }).chat.completions.create(ask("plain"));
  assert.equal(choices[0].message.content, GREETING);
});

test("a stream", async () => {
  const { data, response, request_id } = await chat.create(ask("plain", { stream: true })).withResponse();
  const chunks = await collect(data);
  assert.match(response.headers.get("content-type"), /^text\/event-stream/);
  assert.ok(request_id);
  assert.equal(textOf(chunks), GREETING);
  assert.equal(chunks[0].choices[0].delta.role, "assistant");
  for (const name of ["id", "created", "model", "object"]) {
    assert.equal(new Set(chunks.map((chunk) => chunk[name])).size, 1, name);
  }
  const finishes = chunks.map(({ choices }) => choices[0].finish_reason);
  assert.deepEqual(finishes, [...Array(chunks.length - 1).fill(null), "stop"]);
});

test("a stream through the helper", async () => {
  const stream = chat.stream(ask("plain"));
  const pieces = [];
  stream.on("content", (delta) => pieces.push(delta));
  assert.equal(await stream.finalContent(), GREETING);
  assert.equal(pieces.join(""), GREETING);
});

test("usage of a stream when it is asked for", async () => {
  const options = { stream: true, stream_options: { include_usage: true } };
  const chunks = await collect(await chat.create(ask("plain", options)));
  const last = chunks.pop();
  assert.deepEqual(last.choices, []);
  assert.equal(last.usage.prompt_tokens, 19);
  assert.equal(last.usage.total_tokens, 19 + last.usage.completion_tokens);
  for (const chunk of chunks) assert.equal(chunk.usage, null);
});

test("usage of a stream whose upstream tells none", async () => {
  const options = { stream: true, stream_options: { include_usage: true } };
  const chunks = await collect(await chat.create(ask("no-usage", options)));
  const { choices, usage } = chunks.at(-1);
  assert.deepEqual(choices, []);
  assert.ok(usage.completion_tokens > 0);
});

test("no usage of a stream when it is not asked for", async () => {
  const options = [{}, { stream_options: { include_usage: false } }, { stream_options: null }];
  for (const option of options) {
    for (const chunk of await collect(await chat.create(ask("plain", { stream: true, ...option })))) {
      assert.equal("usage" in chunk, false);
      assert.equal(chunk.choices.length, 1);
    }
  }
});

test("two choices", async () => {
  const { choices, usage } = await chat.create(ask("plain", { n: 2 }));
  assert.deepEqual(
    choices.map(({ index, message }) => [index, message.content]),
    [
      [0, GREETING],
      [1, GREETING],
    ],
  );
  const { usage: single } = await chat.create(ask("plain"));
  assert.equal(usage.completion_tokens, 2 * single.completion_tokens);
});

test("two choices, streamed", async () => {
  const chunks = await collect(await chat.create(ask("plain", { n: 2, stream: true })));
  for (const index of [0, 1]) {
    assert.equal(textOf(chunks, index), GREETING);
    const steps = chunks.flatMap(({ choices }) => choices.filter((choice) => choice.index === index));
    const finishes = steps.map(({ finish_reason }) => finish_reason).filter((reason) => reason !== null);
    assert.deepEqual(finishes, ["stop"]);
  }
});

test("log probabilities", async () => {
  const { choices } = await chat.create(ask("logprobs", { logprobs: true, top_logprobs: 2 }));
  const { content, refusal } = choices[0].logprobs;
  assert.equal(content.map(({ token }) => token).join(""), GREETING);
  assert.equal(refusal, null);
  for (const { logprob, bytes, top_logprobs } of content) {
    assert.ok(logprob < 0);
    assert.ok(bytes.length);
    assert.equal(top_logprobs.length, 2);
  }
});

test("log probabilities, streamed", async () => {
  const stream = chat.stream(ask("logprobs", { logprobs: true }));
  const { choices } = await stream.finalChatCompletion();
  assert.equal(choices[0].logprobs.content.map(({ token }) => token).join(""), GREETING);
});

test("reasoning text", async () => {
  const { choices, usage } = await chat.create(ask("reasoning"));
  assert.equal(choices[0].message.reasoning_content, "The user greets me. I greet back.");
  assert.ok(usage.completion_tokens_details.reasoning_tokens > 0);
  const chunks = await collect(await chat.create(ask("vllm", { stream: true })));
  const thoughts = chunks.map(({ choices: [choice] }) => choice.delta.reasoning_content ?? "");
  assert.equal(thoughts.join(""), "The user greets me. I greet back.");
});

test("an answer cut by its length", async () => {
  const { choices } = await chat.create(ask("length", { max_tokens: 5 }));
  assert.equal(choices[0].finish_reason, "length");
});

test("image parts, by address and of two megabytes", async () => {
  const data = `data:image/png;base64,${"A".repeat(2_000_000)}`;
  const address = "https://example.com/cat.png";
  const content = [
    { type: "text", text: "What is on these?" },
    { type: "image_url", image_url: { url: address, detail: "low" } },
    { type: "image_url", image_url: { url: data } },
  ];
  const { choices } = await chat.create({ model: "image", messages: [{ role: "user", content }] });
  assert.equal(choices[0].message.content, `I see 2 images of ${data.length + address.length} characters.`);
});

test("text in every script comes back as it went", async () => {
  const text = 'naïve 日本語 🙂👩‍👩‍👧 "quoted" \\ \u2028 \n\t {"usage":null} data: [DONE]\n\n';
  const messages = [{ role: "user", content: [{ type: "text", text }] }];
  assert.equal((await chat.create({ model: "echo", messages })).choices[0].message.content, text);
  assert.equal(textOf(await collect(await chat.create({ model: "echo", messages, stream: true }))), text);
});

test("streams of every dialect", async () => {
  const dialects = ["vllm", "ollama", "llamacpp", "no-usage"];
  const framings = ["crlf", "no-space", "fragments", "comments", "fields", "bom", "no-done", "malformed"];
  for (const model of [...dialects, ...framings]) {
    assert.equal(await chat.stream(ask(model)).finalContent(), GREETING, model);
  }
});

test("fifty streams at once", async () => {
  const streams = Array.from({ length: 50 }, () => chat.stream(ask("plain")).finalContent());
  for (const content of await Promise.all(streams)) assert.equal(content, GREETING);
});

// -- tools

test("a tool is called and its result used", async () => {
  const asked = ask("tools", { tools: [WEATHER] });
  const { choices } = await chat.create(asked);
  assert.equal(choices[0].finish_reason, "tool_calls");
  const { message } = choices[0];
  assert.equal(message.content, null);
  assert.equal(message.tool_calls.length, 1);
  const [call] = message.tool_calls;
  assert.deepEqual([call.type, call.function.name], ["function", "weather"]);
  assert.deepEqual(JSON.parse(call.function.arguments), { city: "Paris" });
  const result = { role: "tool", tool_call_id: call.id, content: "sunny" };
  const second = await chat.create({ ...asked, messages: [...asked.messages, message, result] });
  assert.equal(second.choices[0].message.content, "The tools said: sunny");
});

test("parallel tool calls", async () => {
  const { choices } = await chat.create(ask("parallel-tools", { tools: [WEATHER], parallel_tool_calls: true }));
  const calls = choices[0].message.tool_calls;
  assert.deepEqual(calls.map((call) => call.function.name), ["weather", "weather"]);
  assert.equal(new Set(calls.map(({ id }) => id)).size, 2);
});

for (const [model, count] of [
  ["tools", 1],
  ["parallel-tools", 2],
]) {
  test(`${count} tool call(s), streamed`, async () => {
    const stream = chat.stream(ask(model, { tools: [WEATHER] }));
    const done = [];
    stream.on("tool_calls.function.arguments.done", (event) => done.push(event.arguments));
    const { choices } = await stream.finalChatCompletion();
    assert.equal(choices[0].finish_reason, "tool_calls");
    assert.equal(choices[0].message.tool_calls.length, count);
    for (const call of choices[0].message.tool_calls) {
      assert.deepEqual([call.type, call.function.name], ["function", "weather"]);
      assert.ok(call.id);
      assert.deepEqual(JSON.parse(call.function.arguments), { city: "Paris" });
    }
    assert.deepEqual(done.map(JSON.parse), Array(count).fill({ city: "Paris" }));
  });
}

for (const stream of [false, true]) {
  test(`the helper that runs tools, ${stream ? "streamed" : "whole"}`, async () => {
    const cities = [];
    const parameters = z.object({ city: z.string() });
    const answering = (name, said) =>
      zodFunction({ name, parameters, function: ({ city }) => (cities.push(city), `${said} ${city}`) });
    const tools = [answering("weather", "sunny in"), answering("news", "calm in")];
    const runner = chat.runTools(ask("tools", { stream, tools }));
    assert.equal(await runner.finalContent(), "The tools said: sunny in Paris; calm in Paris");
    assert.deepEqual(cities, ["Paris", "Paris"]);
    const roles = runner.messages.map(({ role }) => role);
    assert.deepEqual(roles, ["user", "assistant", "tool", "assistant", "tool", "assistant"]);
  });
}

// -- structured answers

const Trip = z.object({
  city: z.string(),
  days: z.number().int(),
  mood: z.enum(["calm", "busy"]),
  hotel: z.object({ name: z.string(), stars: z.number() }).nullable(),
  stops: z.array(z.object({ name: z.string() })),
});
const TRIP = { city: "Paris", days: 7, mood: "calm", hotel: { name: "Paris", stars: 7.5 }, stops: [{ name: "Paris" }] };
const format = { response_format: zodResponseFormat(Trip, "trip") };

test("an answer parsed by a schema", async () => {
  const { choices } = await chat.parse(ask("json", format));
  assert.deepEqual(choices[0].message.parsed, TRIP);
});

test("an answer parsed by a schema, streamed", async () => {
  const { choices } = await chat.stream(ask("json", format)).finalChatCompletion();
  assert.deepEqual(choices[0].message.parsed, TRIP);
});

test("a refusal", async () => {
  const { choices } = await chat.parse(ask("refusal", format));
  const { refusal, content, parsed } = choices[0].message;
  assert.deepEqual([refusal, content, parsed, choices[0].finish_reason], [REFUSAL, null, null, "stop"]);
});

test("a refusal, streamed", async () => {
  const stream = chat.stream(ask("refusal"));
  const told = [];
  stream.on("refusal.done", ({ refusal }) => told.push(refusal));
  const { choices } = await stream.finalChatCompletion();
  assert.deepEqual([choices[0].message.refusal, choices[0].message.content], [REFUSAL, null]);
  assert.deepEqual(told, [REFUSAL]);
});

for (const [model, name] of [
  ["length", "LengthFinishReasonError"],
  ["filter", "ContentFilterFinishReasonError"],
]) {
  test(`an answer that cannot be parsed: ${model}`, async () => {
    await failureOf(chat.parse(ask(model, format)), { name }, {});
    await failureOf(chat.stream(ask(model, format)).finalChatCompletion(), { name }, {});
  });
}

// -- models

test("the list of models", async () => {
  const listed = [];
  for await (const model of client.models.list()) listed.push(model);
  const ids = listed.map(({ id }) => id);
  assert.ok(ids.includes("plain") && ids.includes("team/plain"), ids.join());
  for (const { object, created, owned_by } of listed) {
    assert.equal(object, "model");
    assert.ok(Number.isInteger(created));
    assert.equal(typeof owned_by, "string");
  }
});

test("one model, also with a slash in its id", async () => {
  for (const id of ["plain", "team/plain"]) assert.equal((await client.models.retrieve(id)).id, id);
  const { choices } = await chat.create(ask("team/plain"));
  assert.equal(choices[0].message.content, GREETING);
  const wrong = client.models.retrieve("team/nothing");
  await failureOf(wrong, OpenAI.NotFoundError, { status: 404, code: "model_not_found" });
});

await run();

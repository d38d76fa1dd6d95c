// The gateway's Messages as Anthropic's SDK sees them.

import assert from "node:assert/strict";
import process from "node:process";

import Anthropic from "@anthropic-ai/sdk";

import { run, test } from "./cases.mjs";
import { CITIES, CUT, GREETING, MODEL, OVERLOADED, REASONING, tellWeather } from "./script.mjs";

const connect = (apiKey) =>
  new Anthropic({ baseURL: process.env.PENSTOCK_URL, apiKey, authToken: null, maxRetries: 0, logLevel: "off" });
const client = connect(process.env.PENSTOCK_API_KEY);
const ask = (content = "Hello", rest = {}) => ({
  model: MODEL,
  max_tokens: 4096,
  messages: [{ role: "user", content }],
  ...rest,
});
const textOf = ({ content }) => content.map((block) => block.text ?? "").join("");
const thinking = { type: "enabled", budget_tokens: 1024 };
const tools = [
  {
    name: "get_weather",
    description: "Tell the weather of a city.",
    input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
];

async function errorOf(promise) {
  return promise.then(
    () => assert.fail("it did not fail"),
    (error) => error,
  );
}

test("a message", async () => {
  const message = await client.messages.create(ask());
  assert.equal(textOf(message), GREETING);
  assert.equal(message.stop_reason, "end_turn");
  assert.equal(message.usage.output_tokens, 30);
  assert.ok(message._request_id);
});

test("a streamed message", async () => {
  const pieces = [];
  const stream = client.messages.stream(ask()).on("text", (piece) => pieces.push(piece));
  const message = await stream.finalMessage();
  assert.ok(pieces.length > 1);
  assert.equal(pieces.join(""), GREETING);
  assert.equal(textOf(message), GREETING);
  assert.equal(message.usage.output_tokens, 30);
});

test("events of a stream", async () => {
  const kinds = [];
  for await (const { type } of await client.messages.create(ask("Hello", { stream: true, thinking }))) kinds.push(type);
  assert.deepEqual([kinds.at(0), kinds.at(-1)], ["message_start", "message_stop"]);
  for (const kind of ["message_start", "message_delta", "message_stop"])
    assert.equal(kinds.filter((one) => one === kind).length, 1, kind);
});

test("thinking", async () => {
  const { content } = await client.messages.stream(ask("Hello", { thinking })).finalMessage();
  assert.deepEqual(content.map(({ type }) => type), ["thinking", "text"]);
  assert.equal(content[0].thinking, REASONING);
});

for (const streamed of [false, true]) {
  test(`a loop of parallel tools${streamed ? ", streamed" : ""}`, async () => {
    const complete = (wanted) =>
      streamed ? client.messages.stream(wanted).finalMessage() : client.messages.create(wanted);
    const first = await complete(ask("The weather?", { tools, thinking }));
    const calls = first.content.filter(({ type }) => type === "tool_use");
    assert.equal(first.stop_reason, "tool_use");
    assert.deepEqual(calls.map(({ input }) => input.city), CITIES);
    const content = calls.map(({ id, input }) => ({
      type: "tool_result",
      tool_use_id: id,
      content: tellWeather(input.city),
    }));
    const messages = [
      ...ask("The weather?").messages,
      { role: "assistant", content: first.content },
      { role: "user", content },
    ];
    const last = await complete(ask(undefined, { messages, tools, thinking }));
    for (const city of CITIES) assert.ok(textOf(last).includes(city), textOf(last));
  });
}

test("tokens counted before sending", async () => {
  const { model, messages } = ask();
  assert.ok((await client.messages.countTokens({ model, messages })).input_tokens > 0);
});

test("the list of models", async () => {
  const ids = [];
  for await (const { id } of client.models.list()) ids.push(id);
  assert.ok(ids.includes(MODEL));
});

test("errors", async () => {
  const stranger = await errorOf(connect("psk_wrong").messages.create(ask()));
  assert.ok(stranger instanceof Anthropic.AuthenticationError, String(stranger));
  assert.equal(stranger.error.error.type, "authentication_error");
  const missing = await errorOf(client.messages.create(ask("Hello", { model: "nobody" })));
  assert.ok(missing instanceof Anthropic.NotFoundError, String(missing));
  assert.equal(missing.error.error.type, "not_found_error");
  const busy = await errorOf(client.messages.create(ask(OVERLOADED)));
  assert.ok(busy instanceof Anthropic.InternalServerError, String(busy));
});

test("a stream that breaks", async () => {
  const error = await errorOf(client.messages.stream(ask(CUT)).finalMessage());
  assert.ok(error instanceof Anthropic.AnthropicError, String(error));
});

await run();

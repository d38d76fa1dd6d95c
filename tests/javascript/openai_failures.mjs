// Errors, retries and aborts as the official `openai` package for JavaScript sees them.

import assert from "node:assert/strict";
import process from "node:process";
import { setTimeout } from "node:timers/promises";

import OpenAI from "openai";

import { run, staged, test, untilTold } from "./cases.mjs";
import { GREETING, ask, chat, client, collect, connect, failureOf, textOf } from "./openai_client.mjs";

/** A client that notes which attempt each of its requests is. */
function connectCounting(options) {
  const attempts = [];
  const counting = connect({
    fetch: (url, init) => {
      attempts.push(Number(new Headers(init.headers).get("x-stainless-retry-count")));
      return fetch(url, init);
    },
    ...options,
  });
  return { counting, attempts };
}

// -- errors

const REFUSED = [
  [{ temperature: 3 }, "decimal_above_max_value", "temperature"],
  [{ n: 130 }, "integer_above_max_value", "n"],
  [{ n: "two" }, "invalid_type", "n"],
  [{ messages: undefined }, "missing_required_parameter", "messages"],
  [{ messages: [] }, "empty_array", "messages"],
  [{ messages: [{ role: "wizard", content: "Hi" }] }, "invalid_value", "messages[0].role"],
  [{ stream_options: { include_usage: true } }, "invalid_value", "stream_options"],
  [{ stop: ["a", "b", "c", "d", "e"] }, "array_above_max_length", "stop"],
];
for (const [change, code, param] of REFUSED) {
  test(`400 ${code} of ${param}`, async () => {
    const expected = { status: 400, type: "invalid_request_error", code, param };
    await failureOf(chat.create(ask("plain", change)), OpenAI.BadRequestError, expected);
  });
}

test("400 of the upstream", async () => {
  for (const stream of [false, true]) {
    const refused = { status: 400, type: "invalid_request_error", code: "invalid_value", param: "temperature" };
    await failureOf(chat.create(ask("status:400", { stream })), OpenAI.BadRequestError, refused);
    const message = /maximum context length is 8192/;
    const long = { status: 400, code: "context_length_exceeded", param: "messages", message };
    await failureOf(chat.create(ask("context", { stream })), OpenAI.BadRequestError, long);
  }
});

test("401 of a wrong key", async () => {
  const { counting, attempts } = connectCounting({ apiKey: "psk_wrong", maxRetries: 2 });
  const expected = { status: 401, type: "invalid_request_error", code: "invalid_api_key", param: null };
  const words = { ...expected, message: /Incorrect API key provided/ };
  await failureOf(counting.chat.completions.create(ask("plain")), OpenAI.AuthenticationError, words);
  assert.deepEqual(attempts, [0]);
});

test("403 of a key that may not use the model", async () => {
  const narrow = connect({ apiKey: process.env.PENSTOCK_NARROW_API_KEY });
  const expected = { status: 403, type: "permission_error", code: "model_not_allowed" };
  await failureOf(narrow.chat.completions.create(ask("echo")), OpenAI.PermissionDeniedError, expected);
  assert.equal((await narrow.chat.completions.create(ask("plain"))).choices[0].message.content, GREETING);
});

test("404 of an unknown model", async () => {
  const message = /The model `nothing` does not exist/;
  const expected = { status: 404, type: "invalid_request_error", code: "model_not_found", param: "model", message };
  await failureOf(chat.create(ask("nothing")), OpenAI.NotFoundError, expected);
  await failureOf(chat.create(ask("nothing", { stream: true })), OpenAI.NotFoundError, expected);
});

test("paths and methods that there are not", async () => {
  const { status, message } = await failureOf(client.get("/nowhere"), OpenAI.NotFoundError, { status: 404 });
  assert.doesNotMatch(message, /no body/, String(status));
  const removed = await client.models.delete("plain").catch((error) => error);
  assert.ok([403, 405].includes(removed.status), String(removed));
  assert.ok(removed.code && removed.requestID);
});

test("429 of the upstream", async () => {
  for (const stream of [false, true]) {
    const expected = { status: 429, code: "rate_limit_exceeded", param: null };
    const error = await failureOf(chat.create(ask("retry-after:7", { stream })), OpenAI.RateLimitError, expected);
    assert.equal(error.headers.get("retry-after"), "7");
  }
});

const FAILURES = [
  ["status:500", 502, "upstream_error"],
  ["status:503", 503, "overloaded"],
  ["html-502", 502, "upstream_error"],
  ["llamacpp-loading", 503, "overloaded"],
  ["drop", 502, "upstream_error"],
  ["empty", 502, "upstream_error"],
  ["error-first", 502, "upstream_error"],
  ["silent:30", 504, "upstream_timeout"],
  ["401", 502, "upstream_auth"],
];
for (const [model, status, code] of FAILURES) {
  test(`${status} ${code} of ${model}`, async () => {
    for (const stream of [false, true]) {
      const expected = { status, type: "server_error", code, param: null };
      const error = await failureOf(chat.create(ask(model, { stream })), OpenAI.InternalServerError, expected);
      assert.doesNotMatch(error.message, /sk-upstream|10\.1\.2\.3|<html>/, "the upstream's secrets");
    }
  });
}

test("502 of a whole answer that was cut", async () => {
  for (const model of ["cut", "clean-cut", "not-json"]) {
    const expected = { status: 502, type: "server_error", code: "upstream_error" };
    await failureOf(chat.create(ask(model)), OpenAI.InternalServerError, expected);
  }
});

for (const model of ["cut", "clean-cut", "error-mid"]) {
  test(`a stream that breaks: ${model}`, async () => {
    const chunks = [];
    const reading = (async () => {
      for await (const chunk of await chat.create(ask(model, { stream: true }))) chunks.push(chunk);
    })();
    const error = await failureOf(reading, OpenAI.APIError, { code: "upstream_error", type: "server_error" });
    assert.ok(error.requestID);
    assert.ok(error.message);
    assert.ok(GREETING.startsWith(textOf(chunks)) && textOf(chunks), "what came before is given");
    assert.equal(chunks.some(({ choices: [choice] }) => choice.finish_reason), false);
    const helped = chat.stream(ask(model)).finalContent();
    await failureOf(helped, OpenAI.APIError, { code: "upstream_error" });
  });
}

test("a slow reader is told of the break too", async () => {
  // What fetch has not handed over yet is lost when the connection fails instead of ending.
  const read = async () => {
    for await (const _ of await chat.create(ask("error-mid", { stream: true }))) await setTimeout(20);
  };
  const failures = Array.from({ length: 10 }, () => failureOf(read(), OpenAI.APIError, { code: "upstream_error" }));
  await Promise.all(failures);
});

// -- retries

test("retries until there are none left", async () => {
  const { counting, attempts } = connectCounting({ maxRetries: 1 });
  const expected = { status: 503, code: "overloaded" };
  await failureOf(counting.chat.completions.create(ask("status:503")), OpenAI.InternalServerError, expected);
  assert.deepEqual(attempts, [0, 1]);
});

test("no retry where it cannot help", async () => {
  for (const [model, status, kind] of [
    ["401", 502, OpenAI.InternalServerError],
    ["quota", 502, OpenAI.InternalServerError],
    ["status:400", 400, OpenAI.BadRequestError],
  ]) {
    const { counting, attempts } = connectCounting({ maxRetries: 2 });
    const error = await failureOf(counting.chat.completions.create(ask(model)), kind, { status });
    if (status >= 500) assert.equal(error.headers.get("x-should-retry"), "false", model);
    assert.deepEqual(attempts, [0], model);
  }
});

test("no retry after the first byte", async () => {
  const { counting, attempts } = connectCounting({ maxRetries: 2 });
  const stream = await counting.chat.completions.create(ask("error-mid", { stream: true }));
  await failureOf(collect(stream), OpenAI.APIError, {});
  assert.deepEqual(attempts, [0]);
});

staged("a retry that succeeds", async () => {
  const { counting, attempts } = connectCounting({ maxRetries: 2 });
  const started = performance.now();
  const { choices } = await counting.chat.completions.create(ask("plain"));
  assert.equal(choices[0].message.content, GREETING);
  assert.deepEqual(attempts, [0, 1]);
  assert.ok(performance.now() - started >= 1000, "it waits as long as Retry-After says");
});

// -- leaving

test("a client that waits no longer", async () => {
  const waiting = connect({ timeout: 200 }).chat.completions.create(ask("hang"));
  await failureOf(waiting, OpenAI.APIConnectionTimeoutError, {});
});

staged("abort of a stream", async () => {
  const stream = await chat.create(ask("think:60", { stream: true }));
  for await (const _ of stream) {
    await untilTold();
    stream.controller.abort();
  }
  await untilTold();
});

staged("a loop left early", async () => {
  for await (const _ of await chat.create(ask("think:60", { stream: true }))) {
    await untilTold();
    break;
  }
  await untilTold();
});

staged("abort before the first byte", async () => {
  const controller = new AbortController();
  const waiting = chat.create(ask("hang"), { signal: controller.signal });
  await untilTold();
  controller.abort();
  await failureOf(waiting, OpenAI.APIUserAbortError, {});
  await untilTold();
});

await run();

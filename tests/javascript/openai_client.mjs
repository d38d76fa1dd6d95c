// A client of the gateway, and what several scripts ask of it.

import assert from "node:assert/strict";
import process from "node:process";

import OpenAI from "openai";

export const BASE = process.env.PENSTOCK_BASE_URL;
export const GREETING = "Hello! How can I help you today? 🙂";

export const connect = (options = {}) =>
  new OpenAI({ baseURL: BASE, apiKey: process.env.PENSTOCK_API_KEY, maxRetries: 0, ...options });
export const client = connect();
export const chat = client.chat.completions;
export const ask = (model, rest = {}) => ({ model, messages: [{ role: "user", content: "Hi" }], ...rest });

export async function collect(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

export const textOf = (chunks, index = 0) =>
  chunks
    .flatMap(({ choices }) => choices.filter((choice) => choice.index === index))
    .map(({ delta }) => delta.content ?? "")
    .join("");

/** The error that a promise ends in, once it is known to be the right one. */
export async function failureOf(promise, kind, expected) {
  const error = await promise.then(
    () => assert.fail("it did not fail"),
    (found) => found,
  );
  assert.equal(error.constructor.name, kind.name, String(error));
  const { message, ...fields } = expected;
  for (const [name, value] of Object.entries(fields)) assert.equal(error[name], value, `${name} of ${error}`);
  if (message) assert.match(error.message, message);
  if (error.status) assert.ok(error.requestID, "an error without its request id");
  return error;
}

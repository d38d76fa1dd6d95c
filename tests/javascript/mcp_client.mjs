// Uses the gateway's tools with the official client of MCP, over HTTP or, where a command is named, over its stdin.

import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { run, test } from "./cases.mjs";

const { PENSTOCK_URL, PENSTOCK_API_KEY, PENSTOCK_COMMAND } = process.env;
const IMAGE = "sim_text_to_image";

function connect(key = PENSTOCK_API_KEY) {
  if (PENSTOCK_COMMAND) {
    const env = { ...process.env, PENSTOCK_API_KEY: key, PENSTOCK_BASE_URL: PENSTOCK_URL };
    return new StdioClientTransport({ command: PENSTOCK_COMMAND, args: ["mcp"], env });
  }
  const headers = { authorization: `Bearer ${key}` };
  return new StreamableHTTPClientTransport(new URL(`${PENSTOCK_URL}/mcp`), { requestInit: { headers } });
}

async function withClient(use) {
  const client = new Client({ name: "test", version: "1" });
  await client.connect(connect());
  try {
    await use(client);
  } finally {
    await client.close();
  }
}

const draw = (script = {}, more = {}) => ({
  name: "generate_image",
  arguments: { model: IMAGE, params: { prompt: "a boat", script: { latency: 0.05, ...script } }, ...more },
});

test("tools are listed", () =>
  withClient(async (client) => {
    const { tools } = await client.listTools();
    const names = tools.map(({ name }) => name);
    for (const name of ["list_models", "generate_image", "generate_video", "generate_3d", "job_status", "estimate"])
      assert.ok(names.includes(name), name);
    assert.equal(client.getServerVersion().name, "penstock");
  }));

test("a picture comes with progress, a link and a preview", () =>
  withClient(async (client) => {
    const seen = [];
    const options = { onprogress: ({ progress }) => seen.push(progress) };
    const result = await client.callTool(draw({ latency: 0.3 }), undefined, options);
    assert.equal(result.structuredContent.status, "succeeded");
    assert.deepEqual(
      result.content.map(({ type }) => type),
      ["text", "resource_link", "image"],
    );
    assert.ok(seen.length >= 2);
    assert.equal((await fetch(result.content[1].uri)).status, 200);
  }));

test("a job is canceled", () =>
  withClient(async (client) => {
    const { structuredContent: job } = await client.callTool(draw({ latency: 600 }, { wait_seconds: 0 }));
    assert.equal(job.done, false);
    await client.callTool({ name: "cancel", arguments: { job_id: job.job_id } });
    const status = { name: "job_status", arguments: { job_id: job.job_id, wait_seconds: 15 } };
    const ended = await client.callTool(status);
    assert.equal(ended.structuredContent.status, "canceled");
    assert.equal(ended.isError, true);
  }));

test("a failed job is an error result", () =>
  withClient(async (client) => {
    const result = await client.callTool(draw({ ending: "failed" }));
    assert.equal(result.isError, true);
    assert.match(result.content[0].text, /job_/);
  }));

test("an estimate, an asset and a refusal", () =>
  withClient(async (client) => {
    const { arguments: given } = draw();
    const found = await client.callTool({ name: "estimate", arguments: given });
    assert.equal(found.structuredContent.valid, true);
    const { structuredContent: job } = await client.callTool(draw());
    const asset = await client.callTool({ name: "get_asset", arguments: { job_id: job.job_id } });
    assert.equal(asset.content[1].type, "resource_link");
    const refused = await client.callTool({ name: "job_status", arguments: { job_id: "job_unknown" } });
    assert.equal(refused.structuredContent.error.code, "job_not_found");
  }));

test("an abandoned call leaves its job", () =>
  withClient(async (client) => {
    const leaving = new AbortController();
    const call = client.callTool(draw({ latency: 600 }, { idempotency_key: "left" }), undefined, {
      signal: leaving.signal,
      onprogress: () => leaving.abort(),
    });
    await assert.rejects(call);
    const again = await client.callTool(draw({ latency: 600 }, { idempotency_key: "left", wait_seconds: 0 }));
    assert.equal(again.structuredContent.done, false);
    await client.callTool({ name: "cancel", arguments: { job_id: again.structuredContent.job_id } });
  }));

test("outputs are resources", () =>
  withClient(async (client) => {
    const { structuredContent: job, content } = await client.callTool(draw());
    const { resources } = await client.listResources();
    const { resourceTemplates } = await client.listResourceTemplates();
    assert.equal(resources[0].uri, resourceTemplates[0].uriTemplate.replace("{job_id}", job.job_id).replace("{output}", 0));
    for (const { uri } of [resources[0], content[1]]) {
      const [read] = (await client.readResource({ uri })).contents;
      assert.equal(Buffer.from(read.blob, "base64").length, content[1].size);
    }
    await assert.rejects(client.readResource({ uri: "penstock://jobs/job_unknown/outputs/0" }), /-32002/);
  }));

test("a task is followed to its result", () =>
  withClient(async (client) => {
    await client.listTools(); // which tools make tasks
    const seen = [];
    let result;
    for await (const message of client.experimental.tasks.callToolStream(draw({ latency: 0.3 }))) {
      assert.notEqual(message.type, "error", String(message.error));
      seen.push(message.type);
      result = message.result ?? result;
    }
    assert.equal(seen[0], "taskCreated");
    assert.equal(seen.at(-1), "result");
    assert.equal(result.structuredContent.status, "succeeded");
  }));

test("tasks are listed, awaited and canceled", () =>
  withClient(async (client) => {
    await client.listTools();
    const { tasks } = client.experimental;
    const stream = tasks.callToolStream(draw({ latency: 600 }));
    const { task } = (await stream.next()).value;
    assert.equal((await tasks.listTasks()).tasks[0].taskId, task.taskId);
    assert.equal((await tasks.getTask(task.taskId)).status, "working");
    const waiting = tasks.getTaskResult(task.taskId, CallToolResultSchema);
    await tasks.cancelTask(task.taskId);
    assert.equal((await waiting).isError, true);
    assert.equal((await tasks.getTask(task.taskId)).status, "cancelled");
    await assert.rejects(tasks.cancelTask(task.taskId), /ended/);
  }));

test("a wrong key is refused", async () => {
  const client = new Client({ name: "test", version: "1" });
  await assert.rejects(client.connect(connect("psk_wrong")), /key/i);
  await client.close();
});

await run();

/** Programs in JavaScript for Node 18 or newer, without any package. */
import type { Body, ChatDialect } from "./chat_dialects";
import { type RequestCode, type Target, UPLOAD } from "./request";
import { SAMPLE_PATH, SAMPLE_PICTURE } from "./sample_picture";

const KEY = `const KEY = process.env.PENSTOCK_API_KEY;
if (!KEY) throw new Error("PENSTOCK_API_KEY is not set.");`;

export function runInJavaScript({ origin, target, body, files, job }: RequestCode): string {
  const { noun, records } = target;
  const name = job ? "fetch.mjs" : noun === "job" ? "generate.mjs" : "pipeline.mjs";
  const start = job ? `let job = await call("${records}/${job}");` : starting(target, body);
  const reads = files.includes(SAMPLE_PICTURE) ? "access, readFile, writeFile" : "readFile, writeFile";
  return `// Save as ${name}, then run: node ${name} (Node 18 or newer, no packages needed)
// Set your key first: export PENSTOCK_API_KEY=psk_…
${job ? "" : 'import { randomUUID } from "node:crypto";\n'}import { ${files.length ? reads : "writeFile"} } from "node:fs/promises";

const BASE = ${JSON.stringify(origin)};
const TIMEOUT = 900; // seconds
${KEY}
const pauseFor = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

/** Call the server. Retry if it is busy or away, and show its message if it refuses. */
async function call(path, options = {}) {
  const headers = { Authorization: \`Bearer \${KEY}\`, ...options.headers };
  let problem;
  for (let attempt = 0; attempt < 5; attempt += 1) {
    try {
      const answer = await fetch(BASE + path, { ...options, headers, signal: AbortSignal.timeout(60_000) });
      if (answer.ok) return await answer.json();
      problem = \`\${answer.status} \${await answer.text()}\`;
      if (answer.headers.get("x-should-retry") !== "true") break;
    } catch (error) {
      problem = error.cause ?? error;
    }
    await pauseFor(2 ** attempt);
  }
  throw new Error(\`\${path} failed: \${problem}\`);
}
${uploads(files)}
${start}

// Wait until it is done. The server holds each answer for up to 30 seconds.
const deadline = Date.now() + TIMEOUT * 1000;
for (let pause = 0.5; !${noun}.done; pause = Math.min(pause * 2, 8)) {
  if (Date.now() > deadline) throw new Error(\`\${${noun}.id} is not done after \${TIMEOUT} seconds. It continues.\`);
  await pauseFor(pause);
  ${noun} = await call(\`${records}/\${${noun}.id}?wait=30\`);
}
if (${noun}.status !== "succeeded") throw new Error(\`\${${noun}.id} \${${noun}.status}: \${${noun}.error?.message}\`);

${noun === "job" ? OUTPUTS : RESULTS}
  const download = await fetch(output.url);
  if (!download.ok) throw new Error(\`\${name} could not be downloaded: \${download.status}\`);
  await writeFile(name, Buffer.from(await download.arrayBuffer()));
  console.log("Saved", name);
}`;
}

const OUTPUTS = `// Download every output. The links are signed and need no key.
for (const output of job.outputs) {
  const name = new URL(output.url).pathname.split("/").pop();`;

const RESULTS = `// Download the outputs of the last steps. The links are signed and need no key.
const taken = new Set(pipeline.steps.flatMap((step) => step.needs));
const last = pipeline.steps.filter((step) => !taken.has(step.name));
const results = last.flatMap((step) =>
  step.jobs.flatMap((job, index) => job.outputs.map((output) => ({ ...output, prefix: \`\${step.name}-\${index + 1}-\` }))),
);
for (const output of results) {
  const name = output.prefix + new URL(output.url).pathname.split("/").pop();`;

function starting({ noun, start }: Target, body: unknown): string {
  const marked = new RegExp(`"${UPLOAD}((?:[^"\\\\]|\\\\.)*)"`, "g");
  const given = JSON.stringify(body, null, 2).replaceAll(marked, 'await upload("$1")');
  return `const body = ${given};
let ${noun} = await call("${start}", {
  method: "POST",
  // A retry with its Idempotency-Key starts no second ${noun}.
  headers: { "Content-Type": "application/json", "Idempotency-Key": randomUUID() },
  body: JSON.stringify(body),
});
console.log("Started", ${noun}.id);`;
}

function uploads(files: string[]): string {
  if (files.length === 0) return "";
  const sample = files.includes(SAMPLE_PICTURE)
    ? `
// The console's sample picture.
await access("${SAMPLE_PICTURE}").catch(async () => {
  const picture = await fetch(\`\${BASE}${SAMPLE_PATH}\`);
  await writeFile("${SAMPLE_PICTURE}", Buffer.from(await picture.arrayBuffer()));
});
`
    : "";
  return `
/** Upload a file of this folder. Return its token, which works for a day. */
async function upload(name) {
  const form = new FormData();
  form.append("file", new Blob([await readFile(name)]), name);
  return (await call("/api/v1/files", { method: "POST", body: form })).file_token;
}
${sample}`;
}

export function chatInJavaScript(origin: string, dialect: ChatDialect, body: Body): string {
  return `// Save as chat.mjs, then run: node chat.mjs (Node 18 or newer, no packages needed)
// Set your key first: export PENSTOCK_API_KEY=psk_…
${KEY}

const answer = await fetch("${origin}${dialect.path}", {
  method: "POST",
  headers: { Authorization: \`Bearer \${KEY}\`, "Content-Type": "application/json" },
  body: JSON.stringify(${JSON.stringify({ ...body, stream: true }, null, 2).replaceAll("\n", "\n  ")}),
});
if (!answer.ok) throw new Error(\`\${answer.status} \${(await answer.json()).error.message}\`);

// The answer comes in lines: data: {…}
let rest = "";
for await (const text of answer.body.pipeThrough(new TextDecoderStream())) {
  const lines = (rest + text).split("\\n");
  rest = lines.pop();
  for (const line of lines) {
    if (!line.startsWith("data: ") || line.startsWith("data: [DONE]")) continue;
    const event = JSON.parse(line.slice(6));
    const error = event.error ?? event.response?.error;
    if (error) throw new Error(error.message);
    process.stdout.write(${dialect.text} ?? "");
  }
}
console.log();`;
}

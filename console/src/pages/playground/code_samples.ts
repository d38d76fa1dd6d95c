/** This request as code to paste, with the key from the environment. */
import type { Model } from "../../api/shapes";
import type { Params } from "./params_form";

export interface Samples {
  curl: string;
  Python: string;
  JavaScript: string;
}

const KEY = '-H "Authorization: Bearer $PENSTOCK_API_KEY" -H "Content-Type: application/json"';
const ENDINGS: Record<string, string> = { "3d": "model.glb", video: "film.mp4", image: "picture.png" };

export function generationSamples(origin: string, model: Model, params: Params): Samples {
  const body = { model: model.id, input: [{ params }] };
  const name = ENDINGS[model.kind] ?? "result";
  const given = Object.entries(params).map(([param, value]) => argument(param, value));
  const python = `from penstock.client import Client  # reads PENSTOCK_API_KEY

job = Client("${origin}").generate(
    ${[JSON.stringify(model.id), ...given].join(",\n    ")},
)
job.wait().save("${name}")`;
  const javascript = `const headers = {
  Authorization: \`Bearer \${process.env.PENSTOCK_API_KEY}\`,
  "Content-Type": "application/json",
};
const body = ${JSON.stringify(body, null, 2)};

async function ask(path, options) {
  const reply = await fetch("${origin}" + path, { headers, ...options });
  if (!reply.ok) throw new Error((await reply.json()).error.message);
  return reply.json();
}

let job = await ask("/model/v1/generation", { method: "POST", body: JSON.stringify(body) });
while (!job.done) job = await ask(\`/api/v1/jobs/\${job.id}?wait=30\`);
console.log(job.status, job.outputs[0]?.url);`;
  return { curl: curl(`${origin}/model/v1/generation`, body), Python: python, JavaScript: javascript };
}

export function chatSamples(origin: string, body: Record<string, unknown>): Samples {
  const { stream: _, stream_options: __, ...fields } = body;
  const python = `import os
from openai import OpenAI

client = OpenAI(base_url="${origin}/llm", api_key=os.environ["PENSTOCK_API_KEY"])
stream = client.chat.completions.create(
    ${Object.entries(fields)
      .map(([name, value]) => argument(name, value))
      .join(",\n    ")},
    stream=True,
)
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)`;
  const javascript = `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${origin}/llm", apiKey: process.env.PENSTOCK_API_KEY });
const stream = await client.chat.completions.create(${JSON.stringify({ ...fields, stream: true }, null, 2)});
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta?.content ?? "");`;
  const address = `${origin}/llm/chat/completions`;
  return { curl: curl(address, { ...fields, stream: true }, "-N "), Python: python, JavaScript: javascript };
}

function curl(address: string, body: unknown, options = ""): string {
  const quoted = JSON.stringify(body).replaceAll("'", "'\\''");
  return `curl ${options}${address} \\\n  ${KEY} \\\n  -d '${quoted}'`;
}

/** `name=value` of a Python call; a name that Python cannot take goes by a mapping. */
function argument(name: string, value: unknown): string {
  return /^[A-Za-z_]\w*$/.test(name) ? `${name}=${literal(value)}` : `**{${JSON.stringify(name)}: ${literal(value)}}`;
}

/** A value in Python, on several lines if it is long. */
export function literal(value: unknown, indent = 4): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  const parts = Array.isArray(value)
    ? value.map((inner) => literal(inner, indent + 4))
    : Object.entries(value).map(([name, inner]) => `${JSON.stringify(name)}: ${literal(inner, indent + 4)}`);
  const line = `${open}${parts.join(", ")}${close}`;
  if (line.length < 90 && !line.includes("\n")) return line;
  const pad = " ".repeat(indent + 4);
  return `${open}\n${parts.map((part) => `${pad}${part},\n`).join("")}${" ".repeat(indent)}${close}`;
}

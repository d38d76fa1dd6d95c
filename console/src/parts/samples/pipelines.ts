/** Pipelines by the Python client and by the command line. Both upload files and save the results themselves. */
import { literal } from "./python";
import { type RequestCode, UPLOAD } from "./request";
import { quote } from "./shell";

type Fields = Record<string, unknown>;

export function pipelineInPython({ origin, body, files }: RequestCode): string {
  const { steps, ...options } = body as Fields;
  const given = Object.entries(options).map(([name, value]) => `        ${name}=${literal(value, 8)},\n`);
  return `# Save as pipeline.py, then run: pip install penstock && python pipeline.py
# Set your key first: export PENSTOCK_API_KEY=psk_…
import os
import sys

from penstock.client import Client, PenstockClientError

key = os.environ.get("PENSTOCK_API_KEY") or sys.exit("PENSTOCK_API_KEY is not set.")
client = Client(${JSON.stringify(origin)}, key)
${uploads(files)}
try:
    pipeline = client.pipeline(
        ${literal(steps, 8)},
${given.join("")}    )
    print("Started", pipeline.id)
    pipeline = pipeline.wait(timeout=900)
except PenstockClientError as error:
    sys.exit(f"Failed: {error}")

# Outputs of the last steps.
for path in pipeline.save("results"):
    print("Saved", path)`;
}

function uploads(files: string[]): string {
  if (files.length === 0) return "";
  return `

def upload(name):
    """Upload a file of this folder. Return its token, which works for a day."""
    return client.upload(name).file_token

`;
}

export function pipelineInCommandLine({ origin, body }: RequestCode): string {
  const { params, ...plan } = body as Fields & { params?: Fields };
  const own = Object.entries(params ?? {});
  const inputs = own.flatMap(([name, value]) => [value].flat().flatMap((each) => inputOf(name, each)));
  const plain = Object.fromEntries(own.filter(([name]) => !inputs.some((each) => each.name === name)));
  const json = JSON.stringify({ ...named(plan), params: plain }, null, 2);
  return `#!/usr/bin/env bash
# Save as pipeline.sh, then run: pip install penstock && bash pipeline.sh
# Set your key first: export PENSTOCK_API_KEY=psk_…
set -euo pipefail
export PENSTOCK_BASE_URL=${origin}

cat > pipeline.json << 'END'
${json}
END
penstock pipeline run pipeline.json${inputs.map(({ option }) => ` ${option}`).join("")} --output results`;
}

/** Return the option for a param of the pipeline that is a file to upload. */
function inputOf(name: string, value: unknown): { name: string; option: string }[] {
  const file = fileOf(value);
  if (!file) return [];
  return [{ name, option: `--input ${quote(`${name}${file.role ? `:${file.role}` : ""}=${file.name}`)}` }];
}

function fileOf(value: unknown): { name: string; role: string } | null {
  if (typeof value !== "object" || value === null) return null;
  const { file_token: token, role } = value as { file_token?: unknown; role?: unknown };
  if (typeof token !== "string" || !token.startsWith(UPLOAD)) return null;
  return { name: token.slice(UPLOAD.length), role: String(role ?? "") };
}

/** Name files of steps as the command line takes them. */
function named(value: unknown): Fields {
  const walk = (inner: unknown): unknown => {
    const file = fileOf(inner);
    if (file) return file.role ? { file: file.name, role: file.role } : file.name;
    if (Array.isArray(inner)) return inner.map(walk);
    if (typeof inner !== "object" || inner === null) return inner;
    return Object.fromEntries(Object.entries(inner).map(([name, each]) => [name, walk(each)]));
  };
  return walk(value) as Fields;
}

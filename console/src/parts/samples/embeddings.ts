/** Requests for embeddings as complete programs. */
import type { Samples } from "./samples";

const PATH = "/llm/embeddings";

export function embeddingSamples(origin: string, body: Record<string, unknown>): Samples {
  return { curl: embedInShell(origin, body), Python: embedInPython(origin, body) };
}

function embedInShell(origin: string, body: Record<string, unknown>): string {
  const json = JSON.stringify(body, null, 2).replaceAll("'", "'\\''");
  return `#!/usr/bin/env bash
# Save as embed.sh, then run: bash embed.sh
# Set your key first: export PENSTOCK_API_KEY=psk_…
set -euo pipefail

curl -sS ${origin}${PATH} \\
  -H "Authorization: Bearer \${PENSTOCK_API_KEY:?"is not set. Run: export PENSTOCK_API_KEY=psk_…"}" \\
  -H "Content-Type: application/json" \\
  -d '${json}'`;
}

function embedInPython(origin: string, { model, input }: Record<string, unknown>): string {
  return `# Save as embed.py, then run: pip install openai && python embed.py
# Set your key first: export PENSTOCK_API_KEY=psk_…
import os
import sys

from openai import APIError, OpenAI

key = os.environ.get("PENSTOCK_API_KEY") or sys.exit("PENSTOCK_API_KEY is not set.")
client = OpenAI(base_url="${origin}/llm", api_key=key)
try:
    found = client.embeddings.create(model=${JSON.stringify(model)}, input=${JSON.stringify(input)})
except APIError as error:
    sys.exit(f"Failed: {error.message}")
for item in found.data:
    print(item.index, len(item.embedding), item.embedding[:3])`;
}

/** Programs in Python: requests for generations, the vendor's own package for chat. */
import type { Body, ChatDialect } from "./chat_dialects";
import { type RequestCode, UPLOAD } from "./request";
import { SAMPLE_PATH, SAMPLE_PICTURE } from "./sample_picture";

export function generateInPython({ origin, body, files, job }: RequestCode): string {
  const name = job ? "fetch.py" : "generate.py";
  const start = job ? `job = call("GET", "/api/v1/jobs/${job}")` : starting(body);
  return `# Save as ${name}, then run: pip install requests && python ${name}
# Set your key first: export PENSTOCK_API_KEY=psk_…
import os
import sys
import time${job ? "" : "\nimport uuid"}
from pathlib import Path

import requests

BASE = ${JSON.stringify(origin)}
TIMEOUT = 900  # seconds
KEY = os.environ.get("PENSTOCK_API_KEY") or sys.exit("PENSTOCK_API_KEY is not set.")


def call(method, path, headers=None, **options):
    """Call the server. Retry if it is busy or away, and show its message if it refuses."""
    headers = {"Authorization": f"Bearer {KEY}", **(headers or {})}
    for attempt in range(5):
        try:
            answer = requests.request(method, BASE + path, headers=headers, timeout=60, **options)
        except (requests.ConnectionError, requests.Timeout) as error:
            problem = error
        else:
            if answer.ok:
                return answer.json()
            problem = f"{answer.status_code} {answer.text}"
            if answer.headers.get("x-should-retry") != "true":
                break
        time.sleep(2**attempt)
    sys.exit(f"{method} {path} failed: {problem}")

${uploads(files)}
${start}

# Wait until it is done. The server holds each answer for up to 30 seconds.
deadline, pause = time.monotonic() + TIMEOUT, 0.5
while not job["done"]:
    if time.monotonic() > deadline:
        sys.exit(f"{job['id']} is not done after {TIMEOUT} seconds. It continues.")
    time.sleep(pause)
    pause = min(pause * 2, 8)
    job = call("GET", f"/api/v1/jobs/{job['id']}?wait=30")
if job["status"] != "succeeded":
    sys.exit(f"{job['id']} {job['status']}: {(job['error'] or {}).get('message')}")

# Download every output. The links are signed and need no key.
for output in job["outputs"]:
    name = output["url"].split("?")[0].rsplit("/", 1)[1]
    download = requests.get(output["url"], timeout=300)
    download.raise_for_status()
    Path(name).write_bytes(download.content)
    print("Saved", name)`;
}

function starting(body: unknown): string {
  return `# A retry with its Idempotency-Key starts no second job.
job = call(
    "POST",
    "/model/v1/generation",
    headers={"Idempotency-Key": str(uuid.uuid4())},
    json=${literal(body, 4)},
)
print("Started", job["id"])`;
}

function uploads(files: string[]): string {
  if (files.length === 0) return "";
  const sample = files.includes(SAMPLE_PICTURE)
    ? `
    if name == "${SAMPLE_PICTURE}" and not picture.exists():  # comes with the console
        picture.write_bytes(requests.get(f"{BASE}${SAMPLE_PATH}", timeout=60).content)`
    : "";
  return `
def upload(name):
    """Upload a file of this folder. Return its token, which works for a day."""
    picture = Path(name)${sample}
    if not picture.exists():
        sys.exit(f"{name} is not in this folder.")
    return call("POST", "/api/v1/files", files={"file": (name, picture.read_bytes())})["file_token"]

`;
}

export function chatInPython(origin: string, { python }: ChatDialect, body: Body): string {
  const given = Object.entries({ ...body, ...python.arguments }).map(([name, value]) => argument(name, value));
  return `# Save as chat.py, then run: pip install ${python.package} && python chat.py
# Set your key first: export PENSTOCK_API_KEY=psk_…
import os
import sys

${python.import}

key = os.environ.get("PENSTOCK_API_KEY") or sys.exit("PENSTOCK_API_KEY is not set.")
client = ${python.client.replace("BASE", origin)}
try:
    stream = ${python.call}(
${given.map((line) => `        ${line},\n`).join("")}    )
${python.loop.map((line) => `    ${line}\n`).join("")}    print()
except APIError as error:
    sys.exit(f"Failed: {error.message}")`;
}

/** `name=value` of a Python call; a name that Python cannot take goes by a mapping. */
function argument(name: string, value: unknown): string {
  return /^[A-Za-z_]\w*$/.test(name)
    ? `${name}=${literal(value, 8)}`
    : `**{${JSON.stringify(name)}: ${literal(value, 8)}}`;
}

/** A value in Python, on several lines if it is long. A marked text is a file to upload. */
export function literal(value: unknown, indent: number): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "string" && value.startsWith(UPLOAD)) return `upload(${JSON.stringify(value.slice(1))})`;
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

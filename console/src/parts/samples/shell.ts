/** Programs for bash with curl. Answers are read with python3, which nearly every machine has. */
import type { Body, ChatDialect } from "./chat_dialects";
import { type RequestCode, type Target, UPLOAD } from "./request";
import { SAMPLE_PATH, SAMPLE_PICTURE } from "./sample_picture";

const HEAD = `# Needs curl and python3. Set your key first: export PENSTOCK_API_KEY=psk_…`;

export function runInShell({ origin, target, body, files, job }: RequestCode): string {
  const { noun, records } = target;
  const id = noun.toUpperCase();
  const name = job ? "fetch.sh" : noun === "job" ? "generate.sh" : "pipeline.sh";
  const start = job ? `JOB=${job}` : starting(target, body, files);
  return `#!/usr/bin/env bash
# Save as ${name}, then run: bash ${name}
${HEAD}
set -euo pipefail

BASE=${origin}
KEY=\${PENSTOCK_API_KEY:?"is not set. Run: export PENSTOCK_API_KEY=psk_…"}
TIMEOUT=900 # seconds
ANSWER=$(mktemp)
trap 'rm -f "$ANSWER"' EXIT

# Call the server. Retry if it is busy, and show its message if it refuses.
call() {
  curl -sS --fail-with-body --retry 4 -o "$ANSWER" -H "Authorization: Bearer $KEY" "$@" || { cat "$ANSWER" >&2; exit 1; }
  cat "$ANSWER"
}
# Read one field of an answer.
field() { python3 -c "import json, sys; answer = json.load(sys.stdin); print(answer$1)"; }
${uploads(files)}
${start}

# Wait until it is done. The server holds each answer for up to 30 seconds.
PAUSE=1
RECORD=$(call "$BASE${records}/$${id}?wait=30")
until [ "$(field '["done"]' <<< "$RECORD")" = True ]; do
  [ "$SECONDS" -lt "$TIMEOUT" ] || { echo "$${id} is not done after $TIMEOUT seconds. It continues." >&2; exit 1; }
  sleep "$PAUSE"
  PAUSE=$((PAUSE < 8 ? PAUSE * 2 : PAUSE))
  RECORD=$(call "$BASE${records}/$${id}?wait=30")
done
if [ "$(field '["status"]' <<< "$RECORD")" != succeeded ]; then
  REASON=$(field '["error"] and answer["error"]["message"]' <<< "$RECORD")
  echo "$${id} $(field '["status"]' <<< "$RECORD"): $REASON" >&2
  exit 1
fi

${noun === "job" ? OUTPUTS : RESULTS}
  curl -sS --fail --location --retry 4 -o "$NAME" "$URL"
  echo "Saved $NAME"
${noun === "job" ? "done" : `done < <(python3 -c "$LIST" <<< "$RECORD")`}`;
}

const OUTPUTS = `# Download every output. The links are signed and need no key.
for URL in $(python3 -c 'import json, sys; print(*(each["url"] for each in json.load(sys.stdin)["outputs"]))' <<< "$RECORD"); do
  NAME=$(basename "\${URL%%\\?*}")`;

const RESULTS = `# Download the outputs of the last steps. The links are signed and need no key.
LIST='
import json, sys

steps = json.load(sys.stdin)["steps"]
taken = {name for step in steps for name in step["needs"]}
for step in steps:
    for number, job in enumerate([] if step["name"] in taken else step["jobs"], 1):
        for output in job["outputs"]:
            name = output["url"].split("?")[0].rsplit("/", 1)[1]
            print(step["name"] + f"-{number}-{name}", output["url"])
'
while read -r NAME URL; do`;

function starting({ noun, start }: Target, body: unknown, files: string[]): string {
  const id = noun.toUpperCase();
  const numbered = JSON.stringify(body, numberUploads(files), 2);
  const given = quote(numbered).replaceAll(new RegExp(`${UPLOAD}(\\d+)`, "g"), `'"$FILE_$1"'`);
  return `# Start the ${noun}. A retry with its Idempotency-Key starts no second one.
${id}=$(call "$BASE${start}" -H "Content-Type: application/json" \\
  -H "Idempotency-Key: $(date +%s)-$$-$RANDOM" \\
  -d ${given} | field '["id"]')
echo "Started $${id}"`;
}

/** A replacer for JSON that puts the number of a file in place of its name. */
function numberUploads(files: string[]) {
  return (_: string, value: unknown) =>
    typeof value === "string" && value.startsWith(UPLOAD) ? `${UPLOAD}${files.indexOf(value.slice(1)) + 1}` : value;
}

function uploads(files: string[]): string {
  if (files.length === 0) return "";
  const sample = files.includes(SAMPLE_PICTURE)
    ? `\n# The console's sample picture.\n[ -f ${SAMPLE_PICTURE} ] || curl -sS --fail -o ${SAMPLE_PICTURE} "$BASE${SAMPLE_PATH}"\n`
    : "";
  const lines = files.map(
    (name, index) => `FILE_${index + 1}=$(upload ${/^[\w.-]+$/.test(name) ? name : quote(name)})`,
  );
  return `${sample}
# Upload a file of this folder. Return its token, which works for a day.
upload() {
  [ -f "$1" ] || { echo "$1 is not in this folder." >&2; exit 1; }
  call "$BASE/api/v1/files" -F "file=@\\"$1\\"" | field '["file_token"]'
}
${lines.join("\n")}
`;
}

export function chatInShell(origin: string, dialect: ChatDialect, body: Body): string {
  return `#!/usr/bin/env bash
# Save as chat.sh, then run: bash chat.sh
${HEAD}
set -euo pipefail

curl -sS ${origin}${dialect.path} \\
  -H "Authorization: Bearer \${PENSTOCK_API_KEY:?"is not set. Run: export PENSTOCK_API_KEY=psk_…"}" \\
  -H "Content-Type: application/json" \\
  -d ${quote(JSON.stringify(body, null, 2))} |
  python3 -c '
import json, sys

answer = json.load(sys.stdin)
if answer.get("error"):
    sys.exit(answer["error"]["message"])
${dialect.print}'`;
}

export function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

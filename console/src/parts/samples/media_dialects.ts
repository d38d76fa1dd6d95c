/** A generation by the clients of other services, which reach this server by a change of their address. */
import type { Model } from "../../api/shapes";
import { literal } from "./python";
import type { Params } from "./request";

type Samples = Record<string, string>;

const PYTHON_KEY = 'os.environ["PENSTOCK_API_KEY"]';
const NODE_KEY = "process.env.PENSTOCK_API_KEY";

/** Name a model as Replicate's and fal's clients take it. */
export function ownedName(id: string): string {
  return `penstock/${id.replaceAll(/[/:]/g, "--")}`;
}

/** A protocol that a program below speaks: where its orders go, and the param that it cannot do without. */
interface MediaDialect {
  path: string;
  needs?: string;
  write: (origin: string, model: Model, params: Params) => Samples;
}

const MEDIA_DIALECTS: Record<string, MediaDialect> = {
  "OpenAI Images": {
    path: "/v1/images/generations",
    needs: "prompt",
    write: (...request) => ({ Python: imagesInPython(...request) }),
  },
  "OpenAI Videos": {
    path: "/v1/videos",
    needs: "prompt",
    write: (...request) => ({ Python: videosInPython(...request) }),
  },
  Replicate: {
    path: "/replicate/",
    write: (...request) => ({ Python: replicateInPython(...request), JavaScript: replicateInNode(...request) }),
  },
  fal: { path: "/fal/", write: (...request) => ({ JavaScript: falInNode(...request) }) },
};

/** Return whether a model is reached by a path; one that ends in a slash stands for all below it. */
export function takes({ endpoints }: Model, path: string): boolean {
  return endpoints.some((each) => (path.endsWith("/") ? each.startsWith(path) : each === path));
}

/** Samples by the title of the dialect, of those that the server speaks. `params` hold no files to upload. */
export function mediaSamples(origin: string, model: Model, params: Params): Record<string, Samples> {
  const known = Object.entries(MEDIA_DIALECTS).filter(
    ([, { path, needs }]) => takes(model, path) && (!needs || typeof params[needs] === "string"),
  );
  return Object.fromEntries(known.map(([title, { write }]) => [title, write(origin, model, params)]));
}

function replicateInPython(origin: string, model: Model, params: Params): string {
  return `# Save as generate.py, then run: pip install replicate && python generate.py
# Set your key first: export PENSTOCK_API_KEY=psk_…
import os

from replicate.client import Client

replicate = Client(base_url="${origin}/replicate", api_token=${PYTHON_KEY})
output = replicate.run(
    "${ownedName(model.id)}",
    input=${literal(params, 4)},
)
for result in output if isinstance(output, list) else [output]:
    print(result)`;
}

function replicateInNode(origin: string, model: Model, params: Params): string {
  return `// Save as generate.mjs, then run: npm install replicate && node generate.mjs
// Set your key first: export PENSTOCK_API_KEY=psk_…
import Replicate from "replicate";

const replicate = new Replicate({ baseUrl: "${origin}/replicate/v1", auth: ${NODE_KEY} });
const output = await replicate.run("${ownedName(model.id)}", {
  input: ${inNode(params)},
});
for (const result of [output].flat()) console.log(String(result));`;
}

function falInNode(origin: string, model: Model, params: Params): string {
  return `// Save as generate.mjs, then run: npm install @fal-ai/client && node generate.mjs
// Set your key first: export PENSTOCK_API_KEY=psk_…
import { fal } from "@fal-ai/client";

fal.config({ credentials: ${NODE_KEY}, proxyUrl: { url: "${origin}/fal/proxy", when: "always" } });
const { data } = await fal.subscribe("${ownedName(model.id)}", {
  input: ${inNode(params)},
});
console.log(JSON.stringify(data, null, 2));`;
}

function imagesInPython(origin: string, model: Model, { prompt, ...rest }: Params): string {
  const ending = typeof rest.output_format === "string" ? rest.output_format : "png";
  const more = Object.keys(rest).length ? `\n    extra_body=${literal(rest, 4)},` : "";
  return `# Save as generate.py, then run: pip install openai && python generate.py
# Set your key first: export PENSTOCK_API_KEY=psk_…
import base64
import os
from pathlib import Path

from openai import OpenAI

client = OpenAI(base_url="${origin}/v1", api_key=${PYTHON_KEY})
answer = client.images.generate(
    model=${JSON.stringify(model.id)},
    prompt=${JSON.stringify(prompt)},
    response_format="b64_json",${more}
)
for number, picture in enumerate(answer.data, 1):
    path = Path(f"picture-{number}.${ending}")
    path.write_bytes(base64.b64decode(picture.b64_json))
    print("Saved", path)`;
}

function videosInPython(origin: string, model: Model, { prompt, ...rest }: Params): string {
  const more = Object.keys(rest).length ? `\n    extra_body=${literal(rest, 4)},` : "";
  return `# Save as generate.py, then run: pip install openai && python generate.py
# Set your key first: export PENSTOCK_API_KEY=psk_…
import os
import sys

from openai import OpenAI

client = OpenAI(base_url="${origin}/v1", api_key=${PYTHON_KEY})
film = client.videos.create_and_poll(
    model=${JSON.stringify(model.id)},
    prompt=${JSON.stringify(prompt)},${more}
)
if film.error:
    sys.exit(f"{film.id} failed: {film.error.message}")
client.videos.download_content(film.id).write_to_file("film.mp4")
print("Saved film.mp4")`;
}

function inNode(params: Params): string {
  return JSON.stringify(params, null, 2).replaceAll("\n", "\n  ");
}

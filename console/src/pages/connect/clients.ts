/** Clients that work with this server unchanged, with the one line that changes in each. */
import type { Model } from "../../api/shapes";
import { firstOf } from "../../parts/model_order";
import { ownedName, takes } from "../../parts/samples/media_dialects";
import { WORDS } from "../../vocabulary";

export interface Use {
  title: string;
  /** The line that changes. */
  line: string;
  /** A program around the line, or nothing where the line is all. */
  program?: string;
}

export interface Client {
  title: string;
  about: string;
  uses: Use[];
  note?: string;
}

/** Ids of models that the examples call; a picture or film is empty if the key has none of the kind. */
interface Offers {
  chat: string;
  picture: string;
  film: string;
}

const PROMPT = "a red fox in the snow";

export function clientsOf(origin: string, models: Model[]): Client[] {
  const media = models.filter(({ endpoints }) => endpoints.includes("/model/v1/generation"));
  /** Whether the server speaks a protocol, as far as the models tell. */
  const speaks = (path: string) => media.length === 0 || media.some((model) => takes(model, path));
  const chat = first(models, "chat") || "your-chat-model";
  const offers = { chat, picture: first(models, "image"), film: first(models, "video") };
  const atOpenAi = {
    chat,
    picture: speaks("/v1/images/generations") ? offers.picture : "",
    film: speaks("/v1/videos") ? offers.film : "",
  };
  const atReplicate = speaks("/replicate/") ? offers : { chat, picture: "", film: "" };
  return [
    openai(origin, atOpenAi),
    anthropic(origin, offers),
    ...(speaks("/replicate/") ? [replicate(origin, offers)] : []),
    ...(speaks("/fal/") ? [fal(origin, offers)] : []),
    vercel(origin, atReplicate),
    ...(speaks("/mcp") ? [mcp(origin)] : []),
  ];
}

/** A program that makes pictures and films, if the key has a model of either. */
function media({ picture, film }: Offers, line: string, program: string): Use[] {
  return picture || film ? [{ title: "Pictures and films", line, program }] : [];
}

/** Return the first model of a kind. One that makes something needs no more than a prompt. */
function first(models: Model[], kind: string): string {
  const isSimple = ({ params: { properties, required } }: Model) =>
    "prompt" in ((properties ?? {}) as object) && ((required ?? []) as string[]).every((name) => name === "prompt");
  return firstOf(models.filter((model) => model.kind === kind && (kind === "chat" || isSimple(model))))?.id ?? "";
}

/** Join lines; what is not offered is left out. */
function lines(...all: (string | false)[]): string {
  return all.filter((each) => each !== false).join("\n");
}

const PYTHON_KEY = 'os.environ["PENSTOCK_API_KEY"]';
const NODE_KEY = "process.env.PENSTOCK_API_KEY";

function openai(origin: string, offers: Offers): Client {
  const { chat, picture, film } = offers;
  const python = `client = OpenAI(base_url="${origin}/v1", api_key=${PYTHON_KEY})`;
  const node = `const client = new OpenAI({ baseURL: "${origin}/v1", apiKey: ${NODE_KEY} });`;
  const inPython = ["# pip install openai", "import os", "", "from openai import OpenAI", "", python] as const;
  return {
    title: "OpenAI",
    about: "Chat Completions, Responses, Embeddings, Images, Videos, Audio. A model has its own id.",
    uses: [
      {
        title: "Python",
        line: python,
        program: lines(
          ...inPython,
          `answer = client.chat.completions.create(model="${chat}", messages=[{"role": "user", "content": "Say hello."}])`,
          "print(answer.choices[0].message.content)",
        ),
      },
      {
        title: "JavaScript",
        line: node,
        program: lines(
          "// npm install openai",
          'import OpenAI from "openai";',
          "",
          node,
          "const answer = await client.chat.completions.create({",
          `  model: "${chat}",`,
          '  messages: [{ role: "user", content: "Say hello." }],',
          "});",
          "console.log(answer.choices[0].message.content);",
        ),
      },
      ...media(
        offers,
        python,
        lines(
          "# pip install openai",
          "import base64",
          "import os",
          "",
          "from openai import OpenAI",
          "",
          python,
          picture !== "" && `picture = client.images.generate(model="${picture}", prompt="${PROMPT}").data[0]`,
          picture !== "" && 'open("picture.png", "wb").write(base64.b64decode(picture.b64_json))',
          film !== "" && `film = client.videos.create_and_poll(model="${film}", prompt="${PROMPT}")`,
          film !== "" && 'client.videos.download_content(film.id).write_to_file("film.mp4")',
        ),
      ),
      {
        title: "Environment",
        line: `export OPENAI_BASE_URL=${origin}/v1 OPENAI_API_KEY=$PENSTOCK_API_KEY`,
      },
    ],
  };
}

function anthropic(origin: string, { chat }: Offers): Client {
  const python = `client = Anthropic(base_url="${origin}", api_key=${PYTHON_KEY})`;
  const node = `const client = new Anthropic({ baseURL: "${origin}", apiKey: ${NODE_KEY} });`;
  return {
    title: "Anthropic",
    about: "Messages, by any chat model of this server. Claude Code reads its environment.",
    uses: [
      {
        title: "Python",
        line: python,
        program: lines(
          "# pip install anthropic",
          "import os",
          "",
          "from anthropic import Anthropic",
          "",
          python,
          "answer = client.messages.create(",
          `    model="${chat}", max_tokens=200, messages=[{"role": "user", "content": "Say hello."}]`,
          ")",
          "print(answer.content[0].text)",
        ),
      },
      {
        title: "JavaScript",
        line: node,
        program: lines(
          "// npm install @anthropic-ai/sdk",
          'import Anthropic from "@anthropic-ai/sdk";',
          "",
          node,
          "const answer = await client.messages.create({",
          `  model: "${chat}",`,
          "  max_tokens: 200,",
          '  messages: [{ role: "user", content: "Say hello." }],',
          "});",
          "console.log(answer.content[0].text);",
        ),
      },
      {
        title: "Claude Code",
        line: `export ANTHROPIC_BASE_URL=${origin} ANTHROPIC_AUTH_TOKEN=$PENSTOCK_API_KEY ANTHROPIC_MODEL=${chat}`,
      },
    ],
  };
}

function replicate(origin: string, { picture, film }: Offers): Client {
  const python = `replicate = Client(base_url="${origin}/replicate", api_token=${PYTHON_KEY})`;
  const node = `const replicate = new Replicate({ baseUrl: "${origin}/replicate/v1", auth: ${NODE_KEY} });`;
  const model = ownedName(picture || film || "your-model");
  return {
    title: "Replicate",
    about: "Predictions of every model that makes something. A model is penstock/ and its id.",
    uses: [
      {
        title: "Python",
        line: python,
        program: lines(
          "# pip install replicate",
          "import os",
          "",
          "from replicate.client import Client",
          "",
          python,
          `print(replicate.run("${model}", input={"prompt": "${PROMPT}"}))`,
        ),
      },
      {
        title: "JavaScript",
        line: node,
        program: lines(
          "// npm install replicate",
          'import Replicate from "replicate";',
          "",
          node,
          `console.log(await replicate.run("${model}", { input: { prompt: "${PROMPT}" } }));`,
        ),
      },
      {
        title: "Environment",
        line: `export REPLICATE_BASE_URL=${origin}/replicate REPLICATE_API_TOKEN=$PENSTOCK_API_KEY`,
      },
    ],
  };
}

function fal(origin: string, { picture, film }: Offers): Client {
  const host = origin.replace(/^https?:\/\//, "");
  const proxy = `proxyUrl: { url: "${origin}/fal/proxy", when: "always" }`;
  const node = `fal.config({ credentials: ${NODE_KEY}, ${proxy} });`;
  const python = `export FAL_RUN_HOST=${host}/fal/run FAL_QUEUE_RUN_HOST=${host}/fal/queue FAL_KEY=$PENSTOCK_API_KEY`;
  const model = ownedName(picture || film || "your-model");
  const client: Client = {
    title: "fal",
    about: "Queue and run of every model that makes something. A model is penstock/ and its id.",
    uses: [
      {
        title: "JavaScript",
        line: node,
        program: lines(
          "// npm install @fal-ai/client",
          'import { fal } from "@fal-ai/client";',
          "",
          node,
          `const { data } = await fal.subscribe("${model}", { input: { prompt: "${PROMPT}" } });`,
          "console.log(data);",
        ),
      },
      {
        title: "Python",
        line: python,
        program: lines(
          "# pip install fal-client. It reads its environment when it is imported.",
          "import fal_client",
          "",
          `print(fal_client.subscribe("${model}", arguments={"prompt": "${PROMPT}"}))`,
        ),
      },
    ],
  };
  const note = "The Python client always uses https. This address has none: put a TLS proxy in front.";
  return origin.startsWith("https:") ? client : { ...client, note };
}

function vercel(origin: string, offers: Offers): Client {
  const { chat, picture, film } = offers;
  const replicate = `const penstock = createReplicate({ baseURL: "${origin}/replicate/v1", apiToken: ${NODE_KEY} });`;
  const openai = `const penstock = createOpenAI({ baseURL: "${origin}/v1", apiKey: ${NODE_KEY} });`;
  return {
    title: "Vercel AI SDK",
    about: "Text by its OpenAI provider, pictures and films by its Replicate provider.",
    uses: [
      ...media(
        offers,
        replicate,
        lines(
          "// npm install ai @ai-sdk/replicate",
          'import { writeFile } from "node:fs/promises";',
          'import { createReplicate } from "@ai-sdk/replicate";',
          'import { experimental_generateVideo as generateVideo, generateImage } from "ai";',
          "",
          replicate,
          picture !== "" &&
            `const { image } = await generateImage({ model: penstock.image("${ownedName(picture)}"), prompt: "${PROMPT}" });`,
          picture !== "" && 'await writeFile("picture.png", image.uint8Array);',
          film !== "" &&
            `const { video } = await generateVideo({ model: penstock.video("${ownedName(film)}"), prompt: "${PROMPT}" });`,
          film !== "" && 'await writeFile("film.mp4", video.uint8Array);',
        ),
      ),
      {
        title: WORDS.chat,
        line: openai,
        program: lines(
          "// npm install ai @ai-sdk/openai",
          'import { createOpenAI } from "@ai-sdk/openai";',
          'import { generateText } from "ai";',
          "",
          openai,
          `const { text } = await generateText({ model: penstock.chat("${chat}"), prompt: "Say hello." });`,
          "console.log(text);",
        ),
      },
    ],
  };
}

function mcp(origin: string): Client {
  const remote = { type: "http", url: `${origin}/mcp`, headers: { Authorization: "Bearer psk_…" } };
  const env = { PENSTOCK_BASE_URL: origin, PENSTOCK_API_KEY: "psk_…" };
  const local = { command: "penstock", args: ["mcp"], env };
  const json = (server: object) => JSON.stringify({ mcpServers: { penstock: server } }, null, 2);
  return {
    title: "MCP",
    about: "Tools for agents: list models, generate, follow, cancel and fetch results, within the key's budget.",
    uses: [
      {
        title: "Claude Code",
        line: `claude mcp add --transport http penstock ${origin}/mcp --header "Authorization: Bearer $PENSTOCK_API_KEY"`,
      },
      { title: "Other clients, by HTTP", line: json(remote) },
      { title: "Other clients, by stdin and stdout", line: json(local) },
    ],
  };
}

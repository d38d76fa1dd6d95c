/** The dialects of chat: the path, the body and the place of the answer's text in each. */

export type Body = Record<string, unknown>;

export interface ChatDialect {
  title: string;
  path: string;
  /** The body in this dialect, of one in that of chat completions. */
  body: (body: Body) => Body;
  /** Python that prints the text of a whole `answer`. */
  print: string;
  /** JavaScript: the text in an event, or nothing. */
  text: string;
  python: PythonClient;
}

export interface PythonClient {
  package: string;
  import: string;
  /** The client's expression; `BASE` stands for the server's address. */
  client: string;
  /** The call that streams, and the lines that print what it yields. */
  call: string;
  arguments: Body;
  loop: string[];
}

interface Turn {
  role: string;
  content: string;
}

const COMPLETIONS: ChatDialect = {
  title: "Chat Completions",
  path: "/llm/chat/completions",
  body: ({ stream: _, stream_options: __, ...body }) => body,
  print: 'print(answer["choices"][0]["message"]["content"])',
  text: "event.choices[0]?.delta?.content",
  python: {
    package: "openai",
    import: "from openai import APIError, OpenAI",
    client: 'OpenAI(base_url="BASE/llm", api_key=key)',
    call: "client.chat.completions.create",
    arguments: { stream: true },
    loop: [
      "for chunk in stream:",
      "    if chunk.choices:",
      '        print(chunk.choices[0].delta.content or "", end="", flush=True)',
    ],
  },
};

const MESSAGES: ChatDialect = {
  title: "Messages API",
  path: "/v1/messages",
  body: (body) => {
    const { system, turns } = split(body);
    const { model, max_tokens: limit, temperature, top_p, stop } = body;
    return given({
      model,
      max_tokens: limit ?? 1024,
      system,
      messages: turns,
      temperature: typeof temperature === "number" ? Math.min(temperature, 1) : undefined,
      top_p,
      stop_sequences: stop === undefined ? undefined : [stop].flat(),
    });
  },
  print: 'print("".join(block["text"] for block in answer["content"] if block["type"] == "text"))',
  text: "event.delta?.text",
  python: {
    package: "anthropic",
    import: "from anthropic import Anthropic, APIError",
    client: 'Anthropic(base_url="BASE", auth_token=key)',
    call: "client.messages.create",
    arguments: { stream: true },
    loop: [
      "for event in stream:",
      '    if event.type == "content_block_delta" and event.delta.type == "text_delta":',
      '        print(event.delta.text, end="", flush=True)',
    ],
  },
};

const RESPONSES: ChatDialect = {
  title: "Responses API",
  path: "/v1/responses",
  body: (body) => {
    const { system, turns } = split(body);
    const { model, max_tokens: limit, temperature, top_p } = body;
    return given({ model, instructions: system, input: turns, max_output_tokens: limit, temperature, top_p });
  },
  print: `for item in answer["output"]:
    for part in item.get("content") or []:
        print(part.get("text", ""))`,
  text: 'event.type === "response.output_text.delta" ? event.delta : ""',
  python: {
    package: "openai",
    import: "from openai import APIError, OpenAI",
    client: 'OpenAI(base_url="BASE/v1", api_key=key)',
    call: "client.responses.create",
    arguments: { stream: true },
    loop: [
      "for event in stream:",
      '    if event.type == "response.output_text.delta":',
      '        print(event.delta, end="", flush=True)',
    ],
  },
};

export const CHAT_DIALECTS = [COMPLETIONS, MESSAGES, RESPONSES];

/** The system prompt, which other dialects keep apart, and the other turns. */
function split(body: Body): { system: string | undefined; turns: Turn[] } {
  const all = body.messages as Turn[];
  const system = all.filter(({ role }) => role === "system").map(({ content }) => content);
  const turns = all.filter(({ role }) => role !== "system").map(({ role, content }) => ({ role, content }));
  return { system: system.join("\n") || undefined, turns };
}

function given(body: Body): Body {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined));
}

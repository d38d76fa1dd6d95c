"""What an OpenAI-compatible upstream says, written as the live API writes it: completions, chunks and errors."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, count, zip_longest
from typing import Any

Json = dict[str, Any]

GREETING = "Hello! How can I help you today? 🙂"
REFUSAL = "I'm sorry, I can't assist with that request."
FINGERPRINT = "fp_44709d6fcb"
CREATED = 1_741_569_952
PROMPT_TOKENS = 19
ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model came up with; every choice is the same."""

    text: str | None = GREETING
    refusal: str | None = None
    calls: tuple[tuple[str, str], ...] = ()
    """Names of tools, each with its arguments as JSON text."""
    reasoning: str = ""
    finish: str = "stop"


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer to one request, whole or in chunks."""

    asked: Json
    answer: Answer
    id: str = field(default_factory=lambda: f"chatcmpl-B9MBs8CjcvOU2jLn4n570S5q{next(_numbers):05}")

    @property
    def choices(self) -> int:
        """How many were asked for."""
        return int(self.asked.get("n") or 1)

    @property
    def with_usage(self) -> bool:
        """Whether the stream is to tell what it used."""
        return bool((self.asked.get("stream_options") or {}).get("include_usage"))

    def usage(self) -> Json:
        """What all choices used together."""
        answer = self.answer
        said = chain((answer.text or "", answer.refusal or "", answer.reasoning), (text for _, text in answer.calls))
        answered = sum(len(pieces_of(text)) for text in said) * self.choices
        reasoned = len(pieces_of(answer.reasoning)) * self.choices
        return {
            "prompt_tokens": PROMPT_TOKENS,
            "completion_tokens": answered,
            "total_tokens": PROMPT_TOKENS + answered,
            "prompt_tokens_details": {"cached_tokens": 3, "audio_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": reasoned,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        }

    def whole(self) -> Json:
        """The completion."""
        return {
            "id": self.id,
            "object": "chat.completion",
            "created": CREATED,
            "model": self.asked["model"],
            "choices": [
                {
                    "index": index,
                    "message": self._message(),
                    "logprobs": self._logprobs(pieces_of(self.answer.text or "")),
                    "finish_reason": self.answer.finish,
                }
                for index in range(self.choices)
            ],
            "usage": self.usage(),
            "service_tier": "default",
            "system_fingerprint": FINGERPRINT,
        }

    def chunk(self, choices: Sequence[Json], **rest: Any) -> Json:
        """One chunk, with what every chunk has."""
        options = self.asked.get("stream_options") or {}
        obfuscation = {"obfuscation": "x7Kq"} if options.get("include_obfuscation") and choices else {}
        return {
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": self.asked["model"],
            "service_tier": "default",
            "system_fingerprint": FINGERPRINT,
            "choices": list(choices),
            **({"usage": None} if self.with_usage else {}),
            **rest,
            **obfuscation,
        }

    def chunks(self) -> list[Json]:
        """All chunks in the order of the live API; the choices of `n` are interleaved."""
        tracks = [list(self._track(index)) for index in range(self.choices)]
        steps = chain.from_iterable(zip_longest(*tracks))
        chunks = [self.chunk([choice]) for choice in steps if choice is not None]
        if self.with_usage:
            chunks.append(self.chunk([], usage=self.usage()))
        return chunks

    def _track(self, index: int) -> Iterator[Json]:
        """What one choice says, step by step."""

        def step(delta: Json, spoken: list[str] | None = None, finish: str | None = None) -> Json:
            logprobs = None if spoken is None else self._logprobs(spoken)
            return {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish}

        answer = self.answer
        calls = list(self._calls_in_pieces())
        if answer.refusal is not None:
            yield step({"role": "assistant", "content": None, "refusal": ""}, [])
        elif len(answer.calls) == 1 and not answer.text:
            yield step({"role": "assistant", "content": None, "tool_calls": [calls.pop(0)], "refusal": None})
        else:
            yield step({"role": "assistant", "content": None if calls else "", "refusal": None}, [])
        for piece in pieces_of(answer.reasoning):
            yield step({"reasoning_content": piece})
        for piece in pieces_of(answer.text or ""):
            yield step({"content": piece}, [piece])
        for piece in pieces_of(answer.refusal or ""):
            yield step({"refusal": piece})
        for call in calls:
            yield step({"tool_calls": [call]})
        yield step({}, finish=answer.finish)

    def _calls_in_pieces(self) -> Iterator[Json]:
        for index, (name, arguments) in enumerate(self.answer.calls):
            function = {"name": name, "arguments": ""}
            yield {"index": index, "id": self._call_id(index), "type": "function", "function": function}
            for start in range(0, len(arguments), 5):
                yield {"index": index, "function": {"arguments": arguments[start : start + 5]}}

    def _message(self) -> Json:
        answer = self.answer
        message: Json = {"role": "assistant", "content": answer.text, "refusal": answer.refusal, "annotations": []}
        if answer.reasoning:
            message["reasoning_content"] = answer.reasoning
        if answer.calls:
            message["tool_calls"] = [
                {"id": self._call_id(index), "type": "function", "function": {"name": name, "arguments": arguments}}
                for index, (name, arguments) in enumerate(answer.calls)
            ]
        return message

    def _call_id(self, index: int) -> str:
        return f"call_{self.id[-5:]}{index}"

    def _logprobs(self, spoken: list[str]) -> Json | None:
        if not self.asked.get("logprobs"):
            return None
        others = int(self.asked.get("top_logprobs") or 0)
        return {"content": [_logprob(piece, others) for piece in spoken], "refusal": None}


def _logprob(token: str, others: int) -> Json:
    chosen = {"token": token, "logprob": -0.31725305, "bytes": list(token.encode())}
    # A special token stands for no bytes.
    rest = [{"token": "<|end|>", "logprob": -10.953937 - rank, "bytes": None} for rank in range(1, others)]
    return {**chosen, "top_logprobs": [chosen, *rest] if others else []}


def pieces_of(text: str) -> list[str]:
    """A text in words, as tokens are: the space stands before the word."""
    return re.findall(r"\s?\S+|\s", text)


# -- answers that depend on what was asked


def answer_for(scenario: str, asked: Json) -> Answer:
    """What the model says in this scenario."""
    match scenario:
        case "echo":
            return Answer(last_text(asked))
        case "tools" | "parallel-tools":
            return _use_tools(asked, times=1 if scenario == "tools" else 2)
        case "json":
            schema = ((asked.get("response_format") or {}).get("json_schema") or {}).get("schema") or {}
            return Answer(json.dumps(sample(schema) if schema else {"answer": 42}))
        case "image":
            urls = [part["image_url"]["url"] for part in _parts(asked) if part["type"] == "image_url"]
            return Answer(f"I see {len(urls)} images of {sum(map(len, urls))} characters.")
        case _:
            return ANSWERS.get(scenario, Answer())


ANSWERS = {
    "refusal": Answer(None, refusal=REFUSAL),
    "length": Answer('{"answer": "forty', finish="length"),
    "filter": Answer("", finish="content_filter"),
    **dict.fromkeys(("reasoning", "vllm", "ollama", "llamacpp"), Answer(reasoning="The user greets me. I greet back.")),
}


def _parts(asked: Json) -> Iterator[Json]:
    for message in asked["messages"]:
        content = message.get("content") or ""
        yield from [{"type": "text", "text": content}] if isinstance(content, str) else content


def last_text(asked: Json) -> str:
    """The text of the last message."""
    return "".join(part.get("text", "") for part in _parts({"messages": asked["messages"][-1:]}))


def _use_tools(asked: Json, times: int) -> Answer:
    """Call the first tool that was not called yet; when all were, say what they gave."""
    messages = asked["messages"]
    called = {call["function"]["name"] for message in messages for call in message.get("tool_calls") or ()}
    for tool in asked.get("tools") or ():
        function = tool["function"]
        if function["name"] not in called:
            arguments = json.dumps(sample(function.get("parameters") or {}))
            return Answer(None, calls=((function["name"], arguments),) * times, finish="tool_calls")
    results = [last_text({"messages": [message]}) for message in messages if message["role"] == "tool"]
    return Answer(f"The tools said: {'; '.join(results)}")


def sample(schema: Json, root: Json | None = None) -> Any:
    """A value that a JSON schema allows: "Paris" for a string, 7 for a number."""
    root = schema if root is None else root
    if "$ref" in schema:
        return sample(root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root)
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return sample(choices[0], root)
    if "enum" in schema or "const" in schema:
        return schema["enum"][0] if "enum" in schema else schema["const"]
    match schema.get("type", "object"):
        case "object":
            return {name: sample(inner, root) for name, inner in schema.get("properties", {}).items()}
        case "array":
            return [sample(schema.get("items", {}), root)]
        case kind:
            return {"string": "Paris", "integer": 7, "number": 7.5, "boolean": True, "null": None}[kind]


# -- errors


def error(message: str, kind: str = "invalid_request_error", param: str | None = None, code: Any = None) -> Json:
    """An error's body."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


STATUSES = {
    400: error("Invalid value for 'temperature'.", param="temperature", code="invalid_value"),
    402: error("You have run out of credit.", "billing_error", code="insufficient_credit"),
    403: error("Your project does not have access to this model.", code="model_not_allowed"),
    404: error("The model `x` does not exist or you do not have access to it.", code="model_not_found"),
    408: error("The request timed out.", "timeout"),
    409: error("The resource is locked.", "conflict"),
    413: error("The request is too large.", code="request_too_large"),
    422: error("Unprocessable messages.", param="messages"),
    429: error("Rate limit reached for requests.", "requests", code="rate_limit_exceeded"),
    500: error("The server had an error while processing your request.", "server_error"),
    503: error("The engine is currently overloaded, please try again later.", "server_error", code="overloaded"),
}
QUOTA = error("You exceeded your current quota.", "insufficient_quota", code="insufficient_quota")
TOO_LONG = error(
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
    param="messages",
    code="context_length_exceeded",
)
VLLM_ERROR = error("This model's maximum context length is 8192 tokens.", "BadRequestError", code=400)
VLLM_OLD_ERROR = {"object": "error", "message": "bad input", "type": "BadRequestError", "param": None, "code": 400}
LLAMACPP_LOADING = {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}


def objection(asked: Any) -> Json | None:
    """What the live API finds wrong with a request, as far as it matters here."""
    if not isinstance(asked, dict):
        return error("We could not parse the JSON body of your request.")
    messages = asked.get("messages")
    if not messages:
        return error("Missing required parameter: 'messages'.", param="messages", code="missing_required_parameter")
    if asked.get("stream_options") and not asked.get("stream"):
        said = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        return error(said, param="stream_options")
    before: Json = {}
    for index, message in enumerate(messages):
        role = message.get("role")
        if role not in ROLES:
            return error(f"Invalid value: '{role}'.", param=f"messages[{index}].role", code="invalid_value")
        if role == "tool" and not (before.get("tool_calls") or before.get("role") == "tool"):
            said = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
            return error(f"Invalid parameter: {said}", param=f"messages.[{index}].role")
        before = message
    return None

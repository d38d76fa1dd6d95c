"""OpenAI's chat completions, from the vendor's side."""

import json
from collections.abc import Iterator
from typing import Any

from doubles.scripted.turns import (
    CACHED_TOKENS,
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    REASONING_TOKENS,
    Json,
    Reply,
    Request,
    Result,
    Tool,
    check_pairs,
    demand,
    pieces,
    texts_of,
)

CREATED = 1_790_000_000
ROLES = {"system", "developer", "user", "assistant", "tool"}


def read(body: Json) -> Request:
    """Read a request; refuse what the API refuses."""
    names: dict[str, str] = {}
    results: list[Result] = []
    answered: list[str] = []
    for message in body["messages"]:
        demand(message["role"] in ROLES, f"Invalid value: '{message['role']}'.")
        for call in message.get("tool_calls") or ():
            demand(isinstance(json.loads(call["function"]["arguments"]), dict), "Invalid arguments")
            names[call["id"]] = call["function"]["name"]
        if message["role"] == "tool":
            demand(message["tool_call_id"] in names, "messages with role 'tool' must follow 'tool_calls'.")
            answered.append(message["tool_call_id"])
            results.append(Result(names[message["tool_call_id"]], texts_of(message["content"])))
    check_pairs(list(names), answered)
    return Request(
        model=body["model"],
        stream=body.get("stream", False),
        system=_said(body, {"system", "developer"}),
        texts=tuple(texts_of(message["content"]) for message in body["messages"] if message["role"] == "user"),
        tools={tool.name: tool for tool in map(_tool, body.get("tools") or ())},
        results=tuple(results),
        seals=tuple(message["reasoning_content"] for message in body["messages"] if "reasoning_content" in message),
        schema=((body.get("response_format") or {}).get("json_schema") or {}).get("schema"),
    )


def _said(body: Json, roles: set[str]) -> str:
    return "\n".join(texts_of(message["content"]) for message in body["messages"] if message["role"] in roles)


def _tool(declared: Json) -> Tool:
    demand(declared["type"] == "function", f"Invalid value: '{declared['type']}'. Supported values are: 'function'.")
    function = declared["function"]
    return Tool(function["name"], function.get("parameters") or {})


def whole(reply: Reply) -> Json:
    """The answer in one piece."""
    turn = reply.turn
    message: Json = {"role": "assistant", "content": turn.text or None, "refusal": None, "annotations": []}
    if turn.reasoning:
        message["reasoning_content"] = turn.reasoning
    if turn.calls:
        message["tool_calls"] = [
            {"id": _id(reply, index), "type": "function", "function": {"name": call.name, "arguments": call.text}}
            for index, call in enumerate(turn.calls)
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(reply)}
    return {**_head(reply, "chat.completion"), "choices": [choice], "usage": usage()}


def stream(reply: Reply) -> Iterator[bytes]:
    """The answer in chunks."""
    head = _head(reply, "chat.completion.chunk")
    for delta in _deltas(reply):
        yield _data({**head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}]})
    end = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": _finish(reply)}
    yield _data({**head, "choices": [end]})
    yield _data({**head, "choices": [], "usage": usage()})
    yield b"data: [DONE]\n\n"


def _deltas(reply: Reply) -> Iterator[Json]:
    yield {"role": "assistant", "content": "", "refusal": None}
    yield from ({"reasoning_content": piece} for piece in pieces(reply.turn.reasoning))
    yield from ({"content": piece} for piece in pieces(reply.turn.text))
    for index, call in enumerate(reply.turn.calls):
        opened = {"name": call.name, "arguments": ""}
        yield {"tool_calls": [{"index": index, "id": _id(reply, index), "type": "function", "function": opened}]}
        for piece in pieces(call.text):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _head(reply: Reply, kind: str) -> Json:
    return {
        "id": f"chatcmpl-{reply.number:08}",
        "object": kind,
        "created": CREATED,
        "model": reply.request.model,
        "system_fingerprint": "fp_scripted",
    }


def _id(reply: Reply, index: int) -> str:
    return reply.call_id("call_", index)


def _finish(reply: Reply) -> str:
    return "tool_calls" if reply.turn.calls else "stop"


def usage() -> Json:
    """Tokens of every answer."""
    return {
        "prompt_tokens": INPUT_TOKENS,
        "completion_tokens": OUTPUT_TOKENS,
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        "prompt_tokens_details": {"cached_tokens": CACHED_TOKENS},
        "completion_tokens_details": {"reasoning_tokens": REASONING_TOKENS},
    }


def error(message: str, status: int) -> tuple[int, Json]:
    """An error's status and body."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return status, {"error": {"message": message, "type": kind, "param": None, "code": None}}


def _data(chunk: Any) -> bytes:
    return f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode()

"""Anthropic's Messages, from the vendor's side."""

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from doubles.scripted.turns import (
    CACHED_TOKENS,
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    Json,
    Reply,
    Request,
    Result,
    Tool,
    demand,
    pieces,
    texts_of,
)


def read(body: Json) -> Request:
    """Read a request; refuse what the API refuses."""
    demand(isinstance(body.get("max_tokens"), int), "max_tokens: Field required")
    turns = [(role, [block for turn in same for block in _blocks(turn)]) for role, same in _merge(body["messages"])]
    blocks = [block for _, blocks in turns for block in blocks]
    names = {block["id"]: block["name"] for block in blocks if block["type"] == "tool_use"}
    _check_results(turns)
    _check_thinking(turns, body.get("thinking") or {"type": "disabled"})
    results = [block for block in blocks if block["type"] == "tool_result"]
    return Request(
        model=body["model"],
        stream=body.get("stream", False),
        system="\n".join([texts_of(body.get("system")), *_said(body["messages"], "system")]),
        texts=tuple(_said(body["messages"], "user")),
        tools={tool["name"]: _tool(tool) for tool in body.get("tools") or () if "input_schema" in tool},
        results=tuple(Result(names[block["tool_use_id"]], texts_of(block.get("content"))) for block in results),
        seals=tuple(block["signature"] for block in blocks if block["type"] == "thinking"),
        schema=((body.get("output_config") or {}).get("format") or {}).get("schema"),
    )


def _merge(messages: list[Json]) -> Iterator[tuple[str, list[Json]]]:
    """Join neighbours of one role, as the API does; system messages may stand between."""
    spoken = [message for message in messages if message["role"] != "system"]
    for message in spoken:
        demand(message["role"] in {"user", "assistant"}, "messages: role: Input should be 'user' or 'assistant'")
        demand(message["content"], "messages: content must not be empty")
    return ((role, list(same)) for role, same in groupby(spoken, key=lambda message: message["role"]))


def _blocks(turn: Json) -> list[Json]:
    content = turn["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _said(messages: list[Json], role: str) -> list[str]:
    return [texts_of(message["content"]) for message in messages if message["role"] == role]


def _tool(declared: Json) -> Tool:
    demand(declared["input_schema"].get("type") == "object", "tools: input_schema.type: Field required")
    return Tool(declared["name"], declared["input_schema"])


def _check_results(turns: list[tuple[str, list[Json]]]) -> None:
    """Results stand at the head of the turn right after their calls."""
    called: list[str] = []
    for _, blocks in turns:
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        demand(sorted(results) == sorted(called), "`tool_use` ids must be answered by `tool_result` blocks, each once")
        first = [block["type"] for block in blocks[: len(results)]]
        demand(first == ["tool_result"] * len(results), "`tool_result` blocks must come first in their turn")
        called = [block["id"] for block in blocks if block["type"] == "tool_use"]
    demand(not called, "`tool_use` ids were found without `tool_result` blocks immediately after")


def _check_thinking(turns: list[tuple[str, list[Json]]], thinking: Json) -> None:
    """A thinking block has the signature that was given; one opens each turn of a loop of tools if thinking is on."""
    for role, blocks in turns:
        for block in blocks:
            if block["type"] == "thinking":
                demand(block["signature"].startswith("SEAL+"), "Invalid `signature` in `thinking` block")
        kinds = [block["type"] for block in blocks]
        if thinking["type"] == "enabled" and role == "assistant" and "tool_use" in kinds:
            demand(kinds[0] in {"thinking", "redacted_thinking"}, "Expected `thinking`, but found `tool_use`.")


def whole(reply: Reply) -> Json:
    """The answer in one piece."""
    turn, content = reply.turn, list[Json]()
    if turn.reasoning:
        content.append({"type": "thinking", "thinking": turn.reasoning, "signature": reply.seal})
    if turn.text:
        content.append({"type": "text", "text": turn.text})
    for index, call in enumerate(turn.calls):
        used = {"type": "tool_use", "id": reply.call_id("toolu_", index), "name": call.name, "input": call.arguments}
        content.append(used)
    return {
        "id": f"msg_{reply.number:08}",
        "type": "message",
        "role": "assistant",
        "model": reply.request.model,
        "content": content,
        "stop_reason": "tool_use" if turn.calls else "end_turn",
        "stop_sequence": None,
        "usage": usage(),
    }


def stream(reply: Reply) -> Iterator[bytes]:
    """The answer in events."""
    message = whole(reply)
    opening = {"content": [], "stop_reason": None, "usage": usage() | {"output_tokens": 1}}
    yield _event("message_start", message=message | opening)
    yield _event("ping")
    for index, block in enumerate(message["content"]):
        empty, deltas = _take_apart(block)
        yield _event("content_block_start", index=index, content_block=empty)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield _event("message_delta", delta=ended, usage={"output_tokens": OUTPUT_TOKENS})
    yield _event("message_stop")


def _take_apart(block: Json) -> tuple[Json, list[Json]]:
    match block["type"]:
        case "text":
            return block | {"text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
        case "thinking":
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
            sealed = {"type": "signature_delta", "signature": block["signature"]}
            return {"type": "thinking", "thinking": "", "signature": ""}, [*deltas, sealed]
        case _:
            text = json.dumps(block["input"], ensure_ascii=False)
            return block | {"input": {}}, [{"type": "input_json_delta", "partial_json": one} for one in pieces(text)]


def usage() -> Json:
    """Tokens of every answer; those read from the cache are counted apart."""
    fresh = INPUT_TOKENS - CACHED_TOKENS
    cached = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": CACHED_TOKENS}
    return {"input_tokens": fresh, **cached, "output_tokens": OUTPUT_TOKENS, "service_tier": "standard"}


def error(message: str, status: int) -> tuple[int, Json]:
    """An error's status and body; the API has a status of its own for overload."""
    known = {401: (401, "authentication_error"), 503: (529, "overloaded_error")}
    status, kind = known.get(status, (400, "invalid_request_error"))
    return status, {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_scripted"}


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields}, ensure_ascii=False)}\n\n".encode()

"""OpenAI's Responses, from the vendor's side: stateless."""

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

from doubles.scripted.turns import (
    CACHED_TOKENS,
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    REASONING_TOKENS,
    Call,
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
CALLS, RESULTS = {"function_call", "custom_tool_call"}, {"function_call_output", "custom_tool_call_output"}


def read(body: Json) -> Request:
    """Read a request; refuse what the API refuses."""
    given = body["input"]
    items = [{"type": "message", "role": "user", "content": given}] if isinstance(given, str) else given
    items = [{"type": "message", **item} for item in items]
    demand("previous_response_id" not in body, "Previous response not found.")
    names = {item["call_id"]: item["name"] for item in items if item["type"] in CALLS}
    results = [item for item in items if item["type"] in RESULTS]
    check_pairs([item["call_id"] for item in items if item["type"] in CALLS], [item["call_id"] for item in results])
    seals = [item["encrypted_content"] for item in items if item["type"] == "reasoning"]
    demand(all(seal.startswith("SEAL+") for seal in seals), "The encrypted content could not be verified.")
    added = [tool for item in items if item["type"] == "additional_tools" for tool in item["tools"]]
    return Request(
        model=body["model"],
        stream=body.get("stream", False),
        system="\n".join([body.get("instructions") or "", *_said(items, {"system", "developer"})]),
        texts=tuple(_said(items, {"user"})),
        tools={tool.name: tool for tool in _tools([*(body.get("tools") or ()), *added])},
        results=tuple(Result(names[item["call_id"]], texts_of(item["output"])) for item in results),
        seals=tuple(seals),
        schema=((body.get("text") or {}).get("format") or {}).get("schema"),
    )


def _said(items: list[Json], roles: set[str]) -> list[str]:
    return [texts_of(item["content"]) for item in items if item["type"] == "message" and item["role"] in roles]


def _tools(declared: list[Json], namespace: str | None = None) -> Iterator[Tool]:
    for tool in declared:
        match tool["type"]:
            case "namespace":
                yield from _tools(tool["tools"], tool["name"])
            case "function":
                yield Tool(tool["name"], tool.get("parameters") or {}, namespace=namespace)
            case "custom":
                yield Tool(tool["name"], is_custom=True, namespace=namespace)


def whole(reply: Reply) -> Json:
    """The answer in one piece."""
    return _response(reply, "completed", list(_items(reply)))


def _response(reply: Reply, status: str, output: list[Json]) -> Json:
    return {
        "id": f"resp_{reply.number:08}",
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "model": reply.request.model,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "store": False,
        "usage": usage() if status == "completed" else None,
    }


def _items(reply: Reply) -> Iterator[Json]:
    if reply.turn.reasoning:
        summary = [{"type": "summary_text", "text": reply.turn.reasoning}]
        yield {"id": f"rs_{reply.number:08}", "type": "reasoning", "summary": summary, "encrypted_content": reply.seal}
    if reply.turn.text:
        part = {"type": "output_text", "text": reply.turn.text, "annotations": [], "logprobs": []}
        head = {"id": f"msg_{reply.number:08}", "type": "message", "role": "assistant", "status": "completed"}
        yield {**head, "content": [part]}
    for index, call in enumerate(reply.turn.calls):
        yield _call(reply, index, call)


def _call(reply: Reply, index: int, call: Call) -> Json:
    tool = reply.request.tools[call.name]
    kind, prefix, field = (
        ("custom_tool_call", "ctc_", "input") if tool.is_custom else ("function_call", "fc_", "arguments")
    )
    head = {"id": reply.call_id(prefix, index), "type": kind, "status": "completed"}
    scope = {"namespace": tool.namespace} if tool.namespace else {}
    return {**head, "call_id": reply.call_id("call_", index), "name": call.name, **scope, field: call.text}


def stream(reply: Reply) -> Iterator[bytes]:
    """The answer in events."""
    numbers = count()

    def event(kind: str, **fields: Any) -> bytes:
        data = {"type": kind, "sequence_number": next(numbers), **fields}
        return f"event: {kind}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()

    opened, items = _response(reply, "in_progress", []), list(_items(reply))
    yield event("response.created", response=opened)
    yield event("response.in_progress", response=opened)
    for index, item in enumerate(items):
        yield event("response.output_item.added", output_index=index, item=_empty(item))
        for kind, fields in _inner(item):
            yield event(kind, item_id=item["id"], output_index=index, **fields)
        yield event("response.output_item.done", output_index=index, item=item)
    yield event("response.completed", response=_response(reply, "completed", items))


def _empty(item: Json) -> Json:
    emptied = {"content": [], "arguments": "", "input": "", "summary": [], "encrypted_content": ""}
    known = {name: value for name, value in emptied.items() if name in item}
    return item | known | ({"status": "in_progress"} if "status" in item else {})


def _inner(item: Json) -> Iterator[tuple[str, Json]]:
    match item["type"]:
        case "reasoning":
            yield from _spell("response.reasoning_summary", item["summary"][0], {"summary_index": 0})
        case "message":
            yield from _spell_text(item["content"][0])
        case "function_call":
            yield from _spell_call("response.function_call_arguments", "arguments", item)
        case _:
            yield from _spell_call("response.custom_tool_call_input", "input", item)


def _spell(prefix: str, part: Json, place: Json) -> Iterator[tuple[str, Json]]:
    yield f"{prefix}_part.added", {**place, "part": part | {"text": ""}}
    for piece in pieces(part["text"]):
        yield f"{prefix}_text.delta", {**place, "delta": piece}
    yield f"{prefix}_text.done", {**place, "text": part["text"]}
    yield f"{prefix}_part.done", {**place, "part": part}


def _spell_text(part: Json) -> Iterator[tuple[str, Json]]:
    place: Json = {"content_index": 0}
    yield "response.content_part.added", {**place, "part": part | {"text": ""}}
    for piece in pieces(part["text"]):
        yield "response.output_text.delta", {**place, "delta": piece, "logprobs": []}
    yield "response.output_text.done", {**place, "text": part["text"], "logprobs": []}
    yield "response.content_part.done", {**place, "part": part}


def _spell_call(prefix: str, field: str, item: Json) -> Iterator[tuple[str, Json]]:
    for piece in pieces(item[field]):
        yield f"{prefix}.delta", {"delta": piece}
    yield f"{prefix}.done", {field: item[field]}


def usage() -> Json:
    """Tokens of every answer."""
    return {
        "input_tokens": INPUT_TOKENS,
        "input_tokens_details": {"cached_tokens": CACHED_TOKENS, "cache_write_tokens": 0},
        "output_tokens": OUTPUT_TOKENS,
        "output_tokens_details": {"reasoning_tokens": REASONING_TOKENS},
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
    }


def error(message: str, status: int) -> tuple[int, Json]:
    """An error's status and body."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return status, {"error": {"message": message, "type": kind, "param": None, "code": None}}

"""Reads the replies of the doors as strict clients do, with code that knows nothing of the gateway's."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from doors.neutral import Call, Heard, Json, read_arguments

FINISHES = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}
DELTAS = {
    "response.output_text.delta": "text",
    "response.reasoning_summary_text.delta": "thought",
    "response.function_call_arguments.delta": "arguments",
}
INCOMPLETE = {"max_output_tokens": "length", "content_filter": "content_filter"}


class Unfinished(Exception):
    """The client knows that the answer is not whole."""


def split(stream: bytes) -> Iterator[tuple[str, str]]:
    """Yield the names and the data of events; what is not followed by a blank line is no event."""
    text = stream.decode().replace("\r\n", "\n")
    *events, _rest = text.split("\n\n")
    for event in events:
        lines = [line.split(": ", 1) for line in event.split("\n") if line and not line.startswith(":")]
        fields = dict(lines)
        if "data" in fields:
            assert len(fields) == len(lines), f"a field twice: {event}"
            yield fields.get("event", ""), fields["data"]


# -- chat completions


def read_chat(stream: bytes) -> Heard:
    """Read chunks."""
    texts: dict[str, str] = {"content": "", "reasoning_content": ""}
    calls: list[Json] = []
    finish, usage, pieces = None, dict[str, int](), 0
    for _, data in split(stream):
        if data == "[DONE]":
            break
        chunk = json.loads(data)
        if "error" in chunk:
            raise Unfinished(chunk["error"]["message"])
        usage = chunk.get("usage") or usage
        for choice in chunk["choices"]:
            assert finish is None, "something follows the end of the choice"
            delta = choice["delta"]
            for name in texts:
                texts[name] += delta.get(name) or ""
            pieces += bool(delta.get("content"))
            _add_calls(calls, delta.get("tool_calls") or ())
            finish = choice["finish_reason"]
    if finish is None:
        raise Unfinished("no finish reason")
    return Heard(
        text=texts["content"],
        reasoning=texts["reasoning_content"],
        calls=tuple(Call(call["id"], call["name"], read_arguments(call["arguments"])) for call in calls),
        finish=finish,
        input_tokens=usage.get("prompt_tokens", 0),
        output_tokens=usage.get("completion_tokens", 0),
        pieces=pieces,
    )


def _add_calls(calls: list[Json], deltas: Any) -> None:
    for delta in deltas:
        function = delta.get("function") or {}
        if delta["index"] == len(calls):
            assert delta["type"] == "function"
            calls.append({"id": delta["id"], "name": function["name"], "arguments": ""})
        calls[delta["index"]]["arguments"] += function.get("arguments") or ""


def read_whole_chat(body: bytes) -> Heard:
    """Read a completion."""
    completion = json.loads(body)
    (choice,) = completion["choices"]
    message = choice["message"]
    calls: list[Json] = []
    for index, call in enumerate(message.get("tool_calls") or ()):
        _add_calls(calls, [{"index": index, **call}])
    return Heard(
        text=message.get("content") or "",
        reasoning=message.get("reasoning_content") or "",
        calls=tuple(Call(call["id"], call["name"], read_arguments(call["arguments"])) for call in calls),
        finish=choice["finish_reason"],
        input_tokens=completion["usage"]["prompt_tokens"],
        output_tokens=completion["usage"]["completion_tokens"],
    )


# -- Messages


class _Blocks:
    """The blocks of a message while they come."""

    def __init__(self) -> None:
        self.done: list[Json] = []
        self._open: Json | None = None

    def start(self, index: int, block: Json) -> None:
        assert self._open is None, "a block within a block"
        assert index == len(self.done)
        self._open = {"text": "", "thinking": "", "signature": "", "partial_json": ""} | block
        self._whole = block.get("input") or None

    def add(self, index: int, delta: Json) -> None:
        assert self._open is not None
        assert index == len(self.done)
        kinds = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "thinking"}
        assert kinds.get(delta["type"], "tool_use") == self._open["type"], "a delta of another kind than its block"
        for name, text in delta.items():
            self._open[name] = self._open.get(name, "") + text if name != "type" else self._open["type"]

    def stop(self, index: int) -> None:
        assert self._open is not None
        assert index == len(self.done)
        if self._open["type"] == "tool_use":
            given = self._open["partial_json"]
            self._open["input"] = read_arguments(given) if given else self._open["input"]
        self.done.append(self._open)
        self._open = None


class _Message:
    """A message while it comes."""

    def __init__(self) -> None:
        self.blocks = _Blocks()
        self.head: Json = {}
        self.usage: Json = {}
        self.pieces = 0
        self.ended = False

    def take(self, event: Json) -> None:
        assert not self.ended, "something follows the end"
        match event["type"]:
            case "error":
                raise Unfinished(event["error"]["message"])
            case "message_start":
                assert not self.head, "two beginnings"
                self.head = dict(event["message"])
                assert self.head["content"] == []
                self.usage |= self.head["usage"]
            case "message_delta":
                self.head |= event["delta"]
                self.usage |= event["usage"]
            case "message_stop":
                self.ended = True
            case other:
                self._take_block(other, event)

    def _take_block(self, kind: str, event: Json) -> None:
        match kind:
            case "content_block_start":
                self.blocks.start(event["index"], event["content_block"])
            case "content_block_delta":
                self.pieces += event["delta"]["type"] == "text_delta"
                self.blocks.add(event["index"], event["delta"])
            case "content_block_stop":
                self.blocks.stop(event["index"])
            case _:
                assert kind == "ping", kind


def read_messages(stream: bytes) -> Heard:
    """Read events, as strictly as the API orders them."""
    message = _Message()
    for name, data in split(stream):
        event = json.loads(data)
        assert name == event["type"], "the SDK drops events without their name"
        message.take(event)
    if not message.ended:
        raise Unfinished("no message_stop")
    return _understand_message(message.head | {"content": message.blocks.done, "usage": message.usage}, message.pieces)


def read_whole_message(body: bytes) -> Heard:
    """Read a message."""
    return _understand_message(json.loads(body))


def _understand_message(message: Json, pieces: int = 0) -> Heard:
    blocks, usage = message["content"], message["usage"]
    assert message["id"]
    assert all(block["text"] for block in blocks if block["type"] == "text"), "an empty text block"
    counts = [usage.get(f"{name}input_tokens") or 0 for name in ("", "cache_creation_", "cache_read_")]
    return Heard(
        text="".join(block["text"] for block in blocks if block["type"] == "text"),
        reasoning="".join(block["thinking"] for block in blocks if block["type"] == "thinking"),
        calls=tuple(
            Call(block["id"], block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"
        ),
        finish=FINISHES[message["stop_reason"]],
        input_tokens=sum(counts),
        output_tokens=usage["output_tokens"],
        pieces=pieces,
    )


# -- Responses


class _Response:
    """A response while it comes."""

    def __init__(self) -> None:
        self.items: dict[int, Json] = {}
        self.done: list[Json] = []
        self.ids: set[str] = set()
        self.pieces = 0
        self.last: Json | None = None

    def take(self, event: Json) -> None:
        assert self.last is None, "something follows the end"
        if "response" in event:
            self.ids.add(event["response"]["id"])
            assert len(self.ids) == 1, "the id changes"
        match event["type"]:
            case "error" | "response.failed":
                raise Unfinished(str(event))
            case "response.output_item.added":
                assert event["output_index"] == len(self.items)
                self.items[len(self.items)] = {"item": event["item"], "text": "", "thought": "", "arguments": ""}
            case "response.output_item.done":
                _check_item(self.items[event["output_index"]], event["item"])
                self.done.append(event["item"])
            case "response.completed" | "response.incomplete":
                self.last = event["response"]
            case kind if kind in DELTAS:
                self.pieces += kind == "response.output_text.delta"
                self.items[event["output_index"]][DELTAS[kind]] += event["delta"]
            case _:
                pass


def read_responses(stream: bytes) -> Heard:
    """Read events, and check that deltas, items and the final response agree."""
    response = _Response()
    for number, (name, data) in enumerate(split(stream)):
        event = json.loads(data)
        response.take(event)
        assert (name, number) == (event["type"], event["sequence_number"])
    if response.last is None:
        raise Unfinished("no response.completed")
    assert response.last["output"] == response.done
    return _understand_response(response.last, response.pieces)


def _check_item(told: Json, item: Json) -> None:
    assert told["item"]["id"] == item["id"]
    match item["type"]:
        case "message":
            assert "".join(part["text"] for part in item["content"]) == told["text"]
        case "reasoning":
            assert "".join(part["text"] for part in item["summary"]) == told["thought"]
        case "function_call":
            assert item["arguments"] == told["arguments"]
        case other:
            raise AssertionError(other)


def read_whole_response(body: bytes) -> Heard:
    """Read a response."""
    response = json.loads(body)
    if response["status"] not in ("completed", "incomplete"):
        raise Unfinished(response["status"])
    return _understand_response(response)


def _understand_response(response: Json, pieces: int = 0) -> Heard:
    items = response["output"]
    calls = [item for item in items if item["type"] == "function_call"]
    cut = response.get("incomplete_details")
    usage = response.get("usage") or {"input_tokens": 0, "output_tokens": 0}
    return Heard(
        text="".join(part["text"] for item in items if item["type"] == "message" for part in item["content"]),
        reasoning="".join(part["text"] for item in items if item["type"] == "reasoning" for part in item["summary"]),
        calls=tuple(Call(call["call_id"], call["name"], read_arguments(call["arguments"])) for call in calls),
        finish=INCOMPLETE[cut["reason"]] if cut else "tool_calls" if calls else "stop",
        input_tokens=usage["input_tokens"],
        output_tokens=usage["output_tokens"],
        pieces=pieces,
    )


STREAMS: Mapping[str, Callable[[bytes], Heard]] = {
    "chat": read_chat,
    "messages": read_messages,
    "responses": read_responses,
}
WHOLES: Mapping[str, Callable[[bytes], Heard]] = {
    "chat": read_whole_chat,
    "messages": read_whole_message,
    "responses": read_whole_response,
}
"""By door."""

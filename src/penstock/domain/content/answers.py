"""Read the content of an answer as its caller got it: a whole body, or the events of a stream that may be cut."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any, Final, TypeAlias, cast

import msgspec

from penstock.domain.chat import Dialect
from penstock.domain.content.messages import Message, file_part, read_message, read_messages, text_part

Json: TypeAlias = dict[str, Any]

MAX_PLACES: Final = 1_000
"""Choices, calls or items of one answer that are put together."""


def read_answer(dialect: Dialect, body: bytes, *, is_stream: bool) -> list[Message]:
    """Return the messages of an answer."""
    if not body:
        return []
    match dialect:
        case Dialect.EMBEDDINGS:
            return []
        case Dialect.SPEECH:
            return [Message("assistant", [file_part({"kind": "audio", **_digest(body)})])]
        case Dialect.TRANSCRIPTIONS:
            return _read_transcript(body, is_stream=is_stream)
        case _:
            return _FOLDS[dialect](body) if is_stream else _read_whole(dialect, body)


def _read_whole(dialect: Dialect, body: bytes) -> list[Message]:
    found = _decode(body)
    if dialect is Dialect.CHAT:
        choices = [_as_object(choice) for choice in _as_list(found.get("choices"))]
        return [_end(read_message(choice.get("message"), "assistant"), choice) for choice in choices]
    if dialect is Dialect.MESSAGES:
        return [_end(read_message(found, "assistant"), found)]
    return read_messages(_as_list(found.get("output")), "assistant")


def _end(message: Message, given: Json) -> Message:
    reason = given.get("finish_reason", given.get("stop_reason"))
    return Message(message.role, message.parts, reason[:64] if isinstance(reason, str) else None)


def _fold_chat(body: bytes) -> list[Message]:
    """Put the chunks of OpenAI's dialect together."""
    choices: dict[int, Json] = {}
    for event in _events(body):
        for found in _as_list(event.get("choices")):
            chunk = _as_object(found)
            choice = _place(choices, chunk.get("index"))
            if choice is not None:
                _add_delta(choice, _as_object(chunk.get("delta")))
                choice["finish_reason"] = chunk.get("finish_reason") or choice.get("finish_reason")
    found = [{**choice, "tool_calls": list(choice.get("calls", {}).values())} for choice in _joined(choices)]
    return [_end(read_message(choice, "assistant"), choice) for choice in found]


def _add_delta(choice: Json, delta: Json) -> None:
    choice.setdefault("role", delta.get("role") or "assistant")
    for name in ("content", "reasoning_content", "reasoning", "refusal"):
        if isinstance(delta.get(name), str):
            _append(choice, name, delta[name])
    for found in _as_list(delta.get("tool_calls")):
        piece = _as_object(found)
        call = _place(choice.setdefault("calls", {}), piece.get("index"))
        if call is not None:
            call["id"] = piece.get("id") or call.get("id")
            _add_function(call.setdefault("function", {}), _as_object(piece.get("function")))
    if legacy := _as_object(delta.get("function_call")):
        _add_function(choice.setdefault("function_call", {}), legacy)


def _add_function(function: Json, piece: Json) -> None:
    for name in ("name", "arguments"):
        if isinstance(piece.get(name), str):
            _append(function, name, piece[name])


def _fold_messages(body: bytes) -> list[Message]:
    """Put the events of Anthropic's dialect together."""
    blocks: dict[int, Json] = {}
    ending: Json = {}
    for event in _events(body):
        match event:
            case {"type": "content_block_start", "content_block": {**block}}:
                if (place := _place(blocks, event.get("index"))) is not None:
                    place.update(block)
            case {"type": "content_block_delta", "delta": {**delta}}:
                if (place := _place(blocks, event.get("index"))) is not None:
                    _add_block_delta(place, delta)
            case {"type": "message_delta", "delta": {**delta}}:
                ending = delta
            case _:
                pass
    content = [{**block, "input": block.get("partial_json", block.get("input"))} for block in _joined(blocks)]
    return [_end(read_message({"role": "assistant", "content": content}), ending)] if content else []


def _add_block_delta(block: Json, delta: Json) -> None:
    for name in ("text", "thinking", "partial_json"):
        if isinstance(delta.get(name), str):
            _append(block, name, delta[name])


def _fold_responses(body: bytes) -> list[Message]:
    """Put the events of the Responses dialect together. The last one has everything, unless the stream was cut."""
    items: dict[int, Json] = {}
    for event in _events(body):
        kind = event.get("type")
        output = _as_object(event.get("response")).get("output")
        if kind in ("response.completed", "response.incomplete", "response.failed") and output:
            return read_messages(_as_list(output), "assistant")
        place = _place(items, event.get("output_index")) if "output_index" in event else None
        if place is not None:
            _add_item_event(place, event)
    return read_messages([_close_item(item) for item in _joined(items)], "assistant")


def _add_item_event(item: Json, event: Json) -> None:
    kind, delta = event.get("type"), event.get("delta")
    if kind in ("response.output_item.added", "response.output_item.done"):
        item.clear()
        item.update(_as_object(event.get("item")))
    elif isinstance(kind, str) and kind.endswith(".delta") and isinstance(delta, str):
        _append(item, _PIECES.get(kind, "text"), delta)


_PIECES: Final = {
    "response.function_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
    "response.mcp_call_arguments.delta": "arguments",
}
"""The field of an item that a piece belongs to. Others are texts."""


def _close_item(item: Json) -> Json:
    """Return an item that was cut off, with the text that came."""
    text = item.pop("text", None)
    return item if text is None else {**item, "content": [{"type": "text", "text": text}]}


def _read_transcript(body: bytes, *, is_stream: bool) -> list[Message]:
    text = ""
    if is_stream:
        for event in _events(body):
            if event.get("type") == "transcript.text.done" and isinstance(event.get("text"), str):
                text = event["text"]
                break
            text += str(event.get("delta") or "")
    else:
        found = _decode(body)
        text = found["text"] if isinstance(found.get("text"), str) else body.decode("utf-8", "replace")
    return [Message("assistant", [text_part(text)])] if text else []


_FOLDS: Final = {
    Dialect.CHAT: _fold_chat,
    Dialect.MESSAGES: _fold_messages,
    Dialect.RESPONSES: _fold_responses,
}


def _events(body: bytes) -> Iterator[Json]:
    """Yield the data of the events in a stream that we have written ourselves."""
    for line in body.replace(b"\r", b"\n").split(b"\n"):
        if line.startswith(b"data:") and (found := _decode(line[5:].strip())):
            yield found


def _place(places: dict[int, Json], index: Any) -> Json | None:
    """Return what belongs to this index; None if there are too many."""
    index = index if isinstance(index, int) else 0
    return None if len(places) >= MAX_PLACES and index not in places else places.setdefault(index, {})


class _Pieces(list[str]):
    """A text that comes in pieces, joined once at the end."""


def _append(target: Json, name: str, piece: str) -> None:
    before = target.get(name)
    if isinstance(before, _Pieces):
        before.append(piece)
    else:
        target[name] = _Pieces([before, piece] if isinstance(before, str) else [piece])


def _join(value: Any) -> Any:
    """Return an object with its texts joined."""
    if isinstance(value, _Pieces):
        return "".join(value)
    if isinstance(value, dict):
        return {name: _join(item) for name, item in cast("Json", value).items()}
    return value


def _joined(places: dict[int, Json]) -> list[Json]:
    """Return what was put together, in the order of the places."""
    return [_join(place) for _, place in sorted(places.items())]


def _decode(data: bytes) -> Json:
    try:
        return _as_object(msgspec.json.decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return _as_object(json.loads(data))
    except (ValueError, RecursionError):
        return {}


def _as_object(value: Any) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}


def _as_list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _digest(data: bytes) -> Json:
    return {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}

"""Translates replies of OpenAI's Responses into parts, for callers of another dialect."""

from collections.abc import Iterator
from typing import Any, TypeAlias, cast

from penstock.domain.chat import (
    Arguments,
    End,
    Finish,
    Opening,
    Part,
    Reasoning,
    RefusalText,
    Seal,
    Text,
    ToolCall,
    Used,
)
from penstock.vendor_api import seals
from penstock.vendor_api.dialects.responses_events import COMPLETE, FAILED, read_failure, read_reason, read_usage
from penstock.vendor_api.dialects.responses_request import SEAL_NAME
from penstock.vendor_api.lenient_json import read_json, write_json

_Json: TypeAlias = dict[str, Any]

_TEXTS: dict[str, type[Text] | type[Reasoning] | type[RefusalText]] = {
    "response.output_text.delta": Text,
    "response.refusal.delta": RefusalText,
    "response.reasoning_summary_text.delta": Reasoning,
    "response.reasoning_text.delta": Reasoning,
}
"""Events of pieces of text."""
_BREAK = "\n\n"
"""The text between two parts of a summary."""


class ResponsesTranslation:
    """Implements `Translator`.

    One call at a time is passed on as it comes. Another that begins meanwhile waits for its end: vendors may mix them.
    """

    __slots__ = ("_calls", "_done", "_open", "_seen", "_waiting")

    def __init__(self) -> None:
        self._seen: set[Any] = set()
        """Places of items of which pieces were passed on."""
        self._done: set[Any] = set()
        """Places of items that have ended."""
        self._open: Any = None
        """The place of the call that is passed on."""
        self._waiting: list[tuple[Any, _Json]] = []
        """Calls that ended while another was open."""
        self._calls = 0

    def event(self, name: str, data: bytes) -> Iterator[Part]:
        """Yield the parts of one event."""
        if data.startswith(b"[DONE]"):
            return
        record = _decode(data)
        kind = str(record.get("type") or name)
        if kind in _TEXTS:
            yield from self._read_text(kind, record)
        elif kind in COMPLETE:
            yield from self._end(_object(record.get("response")))
        elif kind in FAILED:
            yield read_failure(record)
        else:
            yield from self._read_item_event(kind, record)

    def whole(self, body: bytes) -> Iterator[Part]:
        """Yield the parts of a response that was not streamed."""
        response = _decode(body)
        if response.get("status") in ("failed", "cancelled") or "output" not in response:
            yield read_failure(response)
            return
        yield _open_reply(response)
        yield from self._end(response)

    def _read_text(self, kind: str, record: _Json) -> Iterator[Part]:
        text = record.get("delta")
        if not isinstance(text, str):
            raise ValueError("a piece without a text")
        self._seen.add(_place(record))
        if text:
            yield _TEXTS[kind](text)

    def _read_item_event(self, kind: str, record: _Json) -> Iterator[Part]:
        match kind:
            case "response.created":
                yield _open_reply(_object(record.get("response")))
            case "response.output_item.added":
                yield from self._begin_call(_place(record), _object(record.get("item")))
            case "response.function_call_arguments.delta":
                yield from self._continue_call(_place(record), record.get("delta"))
            case "response.reasoning_summary_part.added" if record.get("summary_index"):
                yield Reasoning(_BREAK)
            case "response.output_item.done":
                yield from self._end_item(_place(record), _object(record.get("item")))
            case str() if kind.startswith("response.") or kind == "keepalive":
                pass  # what other events complete, and future events
            case _:
                raise ValueError("unexpected shape of an event")

    # -- calls

    def _begin_call(self, place: Any, item: _Json) -> Iterator[Part]:
        match item:
            case {"type": "function_call", "call_id": str(call_id), "name": str(name)} if self._open is None and name:
                self._open = place
                self._calls += 1
                yield ToolCall(call_id, name)
                if item.get("arguments"):
                    yield from self._continue_call(place, item["arguments"])
            case _:
                pass  # passed on at its end

    def _continue_call(self, place: Any, json: Any) -> Iterator[Part]:
        if place == self._open and isinstance(json, str) and json:
            self._seen.add(place)
            yield Arguments(json)

    def _end_call(self, place: Any, item: _Json) -> Iterator[Part]:
        if self._open is not None and self._open != place:
            self._waiting.append((place, item))
            return
        if self._open is None:
            self._calls += 1
            yield ToolCall(str(item.get("call_id") or item.get("id") or f"call_{self._calls}"), str(item["name"]))
        if place not in self._seen:  # arguments that come only at the end
            yield Arguments(_read_arguments(item))
        self._open = None
        waiting, self._waiting = self._waiting, []
        for other in waiting:
            yield from self._end_call(*other)

    # -- ends

    def _end_item(self, place: Any, item: _Json) -> Iterator[Part]:
        """Yield what an item holds beyond the pieces that were passed on."""
        self._done.add(place)
        match item.get("type"):
            case "message" if place not in self._seen:
                yield from _read_message(item)
            case "reasoning":
                yield from self._read_reasoning(place, item)
            case "function_call" | "custom_tool_call":
                yield from self._end_call(place, item)
            case _:
                pass  # a tool of the vendor's own

    def _read_reasoning(self, place: Any, item: _Json) -> Iterator[Part]:
        if place not in self._seen:
            texts = [str(piece.get("text") or "") for piece in _objects(item.get("summary") or item.get("content"))]
            if any(texts):
                yield Reasoning(_BREAK.join(texts))
        if item.get("encrypted_content"):
            kept = {name: item[name] for name in ("id", "summary", "encrypted_content") if item.get(name)}
            yield Seal(seals.seal(SEAL_NAME, [kept]))

    def _end(self, response: _Json) -> Iterator[Part]:
        """Yield the items that had no event of their end, the usage and the end."""
        for index, item in enumerate(_objects(response.get("output"))):
            place = self._find_place(index, item)
            if place not in self._done:
                yield from self._end_item(place, item)
        if usage := read_usage(response):
            yield Used(usage)
        yield Finish(read_reason(response, has_calls=self._calls > 0))
        yield End()

    def _find_place(self, index: int, item: _Json) -> Any:
        """Return the place that events had for an item of the whole response: some vendors leave the index out."""
        known = self._done | self._seen | {self._open}
        item_id = item.get("id")
        return item_id if isinstance(item_id, str) and item_id in known else index


def _place(record: _Json) -> Any:
    """Return the place of the item that an event belongs to."""
    index = record.get("output_index")
    return index if isinstance(index, int) else record.get("item_id") or _object(record.get("item")).get("id")


def _open_reply(response: _Json) -> Opening:
    return Opening(str(response.get("id") or ""), str(response.get("model") or ""))


def _read_arguments(item: _Json) -> str:
    if item.get("type") == "custom_tool_call":
        return write_json({"input": str(item.get("input") or "")}).decode()
    return str(item.get("arguments") or "{}")


def _read_message(item: _Json) -> Iterator[Part]:
    for piece in _objects(item.get("content")):
        match piece:
            case {"type": "output_text", "text": str(text)} if text:
                yield Text(text)
            case {"type": "refusal", "refusal": str(text)} if text:
                yield RefusalText(text)
            case _:
                pass


def _decode(data: bytes) -> _Json:
    record = read_json(data)
    if not isinstance(record, dict):
        raise ValueError("Expected an object")
    return cast("_Json", record)


def _object(value: Any) -> _Json:
    return cast("_Json", value) if isinstance(value, dict) else {}


def _objects(value: Any) -> list[_Json]:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("_Json", item) for item in items if isinstance(item, dict)]

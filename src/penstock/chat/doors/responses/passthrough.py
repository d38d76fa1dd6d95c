"""Replies of vendors that speak Responses: bytes pass unchanged, while usage and the end are read from them."""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias, cast

import msgspec

from penstock.chat.doors.responses.errors import describe_failure
from penstock.chat.doors.responses.response import ResponseHead
from penstock.chat.doors.responses.writer import write_event
from penstock.chat.replies.broken import MAX_SKIPPED, Broken, Malformed
from penstock.chat.replies.whole_events import EVENT, WholeEvents
from penstock.domain.chat import Ask, Usage
from penstock.errors import PenstockError
from penstock.vendor_api.dialects.responses_events import COMPLETE, FAILED, read_failure, read_reason, read_usage
from penstock.vendor_api.lenient_json import read_json

Json: TypeAlias = dict[str, Any]

_TEXT: Final = b"event: response.output_text.delta\ndata: {"
_ERROR: Final = b"event: error"
_DELTA: Final = b'"delta":"'
_DATA: Final = re.compile(rb"(?:^|[\r\n])data: ?([^\r\n]*)")


class _Event(msgspec.Struct):
    """The fields of an event that are read."""

    type: str
    delta: Any = None
    sequence_number: Any = None


_event = msgspec.json.Decoder(_Event)


class PassedResponse:
    """A stream of response events; implements `Stream`."""

    __slots__ = (
        "_head",
        "_held",
        "_last",
        "_response_id",
        "broken",
        "characters",
        "comments",
        "ended",
        "finished",
        "malformed",
        "usage",
    )

    def __init__(self, ask: Ask, reply_id: str, created: int) -> None:
        self._head = ResponseHead(ask, reply_id, created)
        self._held = WholeEvents()
        self._last = b""
        self._response_id: str | None = None
        self.usage: Usage | None = None
        self.characters = 0
        self.comments = 0
        self.malformed = 0
        self.ended = False
        self.finished: dict[int, str] = {}
        self.broken: Broken | Malformed | None = None

    @property
    def complete(self) -> bool:
        """Return whether the vendor has ended the response."""
        return self.ended

    @property
    def quick(self) -> Callable[[bytes], bytes | None] | None:
        """Return a fast `feed` for whole events of plain text."""
        return self._pass_text if self._last and not self._held and not self.ended else None

    def _pass_text(self, data: bytes) -> bytes | None:
        if not data.startswith(_TEXT) or not data.endswith(b"}\n\n") or b"\\" in data or not data.isascii():
            return None
        events = data.split(b"\n\n")
        characters = 0
        for event in events[:-1]:
            start = event.find(_DELTA) + len(_DELTA)
            end = event.find(b'"', start)
            if start < len(_TEXT) or end < 0 or not event.startswith(_TEXT):
                return None
            characters += end - start
        self.characters += characters
        self._last = events[-2]
        return data

    def feed(self, data: bytes) -> bytes:
        """Take bytes of the vendor and return the whole events in them."""
        whole = self._held.release(data)
        return self._take_all(whole) if whole else b""

    def _take_all(self, data: bytes) -> bytes:
        """Read whole events, and return the bytes of those that pass."""
        passed: list[bytes] = []
        for found in EVENT.finditer(data):
            event = found[0]
            if (self._last and self._pass_text(event) is not None) or self._take(event):
                passed.append(event)
            if self.ended or self.broken is not None:
                break
        return b"".join(passed)

    def _take(self, event: bytes) -> bool:
        """Read one event; return whether it passes: not if it is an error, or no JSON."""
        payload = b"\n".join(_DATA.findall(event))
        if not payload:
            self.comments += event.lstrip()[:1] == b":"
            return True
        try:
            read = _event.decode(payload)
        except (ValueError, RecursionError):
            return self._take_odd(event, payload)
        if isinstance(read.delta, str):
            self.characters += len(read.delta)
        self._last = event
        kind = "error" if event.startswith(_ERROR) else read.type
        if kind in COMPLETE or kind in FAILED or kind == "response.created":
            return self._take_state(kind, event, payload)
        return True

    def _take_state(self, kind: str, event: bytes, payload: bytes) -> bool:
        record = _read_object(payload)
        if kind in FAILED:
            self.broken = Broken(read_failure(record), event)
            return False
        response = cast("Json", record.get("response") if isinstance(record.get("response"), dict) else {})
        found = response.get("id")
        self._response_id = found if isinstance(found, str) else self._response_id
        if kind in COMPLETE:
            self.usage = read_usage(response)
            self.finished[0] = read_reason(response, has_calls=False)
            self.ended = True
        return True

    def _take_odd(self, event: bytes, payload: bytes) -> bool:
        """Handle an event of another shape: an error in OpenAI's, or something that clients skip."""
        if payload.startswith(b"[DONE]"):
            return True
        try:
            record = read_json(payload)
        except (ValueError, RecursionError):
            record = None
        if isinstance(record, dict) and cast("Json", record).get("error"):
            self.broken = Broken(read_failure(cast("Json", record)), event)
            return False
        self.malformed += 1
        if self.malformed > MAX_SKIPPED:
            self.broken = Malformed("it sent events that cannot be read, without end")
        return record is not None

    def end(self) -> bytes:
        """End the vendor's stream: an event without its blank line counts if it is whole."""
        held = self._held.take()
        if self.ended or self.broken is not None or not held.strip():
            return b""
        return self._take_all(held.rstrip(b"\r\n") + b"\n\n") if held.rstrip().endswith(b"}") else b""

    def fail(self, error: PenstockError, request_id: str) -> bytes:
        """Return the event of a response that failed, with the vendor's id of it."""
        del request_id
        response = self._head.write("failed", [], error=describe_failure(error))
        if self._response_id is not None:
            response["id"] = self._response_id
        return write_event("response.failed", self._next_sequence(), {"response": response})

    def _next_sequence(self) -> int:
        try:
            number = _event.decode(b"\n".join(_DATA.findall(self._last))).sequence_number
        except (ValueError, RecursionError):
            return 0
        return number + 1 if isinstance(number, int) else 0


def _read_object(payload: bytes) -> Json:
    found = read_json(payload)
    return cast("Json", found) if isinstance(found, dict) else {}


def pass_whole(body: bytes) -> tuple[bytes, Usage | None, int]:
    """Return a whole response unchanged, its usage and its number of characters."""
    try:
        response = _read_object(body)
    except (ValueError, RecursionError):
        response = {}
    match response:
        case {"error": {}, **rest} if rest.get("status") not in ("completed", "incomplete"):
            raise Broken(read_failure(response))
        case {"status": "failed" | "cancelled"}:
            raise Broken(read_failure(response))
        case {"output": [*items]}:
            return body, read_usage(response), sum(_count(item) for item in items)
        case _:
            raise Malformed("the reply is not a response")


def _count(item: Any) -> int:
    return sum(len(text) for text in _texts(item))


def _texts(item: Any) -> Iterator[str]:
    """Yield the texts of an item that the model wrote."""
    match item:
        case {"arguments": str(text)} | {"input": str(text)}:
            yield text
        case {"type": "message" | "reasoning"}:
            for name in ("content", "summary"):
                for piece in cast("Json", item).get(name) or ():
                    text = piece.get("text") or piece.get("refusal")
                    if isinstance(text, str):
                        yield text
        case _:
            pass

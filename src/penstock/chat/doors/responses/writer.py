"""Writes a reply as the events of a response, or as one response."""

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from msgspec import Raw

from penstock.chat.doors.responses.errors import describe_failure
from penstock.chat.doors.responses.output_items import (
    CustomCallItem,
    Event,
    FunctionCallItem,
    MessageItem,
    OutputItem,
    ReasoningItem,
    Status,
)
from penstock.chat.doors.responses.response import ResponseHead, write_usage
from penstock.chat.doors.responses.tools import Called, read_renamed
from penstock.domain.chat import (
    Arguments,
    Ask,
    Finish,
    Opening,
    Part,
    Reason,
    Reasoning,
    RefusalText,
    Seal,
    Text,
    ToolCall,
    Usage,
)
from penstock.errors import PenstockError
from penstock.vendor_api import seals
from penstock.vendor_api.lenient_json import write_json

Json: TypeAlias = dict[str, Any]

INCOMPLETE: Final = {Reason.LENGTH: "max_output_tokens", Reason.FILTER: "content_filter"}
SEALED: Final = b'"reasoning.encrypted_content"'
"""The value of `include` with which a client asks for seals, and returns them."""


class ResponsesWriter:
    """Implements `Writer`. A response has one choice, so parts of others are ignored."""

    __slots__ = (
        "_frame",
        "_head",
        "_is_begun",
        "_is_streamed",
        "_item",
        "_output",
        "_pieces",
        "_reason",
        "_returns_seals",
        "_sealed",
        "_sequence",
        "_tools",
    )

    def __init__(self, ask: Ask, reply_id: str, created: int) -> None:
        self._head = ResponseHead(ask, reply_id, created)
        self._tools = read_renamed(ask)
        self._is_streamed = ask.stream
        self._returns_seals = SEALED in bytes(ask.fields.get("include", b""))
        self._sequence = 0
        self._is_begun = False
        self._output: list[Json] = []
        self._item: OutputItem | None = None
        self._frame: tuple[bytes, bytes] | None = None
        """The bytes around the text of an event, while a part of text is open."""
        self._pieces: list[str] = []
        self._sealed = ""
        self._reason = Reason.STOP

    def take(self, part: Part) -> bytes:
        """Return the events of a part."""
        match part:
            case Text(choice=0):
                return self._write_text(part.text)
            case Opening():
                if not self._is_begun:
                    self._head.model = part.model or self._head.model
            case Finish(choice=0):
                self._reason = part.reason  # the end comes last, as some vendors send it with every event
                return self._begin()
            case Reasoning() | RefusalText() | Seal() | ToolCall() | Arguments() if part.choice == 0:
                begun = self._begin()
                return begun + self._grow(part)
            case _:
                pass  # of no interest to the caller
        return b""

    def _grow(self, part: Reasoning | RefusalText | Seal | ToolCall | Arguments) -> bytes:
        self._frame = None
        match part:
            case Reasoning():
                opened, item = self._reasoning()
                return opened + self._emit(item.reason(part.text))
            case RefusalText():
                opened, message = self._message()
                begun = self._emit(message.begin("refusal"))
                return opened + begun + self._emit([message.refuse(part.text)])
            case Seal():
                return self._seal(part.text)
            case ToolCall():
                return self._call(part)
            case Arguments():
                item = self._item
                is_call = isinstance(item, FunctionCallItem | CustomCallItem)
                return self._emit(item.add(part.json)) if is_call else b""

    def _write_text(self, text: str) -> bytes:
        if self._frame is None:
            begun = self._begin()
            opened, message = self._message()
            begun += opened + self._emit(message.begin("output_text"))
            self._pieces = message.pieces
            self._frame = _make_frame(message.place())
        else:
            begun = b""
        self._pieces.append(text)
        if not self._is_streamed:
            return b""
        before, after = self._frame
        self._sequence += 1
        return begun + before + write_json(text)[1:-1] + after % (self._sequence - 1)

    def frame(self, text: bytes) -> bytes:
        """Return the event of one more piece of text."""
        if self._frame is None:
            return self._write_text(text.decode())
        before, after = self._frame
        self._pieces.append(text.decode())
        self._sequence += 1
        return before + text + after % (self._sequence - 1)

    def finish(self, usage: Usage) -> bytes:
        """Return the events that end the last item and the response."""
        begun = self._begin()
        reason = INCOMPLETE.get(self._reason)
        status: Status = "completed" if reason is None else "incomplete"
        closed = self._close(status)
        return begun + closed + self._emit([(f"response.{status}", {"response": self._write(status, reason, usage)})])

    def whole(self, usage: Usage) -> bytes:
        """Return the response."""
        reason = INCOMPLETE.get(self._reason)
        status: Status = "completed" if reason is None else "incomplete"
        self._close(status)
        return write_json(self._write(status, reason, usage))

    def fail(self, error: PenstockError, request_id: str) -> bytes:
        """Return the event of a response that failed."""
        del request_id  # a part of the response's id
        begun = self._begin()
        failed = self._head.write("failed", self._output, error=describe_failure(error))
        return begun + self._emit([("response.failed", {"response": failed})])

    def _write(self, status: Status, reason: str | None, usage: Usage) -> Json:
        details = None if reason is None else {"reason": reason}
        return self._head.write(status, self._output, incomplete_details=details, usage=write_usage(usage))

    # -- items

    def _begin(self) -> bytes:
        """Return the events that begin the response, once."""
        if self._is_begun:
            return b""
        self._is_begun = True
        if not self._is_streamed:
            return b""
        response = Raw(write_json(self._head.write("in_progress", [])))
        return self._emit([(f"response.{state}", {"response": response}) for state in ("created", "in_progress")])

    def _open(self, item: OutputItem) -> bytes:
        closed = self._close("completed")
        self._item = item
        return closed + self._emit([_added(item)])

    def _close(self, status: Status) -> bytes:
        """Return the events that end the open item."""
        item, self._item, self._frame = self._item, None, None
        if item is None:
            return b""
        events = self._emit(item.close())
        written = item.as_json(status)
        self._output.append(written)
        return events + self._emit([("response.output_item.done", {"output_index": item.index, "item": written})])

    def _message(self) -> tuple[bytes, MessageItem]:
        if isinstance(self._item, MessageItem):
            return b"", self._item
        item = MessageItem(*self._place("msg"))
        return self._open(item), item

    def _reasoning(self) -> tuple[bytes, ReasoningItem]:
        if isinstance(self._item, ReasoningItem) and self._item.sealed is None:
            return b"", self._item
        item = ReasoningItem(*self._place("rs"))
        return self._open(item), item

    def _seal(self, text: str) -> bytes:
        """Keep a seal: in its reasoning, or for the next call's id if the client does not return encrypted content."""
        if not self._returns_seals:
            self._sealed = text
            return b""
        opened, item = self._reasoning()
        item.sealed = text
        return opened

    def _call(self, part: ToolCall) -> bytes:
        called = Called(part.name) if self._tools is None else self._tools.find(part.name)
        call_id = seals.attach(part.id, self._sealed) if self._sealed else part.id
        self._sealed = ""
        make, prefix = (CustomCallItem, "ctc") if called.is_custom else (FunctionCallItem, "fc")
        return self._open(make(*self._place(prefix), call_id, called))

    def _place(self, prefix: str) -> tuple[str, int]:
        """Return the id and the index of the next item."""
        index = len(self._output) + (self._item is not None)
        return f"{prefix}_{self._head.suffix}_{index}", index

    # -- events

    def _emit(self, events: Iterable[Event]) -> bytes:
        if not self._is_streamed:
            for _ in events:
                pass  # they are made as the item grows
            return b""
        out: list[bytes] = []
        for kind, fields in events:
            out.append(write_event(kind, self._sequence, fields))
            self._sequence += 1
        return b"".join(out)


def write_event(kind: str, sequence: int, fields: Json) -> bytes:
    """Return one event."""
    data = write_json({"type": kind, "sequence_number": sequence, **fields})
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), data)


def _added(item: OutputItem) -> Event:
    return "response.output_item.added", {"output_index": item.index, "item": item.as_json("in_progress")}


def _make_frame(place: Json) -> tuple[bytes, bytes]:
    kind = "response.output_text.delta"
    head = write_json({"type": kind, **place})[:-1]
    return b'event: %b\ndata: %b,"delta":"' % (kind.encode(), head), b'","logprobs":[],"sequence_number":%d}\n\n'

"""Replies in Anthropic's own dialect: passed on byte for byte, and counted on the way."""

from collections.abc import Callable
from typing import Any, Final, TypeAlias, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from penstock.chat.doors.messages.errors import write_error_event
from penstock.chat.replies.broken import Broken, Malformed
from penstock.chat.replies.sse import Splitter
from penstock.chat.replies.template import TextTemplate, learn_text
from penstock.chat.replies.whole_events import EVENT, WholeEvents
from penstock.domain.chat import Usage
from penstock.errors import PenstockError
from penstock.vendor_api.dialects.messages_usage import MessagesCounts
from penstock.vendor_api.lenient_json import UNREADABLE, read_json

Json: TypeAlias = dict[str, Any]

STOP: Final = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'


class _Delta(msgspec.Struct):
    """A change to a block or to the message."""

    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class _Message(msgspec.Struct):
    """The message as it begins."""

    usage: Json | None = None


class _Event(msgspec.Struct):
    """The fields of an event that are read."""

    type: str = ""
    error: Raw | UnsetType | None = UNSET
    delta: _Delta | None = None
    usage: Json | None = None
    message: _Message | None = None


_event = msgspec.json.Decoder(_Event)


class MessageStream:
    """A stream of Anthropic's events; implements `Stream`."""

    __slots__ = (
        "_characters",
        "_counts",
        "_held",
        "_splitter",
        "_template",
        "broken",
        "ended",
        "finished",
        "malformed",
        "quick",
        "usage",
    )

    def __init__(self) -> None:
        self._counts = MessagesCounts()
        self._splitter = Splitter()
        self._held = WholeEvents()
        self._template: TextTemplate | None = None
        self._characters = 0
        self.usage: Usage | None = None
        self.finished: dict[int, str] = {}
        self.malformed = 0
        self.ended = False
        self.broken: Broken | Malformed | None = None
        self.quick: Callable[[bytes], bytes | None] | None = None

    @property
    def characters(self) -> int:
        """Number of characters of the answer so far."""
        return self._characters + (0 if self._template is None else self._template.characters)

    @property
    def comments(self) -> int:
        """Number of comments received instead of events."""
        return self._splitter.comments

    @property
    def complete(self) -> bool:
        """Return whether the message is complete: its end was marked, or at least its reason to stop was given."""
        return self.ended or bool(self.finished)

    def feed(self, data: bytes) -> bytes:
        """Take bytes of the vendor and return those of whole events."""
        self.quick = None
        passed = 0
        whole = self._held.release(data)
        for event in EVENT.finditer(whole):
            if self._template is not None and self._template.fill(event[0]) is not None:
                passed = event.end()
                continue
            try:
                self._read(event[0])
            except (Broken, Malformed) as broken:  # events before it still count
                self.broken = broken
                return whole[:passed]
            passed = event.end()
            if self.ended:
                break
        if self._template is not None and not self._held:
            self.quick = self._template.fill
        return whole[:passed]

    def end(self) -> bytes:
        """End the vendor's stream and return the bytes that close ours."""
        if self.ended or self.broken is not None:
            return b""
        was_complete, rest = self.complete, self._held.take()
        try:
            if rest.strip():
                rest += b"\n\n"  # the blank line is missing
                self._read(rest)
        except (Broken, Malformed) as broken:
            rest = b""
            self.broken = None if was_complete and isinstance(broken, Malformed) else broken
        if self.broken is not None or not self.complete:
            return b""
        if self.ended:
            return rest
        self.ended = True
        return STOP if was_complete else rest + STOP  # a truncated event after the end of the message holds nothing

    def fail(self, error: PenstockError, request_id: str) -> bytes:
        """Return the error as an event."""
        return write_error_event(error, request_id)

    # -- events

    def _read(self, event: bytes) -> None:
        """Read one event. Raise `Broken` if it is an error, and `Malformed` if it cannot be read."""
        for name, payload in self._splitter.feed(event):
            found = _decode(name, payload, event)
            if found is None:
                self.malformed += 1
                continue
            if found.type == "message_start" and (self.characters or self.finished):
                raise Malformed("it began its message again")  # clients would join both
            for usage in (found.usage, None if found.message is None else found.message.usage):
                if usage is not None:
                    self.usage = self._counts.add(usage)
            self.ended = found.type == "message_stop"
            if found.delta is not None:
                self._read_delta(found.delta, event)

    def _read_delta(self, delta: _Delta, event: bytes) -> None:
        if delta.stop_reason is not None:
            self.finished[0] = delta.stop_reason
        text = delta.text or delta.thinking or delta.partial_json or ""
        self._characters += len(text)
        template = learn_text(event, text) if delta.text or delta.thinking else None
        if template is not None:
            self._characters = self.characters  # those of the template before it
            self._template = template


def _decode(name: bytes, payload: bytes, event: bytes) -> _Event | None:
    """Return an event's data; None if it is of a shape that is not known, which clients may know."""
    try:
        found = _event.decode(payload)
    except UNREADABLE:
        found = _decode_leniently(payload)
    if name == b"error" or (found is not None and (found.type == "error" or found.error)):
        raise Broken(payload, event)
    return found


def _decode_leniently(payload: bytes) -> _Event | None:
    try:
        found = read_json(payload)
    except (ValueError, RecursionError):
        raise Malformed("it sent an event that is not JSON") from None
    try:
        return msgspec.convert(found, _Event)
    except (ValueError, TypeError):
        return None


# -- whole replies


class _WholeMessage(msgspec.Struct):
    """The fields of a message that are read."""

    type: str = ""
    content: list[Json] | None = None
    usage: Json | None = None


def pass_whole(body: bytes) -> tuple[bytes, Usage | None, int]:
    """Return a message unchanged, its usage and its number of characters."""
    try:
        found = read_json(body)
        message = msgspec.convert(found, _WholeMessage)
    except (ValueError, TypeError, RecursionError):
        raise Malformed("the reply is not a message") from None
    if message.type == "error":
        raise Broken(body)
    if message.type != "message" or message.content is None:
        raise Malformed("the reply is not a message")
    usage = None if message.usage is None else MessagesCounts().add(message.usage)
    return body, usage, sum(map(_count_block, message.content))


def _count_block(block: Json) -> int:
    texts = [cast("Any", block.get(name)) for name in ("text", "thinking")]
    taken = len(msgspec.json.encode(block["input"])) if block.get("input") else 0
    return taken + sum(len(text) for text in texts if isinstance(text, str))

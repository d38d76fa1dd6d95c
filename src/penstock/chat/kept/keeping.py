"""Keeps the response of one request: read from the whole body, or from the last event of its stream."""

import asyncio
import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from penstock.chat.answer_stream import AnswerStream
from penstock.chat.kept.request import KeepRequest
from penstock.chat.kept.responses import KeptResponses
from penstock.chat.replies.sse import COMMENT
from penstock.chat.replies.stream import ResponseWriter
from penstock.chat.replies.whole_events import EVENT, WholeEvents
from penstock.errors import PenstockError

LAST: Final = (b"response.completed", b"response.incomplete", b"response.failed")
"""Types of the event that ends a stream."""
KEEP_SECONDS: Final = 5.0
"""Time that the end of an answer waits for the store."""

Show: TypeAlias = Callable[[Mapping[str, msgspec.Raw]], Mapping[str, Any]]

log = logging.getLogger(__name__)


class Keeping:
    """Keeps one response before its caller gets the end of it, so that the next request finds it."""

    def __init__(
        self, kept: KeptResponses, account_id: str, response_id: str, given: bytes, wanted: KeepRequest
    ) -> None:
        self._kept = kept
        self._account_id = account_id
        self._response_id = response_id
        self._given = given
        self._wanted = wanted

    async def keep_whole(self, body: bytes) -> bytes:
        """Keep a whole response. Return its body for the caller, which says whether it is kept."""
        response = _read_object(body)
        return body if response is None else msgspec.json.encode(await self._keep(response))

    async def keep_last(self, events: bytes) -> bytes:
        """Keep the response in the last event of a stream. Return the events for the caller."""
        last = EVENT.match(events)
        event = events if last is None else last[0]
        message = _Message.read(event)
        return events if message is None else message.write(await self._keep(message.response)) + events[len(event) :]

    async def pour(self, stream: AnswerStream, writer: ResponseWriter) -> None:
        """Send a stream, and keep its response before its last event. Raise `Interrupted` if it is cut."""
        holder = LastEventHolder(writer, self._show)
        try:
            await stream.pour(holder)
        except BaseException:
            holder.release()
            raise
        if holder.held:
            writer.write(await self.keep_last(holder.held))
        else:
            holder.release()

    async def keep_stream(self, events: bytes) -> bytes:
        """Keep the response in a stream that is there at once. Return its events for the caller."""
        passed = _Collector()
        holder = LastEventHolder(passed, self._show)
        holder.write(events)
        if holder.held:
            return passed.data + await self.keep_last(holder.held)
        holder.release()
        return passed.data

    def _show(self, response: Mapping[str, msgspec.Raw]) -> dict[str, Any]:
        """Return a response under its own id, with the wishes of its request."""
        return {**response, **self._wanted.describe(), "id": self._response_id}

    async def _keep(self, response: Mapping[str, msgspec.Raw]) -> dict[str, Any]:
        """Keep a response. Return it with what became of it: an answer is never lost for want of a place."""
        shown = self._show(response)
        try:
            if not self._wanted.store:
                return shown
            async with asyncio.timeout(KEEP_SECONDS):
                await self._kept.keep(self._account_id, shown, self._given, self._wanted.previous_id)
        except (PenstockError, TimeoutError) as error:
            fields = {"account": self._account_id, "reason": str(error) or "the store takes too long"}
            log.warning("a response was not kept; it is answered nevertheless", extra={"fields": fields})
            return {**shown, "store": False}
        return shown


class LastEventHolder:
    """Passes a stream on, except its last event, which is held until the response is kept. Implements the writer.

    The events before the first item show the response, too: they get its own id.
    """

    def __init__(self, writer: ResponseWriter, show: Show) -> None:
        self._writer = writer
        self._show = show
        self._is_beginning = True
        self._rest = WholeEvents()
        self.held = b""
        """The last event and whatever came after it."""

    @property
    def is_full(self) -> bool:
        """Return whether the caller is slower than the vendor."""
        return self._writer.is_full

    async def drain(self) -> None:
        """Wait until the caller has read some of it."""
        await self._writer.drain()

    def write(self, piece: bytes) -> bool:
        """Send all whole events before the last one."""
        if piece == COMMENT:
            return self._writer.write(piece)
        if self.held:
            self.held += piece
            return True
        whole = self._rest.release(piece)
        if any(kind in whole for kind in LAST):
            whole = self._hold(whole)
        if self._is_beginning:
            whole = self._begin(whole)
        return self._writer.write(whole) if whole else True

    def release(self) -> None:
        """Send whatever is left: the stream broke off."""
        left, self.held = self.held + self._rest.take(), b""
        if left:
            self._writer.write(left)

    def _begin(self, whole: bytes) -> bytes:
        """Return the events with the response under its own id in the first ones."""
        found: list[bytes] = []
        for event in EVENT.findall(whole):
            message = _Message.read(event) if self._is_beginning else None
            found.append(event if message is None else message.write(self._show(message.response)))
            if message is None and b"data:" in event:
                self._is_beginning = False
        return b"".join(found)

    def _hold(self, whole: bytes) -> bytes:
        """Hold the last event, if it is one: a text may contain its name, too. Return the events before it."""
        for found in EVENT.finditer(whole):
            if _is_last(found[0]):
                start = found.start()
                self.held = whole[start:] + self._rest.take()
                return whole[:start]
        return whole


class _Collector:
    """A caller that takes all at once."""

    is_full = False

    def __init__(self) -> None:
        self.data = b""

    def write(self, piece: bytes) -> bool:
        self.data += piece
        return True

    async def drain(self) -> None:
        """Return at once."""


class _Typed(msgspec.Struct):
    type: str = ""


class _Message:
    """An event that shows the response."""

    def __init__(self, fields: dict[str, msgspec.Raw], response: dict[str, msgspec.Raw]) -> None:
        self._fields = fields
        self.response = response

    @classmethod
    def read(cls, event: bytes) -> "_Message | None":
        """Return the message of an event; None if it shows no response."""
        fields = _read_object(_data_of(event)) if b'"response"' in event else None
        response = _read_object(bytes(fields["response"])) if fields and {"type", "response"} <= fields.keys() else None
        return None if fields is None or response is None else cls(fields, response)

    def write(self, response: Mapping[str, Any]) -> bytes:
        """Return the event with another response."""
        kind = bytes(self._fields["type"]).strip(b'"')
        data = msgspec.json.encode({**self._fields, "response": response})
        return b"event: " + kind + b"\ndata: " + data + b"\n\n"


_read_type = msgspec.json.Decoder(_Typed).decode


def _is_last(event: bytes) -> bool:
    """Return whether this is the event that ends a stream."""
    if not any(kind in event for kind in LAST):
        return False
    try:
        return _read_type(_data_of(event)).type.encode() in LAST
    except (msgspec.DecodeError, msgspec.ValidationError):
        return False


def _data_of(event: bytes) -> bytes:
    lines = [line[5:].strip() for line in re.split(rb"\r\n|\n|\r", event) if line.startswith(b"data:")]
    return b"\n".join(lines)


_read_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def _read_object(data: bytes) -> dict[str, msgspec.Raw] | None:
    """Return the fields of an object, unparsed; None if it is none."""
    try:
        return _read_fields(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None

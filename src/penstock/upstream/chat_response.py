"""A chat vendor's reply as it comes in: awaited, read in pieces or whole, or poured into a sink."""

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeAlias

import httptools

from penstock.fairness.time_slices import SLICE_BYTES
from penstock.vendor_api.generation import ReplyLost

MAX_BUFFERED_BYTES: Final = 256 << 10
"""Bytes of a reply that are buffered for its reader, and the limit of a head."""
_GOOD: Final = re.compile(rb"HTTP/1\.1 200 [^\r\n\0]*\r\n(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n\0]*\r\n)+\r\n")
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d{1,9})(?=\r\n)")
_UNUSUAL: Final = re.compile(
    rb"\r\n(?:transfer-encoding|upgrade|connection:(?! *keep-alive\r\n)|content-length(?!: *\d{1,9}\r\n))"
)
"""Headers in lower case that only the parser handles."""
_CHUNK: Final = re.compile(rb"(0*[1-9a-fA-F][0-9a-fA-F]{0,5})\r\n")

Sink: TypeAlias = Callable[[bytes], bool]
"""Takes bytes as they come; returns False if it wants no more for now."""


class ReplyConnection(Protocol):
    """The connection that carries a reply."""

    def cut(self, reason: str) -> None:
        """Close the connection at once."""
        ...

    def finish(self, *, is_reusable: bool) -> None:
        """Release the connection after the end of the reply."""
        ...

    def pause(self) -> None:
        """Stop reading."""
        ...

    def resume(self) -> None:
        """Continue reading."""
        ...


class Incoming:
    """A reply on its way, with a parser of its own: nothing of it is left for the next reply."""

    parser: Any = None
    status = 0
    is_whole = False
    sink: Sink | None = None
    overhead_bytes = 0  # of the head or of trailers, since the last bytes of a body
    _head = b""  # of a reply that was not parsed
    is_paused = False
    _size = 0
    _room = MAX_BUFFERED_BYTES
    _waiter: asyncio.Future[None] | None = None
    _failure: ReplyLost | None = None
    _is_interim = False
    _has_chunk = False
    _is_between_chunks = False
    _sink_error: Exception | None = None

    def __init__(self, connection: ReplyConnection) -> None:
        self._connection: ReplyConnection | None = connection
        self._pieces: list[bytes] = []
        self._headers: dict[str, str] = {}

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers by name, in lower case."""
        for line in self._head.split(b"\r\n")[1:-2]:
            name, _, value = line.partition(b":")
            self._headers[name.lower().decode("latin-1")] = value.strip().decode("latin-1")
        self._head = b""
        return self._headers

    @property
    def has_begun(self) -> bool:
        """Return whether any bytes have come."""
        return self.status != 0 or self.overhead_bytes > 0

    # -- for the reader

    async def wait_head(self) -> None:
        """Wait until `status` and `headers` are known."""
        while not self.status:
            await self._wait()

    async def read_some(self) -> bytes:
        """Return at least one byte and about two slices at most, or nothing at the end.

        An incomplete body raises `ReplyLost`.
        """
        while not self._pieces and not self.is_whole:
            self._resume()
            await self._wait()
        return self._take_some()

    async def pour(self, sink: Sink) -> None:
        """Pass the body to the sink as it comes, without waking a task for each read.

        Return when the sink wants no more for now, and at the end. An incomplete body raises `ReplyLost`.
        """
        while self._pieces:
            if not sink(self._take_some()):
                return
            if self._pieces:  # much may be buffered, so others get their turn in between
                await asyncio.sleep(0)
        self.sink = sink
        try:
            self._resume()
            while self.sink is not None and not self.is_whole:
                await self._wait()
        finally:
            self.sink = None
        if self._sink_error is not None:
            raise self._sink_error

    def deliver(self, sink: Sink, data: bytes) -> None:
        """Pass the bytes of one read to the sink."""
        if self._is_between_chunks and (found := _CHUNK.match(data)) is not None:
            start = found.end()
            if len(data) == start + int(found[1], 16) + 2 and data.endswith(b"\r\n"):
                self._give(sink, data[start:-2])  # one chunk, as nearly every read of a stream
                return
        try:
            self.parse(data)
        finally:  # bytes before a parse error still count
            if self._pieces:
                self._give(sink, self._take_pieces())

    def _give(self, sink: Sink, body: bytes) -> None:
        try:
            wants_more = sink(body)
        except Exception as error:  # noqa: BLE001  raised again in the reader
            self._sink_error, wants_more = error, False
        if not wants_more:
            self.sink = None
            self._pause()
            self._wake()

    def _take_pieces(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        self._size = 0
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _take_some(self) -> bytes:
        """Return the next pieces, about two slices at most: more at once would block the event loop."""
        pieces, count, size = self._pieces, 0, 0
        if pieces and len(pieces[0]) > 2 * SLICE_BYTES:
            pieces[:1] = pieces[0][:SLICE_BYTES], pieces[0][SLICE_BYTES:]
        while count < len(pieces) and size < SLICE_BYTES:
            size += len(pieces[count])
            count += 1
        self._size -= size
        some = pieces[0] if count == 1 else b"".join(pieces[:count])
        del pieces[:count]
        return some

    def _pause(self) -> None:
        if not self.is_paused and self._connection is not None:
            self.is_paused = True
            self._connection.pause()

    def _resume(self) -> None:
        if self.is_paused and self._connection is not None:
            self.is_paused = False
            self._connection.resume()

    @property
    def is_over(self) -> bool:
        """Return whether the whole reply has come and was taken."""
        return self.is_whole and not self._pieces

    async def read_all(self, limit: int) -> bytes:
        """Return the whole body; `status` and `headers` are known then."""
        self._room = limit + 1
        while not self.is_whole and self._size <= limit:
            self._resume()
            if self._failure is not None:
                raise self._failure
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        if self._size > limit:
            raise ReplyLost("the reply is too large")
        return self._take_pieces()

    def close(self) -> None:
        """Close the connection unless the reply has ended: a vendor stops generating when its caller leaves."""
        if self._connection is not None:
            self._connection.cut("closed by us")

    async def _wait(self) -> None:
        if self._failure is not None:
            raise self._failure
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # -- for the connection

    def end(self, failure: ReplyLost | None = None) -> None:
        """End the reply, complete or with a failure; only the first call counts."""
        if self._connection is not None:
            self._connection = None
            self.parser = None  # breaks a reference cycle, so that the garbage collector is not needed
            self._failure = failure
            self.is_whole = failure is None
            self._wake()

    def take_whole(self, data: bytes) -> bool:
        """Take a good reply that came in one read, as short ones do; return False if it needs the parser."""
        found = _GOOD.match(data)
        if found is None:
            return False
        end = found.end()
        head = data[:end].lower()
        lengths = _LENGTH.findall(head)
        if len(lengths) != 1 or len(data) - end != int(lengths[0]) or _UNUSUAL.search(head):
            return False
        self.status, self._head = 200, data[:end]
        self._pieces.append(data[end:])
        self._size = len(data) - end
        return True

    def parse(self, data: bytes) -> None:
        """Feed bytes to the parser."""
        self.overhead_bytes += len(data)
        if self.parser is None:
            self.parser = httptools.HttpResponseParser(self)
        pieces, before = self._pieces, len(self._pieces)
        try:
            self.parser.feed_data(data)
        finally:  # one piece for each read, even if it has many small chunks
            if len(pieces) > before + 1 and pieces is self._pieces:
                pieces[before:] = [b"".join(pieces[before:])]
        # The next read begins with the first line of a new chunk.
        self._is_between_chunks = self._has_chunk and data.endswith(b"\r\n")

    # -- callbacks of the parser; an error raised here is an error of the parser

    def on_message_begin(self) -> None:
        """Refuse a second reply."""
        if self.is_whole:
            raise ValueError("more than was asked for")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; ignore trailers."""
        if not self.status:
            self._headers[name.lower().decode("latin-1")] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Take the status, unless the reply is interim."""
        status = self.parser.get_status_code()
        self._is_interim = status < 200
        if not self._is_interim:
            self.status = status
            self._wake()

    def on_chunk_header(self) -> None:
        """Note that a chunk begins."""
        self._has_chunk = False

    def on_chunk_complete(self) -> None:
        """Note that a chunk is complete."""
        self._has_chunk = True

    def on_body(self, body: bytes) -> None:
        """Buffer a part of the body."""
        self._pieces.append(body)
        self.overhead_bytes = 0
        if self.sink is None:
            self._size += len(body)
            if self._size >= self._room:
                self._pause()
                self._wake()
            elif self._room == MAX_BUFFERED_BYTES:  # otherwise the reader waits for the whole body
                self._wake()

    def on_message_complete(self) -> None:
        """End the reply, unless it is interim."""
        connection = self._connection
        if self._is_interim:
            self._headers.clear()
            self._pieces.clear()
        elif connection is not None:
            is_reusable = self.parser.should_keep_alive()
            self.end()
            connection.finish(is_reusable=is_reusable)

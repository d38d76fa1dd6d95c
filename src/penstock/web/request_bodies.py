"""Whole request bodies, read within the memory limit of their account. Gzip is unpacked as it arrives."""

import asyncio
import zlib
from io import BytesIO
from typing import Any, Final

from starlette.requests import ClientDisconnect

from penstock.errors import BodyTooLarge, InvalidRequest, UnsupportedMediaType
from penstock.fairness.body_memory import SMALL_BODY_BYTES, BodyMemory
from penstock.web.server.asgi import Receive
from penstock.web.server.request_cycle import Cycle

UNPACK_BYTES: Final = 1 << 20
"""Bytes unpacked by one call in a thread."""
PLAIN: Final = frozenset({b"", b"identity"})
GZIP: Final = frozenset({b"gzip", b"x-gzip"})


async def read_body(cycle: Cycle, receive: Receive, memory: BodyMemory, account: str, max_bytes: int) -> bytes:
    """Return the body as sent. Its memory is held until the request ends, see `Cycle.hold`."""
    length = cycle.length
    if length is not None and length <= SMALL_BODY_BYTES:
        return cycle.take_whole_body() or await _receive_all(receive)
    if length is not None:
        cycle.hold = await memory.take(account, length)
        return cycle.take_whole_body() or await _receive_all(receive)
    return await _read_unknown_length(_GrowingBody(cycle, memory, account, max_bytes), receive)


async def read_packed(
    cycle: Cycle, receive: Receive, memory: BodyMemory, account: str, encoding: bytes, max_bytes: int
) -> bytes:
    """Return the body with its `content-encoding` undone. The size limit applies to the unpacked bytes."""
    if encoding in PLAIN:
        return await read_body(cycle, receive, memory, account, max_bytes)
    if encoding not in GZIP:
        name = encoding[:40].decode("latin-1")
        raise UnsupportedMediaType(f"`content-encoding` may be gzip or identity, not `{name}`.")
    growing = _GrowingBody(cycle, memory, account, max_bytes)
    if cycle.length is None or cycle.length > SMALL_BODY_BYTES:
        await growing.hold()
    return await _unpack(growing, receive, max_bytes)


class _GrowingBody:
    """A body of unknown length. Once it is no longer small, memory for the largest allowed body is held."""

    def __init__(self, cycle: Cycle, memory: BodyMemory, account: str, max_bytes: int) -> None:
        self._cycle = cycle
        self._memory = memory
        self._account = account
        self._max_bytes = max_bytes
        self._buffer = BytesIO()
        self.size = 0

    async def hold(self) -> None:
        if self._cycle.hold is None:
            self._cycle.hold = await self._memory.take(self._account, self._max_bytes)

    async def add(self, piece: bytes) -> None:
        self.size += len(piece)
        if self.size > SMALL_BODY_BYTES:
            await self.hold()
        self._buffer.write(piece)

    def finish(self) -> bytes:
        if self._cycle.hold is not None:
            self._cycle.hold.shrink(self.size)
        return self._buffer.getvalue()  # without a copy


async def _read_unknown_length(growing: _GrowingBody, receive: Receive) -> bytes:
    more = True
    while more:
        piece, more = await _receive(receive)
        await growing.add(piece)
    return growing.finish()


async def _receive_all(receive: Receive) -> bytes:
    """Return a body whose memory is already held."""
    piece, more = await _receive(receive)
    if not more:
        return piece
    buffer = BytesIO()
    buffer.write(piece)
    while more:
        piece, more = await _receive(receive)
        buffer.write(piece)
    return buffer.getvalue()  # without a copy


async def _receive(receive: Receive) -> tuple[bytes, bool]:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    return message.get("body", b""), message.get("more_body", False)


# -- gzip


async def _unpack(growing: _GrowingBody, receive: Receive, max_bytes: int) -> bytes:
    unpacker, more = zlib.decompressobj(wbits=31), True
    while more:
        piece, more = await _receive(receive)
        while piece and not unpacker.eof:
            unpacked, piece = await _unpack_some(unpacker, piece)
            await growing.add(unpacked)
            if growing.size > max_bytes:
                raise BodyTooLarge(
                    f"The unpacked request body is too large: at most {max_bytes} bytes are allowed.",
                    suggestion="Send less in one request.",
                )
    if not unpacker.eof:
        raise InvalidRequest("The gzip body is truncated.", code="")
    return growing.finish()


async def _unpack_some(unpacker: Any, piece: bytes) -> tuple[bytes, bytes]:
    """Unpack some of a piece. Return the bytes and the rest of the piece. Small pieces need no thread."""
    small = len(piece) <= SMALL_BODY_BYTES
    try:
        unpacked = unpacker.decompress(piece, SMALL_BODY_BYTES) if small else b""
        if not small or unpacker.unconsumed_tail:
            rest = unpacker.unconsumed_tail or piece
            unpacked += await asyncio.to_thread(unpacker.decompress, rest, UNPACK_BYTES)
    except zlib.error as error:
        raise InvalidRequest(
            f"The body is not valid gzip, although `content-encoding` says so: {error}.", code=""
        ) from None
    return unpacked, unpacker.unconsumed_tail

"""HTTP/1.1 to chat vendors with no more than it takes (docs/decisions/0014): one call, its reply as it comes."""

import asyncio
import os
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Final, TypeAlias, cast
from urllib.parse import urlsplit

import httptools

from penstock.contract import Call, NotSent, ReplyLost

IDLE_SECONDS: Final = 15.0
"""How long a connection is kept for the next call: less than vendors keep it, so that calls do not run into its end."""
MAX_IDLE: Final = 1_000
ENOUGH: Final = 256 << 10
"""A head is not larger; so much of a reply waits for its reader, of a call for the vendor."""
HEADERS: Final = {"accept-encoding": "identity", "content-type": "application/json", "user-agent": "penstock"}
LENGTHS: Final = frozenset({"content-length", "transfer-encoding"})
PORTS: Final = {"http": 80, "https": 443}

Sink: TypeAlias = Callable[[bytes], bool]
"""Takes what comes, at once; False if it wants no more for now."""
_Address: TypeAlias = tuple[str, int, bool]
"""Where a connection leads: host, port, whether by TLS."""


class Incoming:
    """A reply on its way. Its parser is its own: nothing of it is left behind for the next."""

    def __init__(self, connection: "_Connection", transport: asyncio.Transport) -> None:
        self._connection: _Connection | None = connection
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._pieces: list[bytes] = []
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None
        self._failure: ReplyLost | None = None
        self._is_interim = False
        self._is_paused = False
        self.sink: Sink | None = None
        self._sunk: Exception | None = None
        self.parser = httptools.HttpResponseParser(self)
        self.fruitless = 0  # bytes since the last of a body: of the head, or of trailers
        self.status = 0
        self.headers: dict[str, str] = {}
        self.is_whole = False

    # -- for the reader

    async def wait_head(self) -> None:
        """Until `status` and `headers` are known."""
        while not self.status:
            await self._wait()

    async def read_some(self) -> bytes:
        """What has come, at least a byte; nothing at the end. A body that is not whole ends in `ReplyLost`."""
        while not self._pieces and not self.is_whole:
            self._resume()
            await self._wait()
        return self._take_pieces()

    async def pour(self, sink: Sink) -> None:
        """Have the sink take what comes, as it comes: with no task to be woken in between.

        Returns when it wants no more for now, and at the end. A body that is not whole ends in `ReplyLost`.
        """
        if self._pieces and not sink(self._take_pieces()):
            return
        self.sink = sink
        try:
            self._resume()
            while self.sink is not None and not self.is_whole:
                await self._wait()
        finally:
            self.sink = None
        if self._sunk is not None:
            raise self._sunk

    def deliver(self, sink: Sink) -> None:
        """Give what came in one read to the sink."""
        pieces = self._pieces
        if not pieces:
            return
        try:
            wants_more = sink(pieces.pop() if len(pieces) == 1 else self._take_pieces())
        except Exception as error:  # noqa: BLE001  it is the reader's, who hears of it
            self._sunk, wants_more = error, False
        if not wants_more:
            self.sink = None
            self._pause()
            self._wake()

    def _take_pieces(self) -> bytes:
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        return data

    def _pause(self) -> None:
        if not self._is_paused and self._connection is not None:
            self._is_paused = True
            self._transport.pause_reading()

    def _resume(self) -> None:
        if self._is_paused and self._connection is not None:
            self._is_paused = False
            self._transport.resume_reading()

    @property
    def is_over(self) -> bool:
        """Whether everything has come and was taken."""
        return self.is_whole and not self._pieces

    async def read_all(self, limit: int) -> bytes:
        """The whole body."""
        body = bytearray()
        while data := await self.read_some():
            body += data
            if len(body) > limit:
                raise ReplyLost("the reply is too large")
        return bytes(body)

    def close(self) -> None:
        """Hang up, unless the reply has ended: a vendor stops generating when its caller leaves."""
        if self._connection is not None:
            self._connection.cut("closed by us")

    async def _wait(self) -> None:
        if self._failure is not None:
            raise self._failure
        self._waiter = self._loop.create_future()
        await self._waiter

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # -- for the connection

    def end(self, failure: ReplyLost | None = None) -> None:
        """The reply is whole, or will never be; what is said first holds."""
        if self._connection is not None:
            self._connection = None
            del self.parser  # which holds this: neither is to wait for the garbage collector
            self._failure = failure
            self.is_whole = failure is None
            self._wake()

    # -- what the parser tells; an error raised here is an error of the parser

    def on_message_begin(self) -> None:
        """One reply is enough."""
        if self.is_whole:
            raise ValueError("more than was asked for")

    def on_header(self, name: bytes, value: bytes) -> None:
        """A line of the head; or a trailer, after it."""
        if not self.status:
            self.headers[name.lower().decode("latin-1")] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """The status is known, maybe only that of an interim reply."""
        status = self.parser.get_status_code()
        self._is_interim = status < 200
        if not self._is_interim:
            self.status = status
            self._wake()

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self._pieces.append(body)
        self.fruitless = 0
        if self.sink is None:
            self._size += len(body)
            self._wake()
            if self._size >= ENOUGH:
                self._pause()

    def on_message_complete(self) -> None:
        """The reply is whole, unless it was only an interim one."""
        connection = self._connection
        if self._is_interim:
            self.headers.clear()
            self._pieces.clear()
        elif connection is not None:
            is_reusable = self.parser.should_keep_alive()
            self.end()
            connection.finish(is_reusable=is_reusable)


class _Connection(asyncio.Protocol):
    """One connection: a call and its reply, then the next."""

    transport: asyncio.Transport

    def __init__(self, wire: "ChatWire", address: _Address) -> None:
        self._wire = wire
        self._address = address
        self._incoming: Incoming | None = None
        self._writable: asyncio.Future[None] | None = None
        self._is_sent = False
        self.idle_since = 0.0

    async def ask(self, head: bytes, body: bytes) -> Incoming:
        """Send a call; the reply's head is here when this returns."""
        if self.transport.is_closing():
            raise NotSent("closed before anything was sent")
        incoming = self._incoming = Incoming(self, self.transport)
        self._is_sent = False
        try:
            await self._send(head, body)
            await incoming.wait_head()
        except BaseException:
            incoming.close()  # not the connection: where the reply has ended, that may serve another call
            raise
        return incoming

    async def _send(self, head: bytes, body: bytes) -> None:
        self.transport.write(head + body[:ENOUGH])
        for start in range(ENOUGH, len(body), ENOUGH):
            await (self._writable or asyncio.sleep(0))  # in any case the vendor is listened to
            if self._incoming is None or self._incoming.status >= 300:
                return  # the vendor is gone, or has made up its mind
            self.transport.write(body[start : start + ENOUGH])
        self._is_sent = True

    def finish(self, *, is_reusable: bool) -> None:
        """The reply has ended."""
        self._incoming = None
        self.transport.resume_reading()
        if is_reusable and self._is_sent:
            self._wire.keep(self._address, self)
        else:
            self.cut()

    def cut(self, reason: str = "the connection was lost") -> None:
        """Hang up at once; what there is not of the reply will never be."""
        if self._incoming is not None:
            self._incoming.end(ReplyLost(reason))
            self._incoming = None
        self.transport.abort()

    # -- what the transport tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        incoming = self._incoming
        if incoming is None:  # nobody asked anything
            self.cut()
        elif incoming.fruitless > ENOUGH:
            self.cut("the head is too large")
        else:
            incoming.fruitless += len(data)
            try:
                incoming.parser.feed_data(data)
            except (httptools.HttpParserError, httptools.HttpParserUpgrade):
                self.cut("not HTTP")
            if incoming.sink is not None:
                incoming.deliver(incoming.sink)

    def eof_received(self) -> None:
        incoming = self._incoming
        if incoming is not None and incoming.status and not incoming.headers.keys() & LENGTHS:
            incoming.end()  # so ends a reply that did not tell its length, and no other
        self.cut()

    def connection_lost(self, exc: Exception | None) -> None:
        _, _, is_secure = self._address
        if exc is not None and self._incoming is not None and not is_secure:
            # Writing to a vendor that refuses a long call and hangs up may fail before its words are read.
            with suppress(OSError):
                if data := os.read(self.transport.get_extra_info("socket").fileno(), ENOUGH):
                    self.data_received(data)
        self._wire.forget(self._address, self)
        self.resume_writing()
        self.cut()

    def pause_writing(self) -> None:
        self._writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None


class ChatWire:
    """The connections to every vendor. One per event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._idle: dict[_Address, dict[_Connection, None]] = {}
        self._tls: asyncio.Future[ssl.SSLContext] | None = None
        self._sweeping = self._loop.call_later(IDLE_SECONDS, self._sweep)

    def close(self) -> None:
        """Close what is idle; calls under way end with their callers."""
        self._sweeping.cancel()
        for connection in [connection for idle in self._idle.values() for connection in idle]:
            connection.cut()

    async def open(self, base_url: str, call: Call, connect_seconds: float) -> Incoming:
        """The head of the reply to a call, which is made at most once."""
        address, host, path = _read_url(call.url if "://" in call.url else base_url.rstrip("/") + call.url)
        body = call.body or b""
        head = _write_head(f"{call.method} {path} HTTP/1.1", host, call.headers, len(body))
        connection = self._take(address) or await self._connect(address, connect_seconds)
        return await connection.ask(head, body)

    def keep(self, address: _Address, connection: _Connection) -> None:
        """A connection is free for the next call."""
        idle = self._idle.setdefault(address, {})
        if self._sweeping.cancelled() or len(idle) >= MAX_IDLE:
            connection.cut()
        else:
            connection.idle_since = self._loop.time()
            idle[connection] = None

    def forget(self, address: _Address, connection: _Connection) -> None:
        """A connection is gone."""
        self._idle.get(address, {}).pop(connection, None)

    def _take(self, address: _Address) -> _Connection | None:
        idle = self._idle.get(address)
        while idle:
            connection, _ = idle.popitem()
            if not connection.transport.is_closing() and self._loop.time() - connection.idle_since < IDLE_SECONDS:
                return connection
            connection.cut()
        return None

    def _sweep(self) -> None:
        """Close what has been idle for too long, also where no call comes any more."""
        self._sweeping = self._loop.call_later(IDLE_SECONDS, self._sweep)
        for connection in [connection for idle in self._idle.values() for connection in idle]:
            if self._loop.time() - connection.idle_since >= IDLE_SECONDS:
                connection.cut()

    async def _connect(self, address: _Address, seconds: float) -> _Connection:
        host, port, is_secure = address
        if is_secure and self._tls is None:  # once for all calls, in a thread: it takes long
            self._tls = self._loop.run_in_executor(None, ssl.create_default_context)
        try:
            tls = await asyncio.shield(self._tls) if is_secure and self._tls is not None else None
            async with asyncio.timeout(seconds):
                _, connection = await self._loop.create_connection(
                    lambda: _Connection(self, address), host, port, ssl=tls
                )
        except (OSError, TimeoutError, ValueError) as error:  # ValueError: a host name that cannot be one
            raise NotSent(type(error).__name__) from error
        return connection


@lru_cache(1_000)
def _read_url(url: str) -> tuple[_Address, str, str]:
    """Where to connect, and what to say there: host and path."""
    try:
        parts = urlsplit(url)
        name = (parts.hostname or "").encode("idna").decode()
        usual = PORTS[parts.scheme]
        port = usual if parts.port is None else parts.port
    except (KeyError, ValueError) as error:
        raise NotSent("not a URL") from error
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not name or not path.isascii() or not path.isprintable() or " " in path:
        raise NotSent("not a URL")
    host = (f"[{name}]" if ":" in name else name) + (f":{port}" if port != usual else "")
    return (name, port, parts.scheme == "https"), host, path


def _write_head(first: str, host: str, headers: Mapping[str, str], length: int) -> bytes:
    lines = [first, f"host: {host}", f"content-length: {length}"]
    lines += [f"{name}: {value}" for name, value in {**HEADERS, **headers}.items()]
    head = "\r\n".join([*lines, "", ""])
    if head.count("\n") != len(lines) + 1 or head.count("\r") != len(lines) + 1 or "\0" in head:
        raise NotSent("a header that cannot be sent")
    return head.encode("utf-8", "replace")

"""HTTP/1.1 to chat vendors with no more than it takes (docs/decisions/0014): one call, its reply as it comes."""

import asyncio
import os
import ssl
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Final, NamedTuple, cast
from urllib.parse import urlsplit

import httptools

from penstock.contract import Call, NotSent, ReplyLost

IDLE_SECONDS: Final = 15.0
"""How long a connection is kept for the next call: less than vendors keep it, so that calls do not run into its end."""
MAX_IDLE: Final = 1_000
MAX_HEAD_BYTES: Final = 256 << 10
HIGH_WATER: Final = 256 << 10
"""So much of a reply may wait for its reader; then the vendor is not listened to."""
PIECE: Final = 256 << 10
HEADERS: Final = {"accept-encoding": "identity", "content-type": "application/json", "user-agent": "penstock"}
PORTS: Final = {"http": 80, "https": 443}


class _Address(NamedTuple):
    """Where a connection leads."""

    host: str
    port: int
    is_secure: bool


class Incoming:
    """A reply on its way. It has its own parser: no call can leave anything behind for the next."""

    def __init__(self, connection: "_Connection", loop: asyncio.AbstractEventLoop) -> None:
        self._connection: _Connection | None = connection
        self._loop = loop
        self._pieces: list[bytes] = []
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None
        self._failure: ReplyLost | None = None
        self._has_length = False
        self._is_interim = False
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
            await self._wait()
        if not self._pieces:
            return b""
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        if self._connection is not None:
            self._connection.resume()
        return data

    async def read_all(self, limit: int) -> bytes:
        """The whole body."""
        pieces: list[bytes] = []
        size = 0
        while data := await self.read_some():
            pieces.append(data)
            size += len(data)
            if size > limit:
                raise ReplyLost("the reply is too large")
        return b"".join(pieces)

    def close(self) -> None:
        """Hang up, unless the reply has ended: a vendor stops generating when its caller leaves."""
        if self._connection is not None:
            self._connection.fail("closed by us")

    async def _wait(self) -> None:
        if self._failure is not None:
            raise self._failure
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # -- what the connection tells

    def end(self, failure: ReplyLost | None = None) -> None:
        """The reply is whole, or will never be; what is said first holds."""
        if self._connection is not None:
            self._connection = None
            self._failure = failure
            self.is_whole = failure is None
            self._wake()

    def end_with_connection(self) -> None:
        """The vendor says no more: the end of a reply that did not tell its length, and of no other."""
        self.end(None if self.status and not self._has_length else ReplyLost("the connection was closed"))

    # -- what the parser tells; an error raised here is one of the parser's

    def on_message_begin(self) -> None:
        if self.is_whole:
            raise ValueError("more than was asked for")

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.status:  # else a trailer
            lower = name.lower().decode("latin-1")
            self.headers[lower] = value.decode("latin-1")
            self._has_length = self._has_length or lower in ("content-length", "transfer-encoding")

    def on_headers_complete(self) -> None:
        status = self.parser.get_status_code()
        self._is_interim = 100 <= status < 200
        if status < 100:
            raise ValueError("no status")
        if not self._is_interim:
            self.status = status
            self._wake()
        if status in (204, 304):
            self.end()
            raise ValueError("a body, if one follows")

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)
        self._size += len(body)
        self.fruitless = 0
        self._wake()
        if self._size >= HIGH_WATER and self._connection is not None:
            self._connection.pause()

    def on_message_complete(self) -> None:
        connection = self._connection
        if self._is_interim:
            self.headers.clear()
            self._pieces.clear()
            self._size = 0
            self._has_length = False
        elif connection is not None:
            self.end()
            connection.finish(is_reusable=self.parser.should_keep_alive())


class _Connection(asyncio.Protocol):
    """One connection: a call and its reply, then the next."""

    def __init__(self, wire: "ChatWire", address: _Address) -> None:
        self._wire = wire
        self._address = address
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._incoming: Incoming | None = None
        self._writable: asyncio.Future[None] | None = None
        self._is_paused = False
        self._is_sent = False
        self.idle_since = 0.0

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    async def ask(self, head: bytes, body: bytes) -> Incoming:
        """Send a call; the reply's head is here when this returns."""
        if self._transport is None or self._transport.is_closing():
            raise NotSent("closed before anything was sent")
        incoming = self._incoming = Incoming(self, self._loop)
        self._is_sent = False
        try:
            await self._send(self._transport, head, body)
            await incoming.wait_head()
        except BaseException:
            incoming.close()  # not the connection: if the reply has ended, that may serve the next call
            raise
        return incoming

    async def _send(self, transport: asyncio.Transport, head: bytes, body: bytes) -> None:
        if len(body) <= PIECE:
            transport.write(head + body)
        else:
            transport.write(head)
            view = memoryview(body)
            for start in range(0, len(body), PIECE):
                await (self._writable or asyncio.sleep(0))  # the vendor is listened to, in any case
                if self._incoming is None or self._incoming.status >= 300:
                    return  # the vendor is gone, or has made up its mind
                transport.write(bytes(view[start : start + PIECE]))
        self._is_sent = True

    def pause(self) -> None:
        """That is enough for now."""
        if self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        """There is room for more."""
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()

    def finish(self, *, is_reusable: bool) -> None:
        """The reply has ended."""
        self._incoming = None
        self.resume()
        if is_reusable and self._is_sent:
            self._wire.keep(self._address, self)
        else:
            self.abort()

    def fail(self, reason: str) -> None:
        """There will be no more of the reply."""
        if self._incoming is not None:
            self._incoming.end(ReplyLost(reason))
        self.abort()

    def abort(self) -> None:
        """Cut the connection, at once."""
        self._incoming = None
        if self._transport is not None:
            self._transport.abort()

    # -- what the transport tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        incoming = self._incoming
        if incoming is None:  # nobody asked anything
            self.abort()
        elif incoming.fruitless > MAX_HEAD_BYTES:
            self.fail("the head is too large")
        else:
            incoming.fruitless += len(data)
            try:
                incoming.parser.feed_data(data)
            except (httptools.HttpParserError, httptools.HttpParserUpgrade):
                self.fail("not HTTP")

    def eof_received(self) -> None:
        if self._incoming is not None:
            self._incoming.end_with_connection()
        self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._incoming is not None and self._transport is not None and not self._address.is_secure:
            # To a vendor that refuses a long call and hangs up, writing fails before its words are read.
            with suppress(OSError):
                self.data_received(os.read(self._transport.get_extra_info("socket").fileno(), PIECE))
        self._transport = None
        self._wire.forget(self._address, self)
        self.resume_writing()
        self.fail("the connection was lost")

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None


class ChatWire:
    """The connections to every vendor. One per event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._idle: dict[_Address, dict[_Connection, None]] = {}
        self._tls: ssl.SSLContext | None = None
        self._sweeping = self._loop.call_later(IDLE_SECONDS, self._sweep)

    def close(self) -> None:
        """Close what is idle; calls under way end with their callers."""
        self._sweeping.cancel()
        for connections in self._idle.values():
            for connection in connections:
                connection.abort()
        self._idle.clear()

    async def open(self, base_url: str, call: Call, connect_seconds: float) -> Incoming:
        """The head of the reply to a call, which is made at most once."""
        address, host, path = _read_url(call.url if "://" in call.url else base_url.rstrip("/") + call.url)
        body = call.body or b""
        head = _write_head(call.method, host, path, call.headers, len(body))
        connection = self._take(address) or await self._connect(address, connect_seconds)
        return await connection.ask(head, body)

    def keep(self, address: _Address, connection: _Connection) -> None:
        """A connection is free for the next call."""
        idle = self._idle.setdefault(address, {})
        if self._sweeping.cancelled() or len(idle) >= MAX_IDLE:
            connection.abort()
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
            if connection.is_open and self._loop.time() - connection.idle_since < IDLE_SECONDS:
                return connection
            connection.abort()
        return None

    def _sweep(self) -> None:
        """Close what has been idle for too long, also where no call comes any more."""
        self._sweeping = self._loop.call_later(IDLE_SECONDS, self._sweep)
        for idle in self._idle.values():
            for connection in idle:
                if self._loop.time() - connection.idle_since >= IDLE_SECONDS:
                    connection.abort()

    async def _connect(self, address: _Address, seconds: float) -> _Connection:
        try:
            if address.is_secure and self._tls is None:
                self._tls = await asyncio.to_thread(ssl.create_default_context)
            async with asyncio.timeout(seconds):
                _, connection = await self._loop.create_connection(
                    lambda: _Connection(self, address),
                    address.host,
                    address.port,
                    ssl=self._tls if address.is_secure else None,
                )
        except (OSError, TimeoutError, ValueError) as error:  # ValueError: a host name that cannot be one
            raise NotSent(type(error).__name__) from error
        return connection


@lru_cache(1_000)
def _read_url(url: str) -> tuple[_Address, str, str]:
    """Where to connect, and what to tell there: host and path."""
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
    return _Address(name, port, parts.scheme == "https"), host, path


def _write_head(method: str, host: str, path: str, headers: Mapping[str, str], length: int) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"host: {host}", f"content-length: {length}"]
    lines += [f"{name}: {value}" for name, value in {**HEADERS, **headers}.items()]
    head = "\r\n".join([*lines, "", ""])
    if head.count("\n") != len(lines) + 1 or head.count("\r") != len(lines) + 1 or "\0" in head:
        raise NotSent("a header that cannot be sent")
    try:
        return head.encode()
    except UnicodeEncodeError as error:
        raise NotSent("a header that cannot be sent") from error

"""HTTP/1.1 to chat vendors with no more than it takes (docs/decisions/0014): one call, its reply as it comes."""

import asyncio
import ssl
from collections.abc import Mapping
from typing import Final, NamedTuple, cast
from urllib.parse import urlsplit

import httptools

from penstock.contract import Call, NotSent, ReplyLost

IDLE_SECONDS: Final = 15.0
"""How long a connection is kept for the next call: less than vendors keep it, so that calls do not run into its end."""
MAX_IDLE: Final = 1_000
MAX_ADDRESSES: Final = 1_000
MAX_HEAD_BYTES: Final = 256 << 10
HIGH_WATER: Final = 256 << 10
"""So much of a reply may wait for its reader; then the vendor is not listened to."""
PIECE: Final = 256 << 10


class _Address(NamedTuple):
    """Where a connection leads."""

    host: str
    port: int
    is_secure: bool


class _Target(NamedTuple):
    """A URL, taken apart once."""

    address: _Address
    host: str
    path: str


class Incoming:
    """A reply on its way."""

    __slots__ = ("_connection", "_failure", "_loop", "_pieces", "_size", "_waiter", "headers", "is_whole", "status")

    def __init__(self, connection: "_Connection", loop: asyncio.AbstractEventLoop) -> None:
        self._connection: _Connection | None = connection
        self._loop = loop
        self._pieces: list[bytes] = []
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None
        self._failure: ReplyLost | None = None
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
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def close(self) -> None:
        """Hang up, unless the reply has ended: a vendor stops generating when its caller leaves."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()
            self.end(ReplyLost("closed by us"))

    async def _wait(self) -> None:
        if self._failure is not None:
            raise self._failure
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    # -- for the connection

    def add(self, data: bytes) -> bool:
        """A part of the body; False if that is enough until some is read."""
        self._pieces.append(data)
        self._size += len(data)
        self.wake()
        return self._size < HIGH_WATER

    def end(self, failure: ReplyLost | None = None) -> None:
        """The reply is whole, or will never be."""
        self._failure = failure
        self.is_whole = failure is None
        self._connection = None
        self.wake()

    def wake(self) -> None:
        """There is news."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class _Connection(asyncio.Protocol):
    """One connection: a call and its reply, then the next."""

    def __init__(self, wire: "ChatWire", address: _Address) -> None:
        self._wire = wire
        self._address = address
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._incoming: Incoming | None = None
        self._is_interim = False
        self._has_length = False
        self._head_bytes = 0
        self._is_paused = False
        self._writable: asyncio.Future[None] | None = None
        self._is_sent = False
        self.idle_since = 0.0

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    async def ask(self, head: bytes, body: bytes) -> Incoming:
        """Send a call; the reply's head is here when this returns."""
        assert self._transport is not None  # noqa: S101  it was made by connecting
        incoming = self._incoming = Incoming(self, self._loop)
        self._is_sent = self._has_length = False
        self._head_bytes = 0
        try:
            await self._send(self._transport, head, body)
            self._is_sent = True
            await incoming.wait_head()
        except BaseException:
            self.abort()
            raise
        return incoming

    async def _send(self, transport: asyncio.Transport, head: bytes, body: bytes) -> None:
        if len(body) <= PIECE:
            transport.write(head + body)
            return
        transport.write(head)
        view = memoryview(body)
        for start in range(0, len(body), PIECE):
            if self._writable is not None:
                await self._writable
            if self._incoming is None or self._incoming.status:
                return  # the vendor has made up its mind, or is gone
            transport.write(bytes(view[start : start + PIECE]))

    def resume(self) -> None:
        """There is room for more."""
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()

    def abort(self) -> None:
        """Cut the connection, at once."""
        self._incoming = None
        if self._transport is not None:
            self._transport.abort()

    # -- what the transport tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._wire.forget(self._address, self)
        self.resume_writing()
        if self._incoming is not None:
            # Only a reply without a length ends with its connection, and only if that was not broken.
            is_whole = exc is None and bool(self._incoming.status) and not self._has_length
            self._incoming.end(None if is_whole else ReplyLost("the connection was lost"))
            self._incoming = None

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        if self._writable is not None:
            self._writable.set_result(None)
            self._writable = None

    def data_received(self, data: bytes) -> None:
        if self._incoming is None:  # nobody asked anything
            self.abort()
            return
        if not self._incoming.status:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self._fail("the head is too large")
                return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._fail("not HTTP")

    def _fail(self, reason: str) -> None:
        if self._incoming is not None:
            self._incoming.end(ReplyLost(reason))
        self.abort()

    # -- what the parser tells

    def on_message_begin(self) -> None:
        if self._incoming is None:  # more than was asked for: whose would it be?
            self.abort()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._incoming is not None:
            lower = name.lower().decode("latin-1")
            self._incoming.headers[lower] = value.decode("latin-1")
            self._has_length = self._has_length or lower in ("content-length", "transfer-encoding")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        self._is_interim = 100 <= status < 200
        if self._incoming is not None and not self._is_interim:
            self._incoming.status = status
            self._incoming.wake()

    def on_body(self, body: bytes) -> None:
        if self._incoming is not None and not self._incoming.add(body) and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        incoming = self._incoming
        if incoming is None:
            return
        if self._is_interim:
            incoming.headers.clear()
            self._has_length = False
            return
        self._incoming = None
        incoming.end()
        self.resume()
        if self._is_sent and self._parser.should_keep_alive():
            self._wire.keep(self._address, self)
        else:
            self.abort()


class ChatWire:
    """The connections to every vendor. One per event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._idle: dict[_Address, list[_Connection]] = {}
        self._targets: dict[str, _Target] = {}
        self._tls: ssl.SSLContext | None = None

    def close(self) -> None:
        """Close what is idle; calls under way end with their callers."""
        for connections in list(self._idle.values()):
            for connection in list(connections):
                connection.abort()
        self._idle.clear()

    async def open(self, base_url: str, call: Call, connect_seconds: float) -> Incoming:
        """The head of the reply to a call, which is made at most once."""
        target = self._find_target(call.url if "://" in call.url else base_url.rstrip("/") + call.url)
        body = call.body or b""
        head = _write_head(call.method, target, call.headers, len(body))
        connection = self._take(target.address) or await self._connect(target.address, connect_seconds)
        return await connection.ask(head, body)

    def keep(self, address: _Address, connection: _Connection) -> None:
        """A connection is free for the next call."""
        idle = self._idle.setdefault(address, [])
        now = connection.idle_since = self._loop.time()
        if idle and (now - idle[0].idle_since > IDLE_SECONDS or len(idle) >= MAX_IDLE):
            idle.pop(0).abort()
        idle.append(connection)

    def forget(self, address: _Address, connection: _Connection) -> None:
        """A connection is gone."""
        idle = self._idle.get(address)
        if idle and connection in idle:
            idle.remove(connection)

    def _take(self, address: _Address) -> _Connection | None:
        idle = self._idle.get(address)
        while idle:
            connection = idle.pop()
            if connection.is_open and self._loop.time() - connection.idle_since <= IDLE_SECONDS:
                return connection
            connection.abort()
        return None

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

    def _find_target(self, url: str) -> _Target:
        found = self._targets.get(url)
        if found is None:
            if len(self._targets) >= MAX_ADDRESSES:
                self._targets.clear()
            found = self._targets[url] = _read_url(url)
        return found


def _read_url(url: str) -> _Target:
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise NotSent("not a URL") from error
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if parts.scheme not in ("http", "https") or not parts.hostname or not path.isascii() or " " in path:
        raise NotSent("not a URL")
    host = parts.netloc.rpartition("@")[2]
    return _Target(_Address(parts.hostname, port, parts.scheme == "https"), host, path)


def _write_head(method: str, target: _Target, headers: Mapping[str, str], length: int) -> bytes:
    lines = [f"{method} {target.path} HTTP/1.1", f"host: {target.host}", "accept-encoding: identity"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += ["user-agent: penstock", f"content-length: {length}", "", ""]
    head = "\r\n".join(lines)
    if head.count("\n") != len(lines) - 1 or head.count("\r") != len(lines) - 1:
        raise NotSent("a header with a line break")
    return head.encode("latin-1", "replace")

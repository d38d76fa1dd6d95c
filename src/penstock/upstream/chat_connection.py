"""A minimal HTTP/1.1 connection pool for chat vendors: one call, and its reply as it comes (docs/decisions/0014)."""

import asyncio
import os
import ssl
from contextlib import suppress
from functools import lru_cache
from typing import Final, TypeAlias, cast
from urllib.parse import urlsplit

import httptools

from penstock.fairness.time_slices import SLICE_BYTES, TimeSlices
from penstock.safe_fetch.vendor_address import is_vendor_address
from penstock.upstream.chat_response import MAX_BUFFERED_BYTES, Incoming
from penstock.vendor_api.generation import Call, NotSent, ReplyLost, Unread, VendorOptions

IDLE_SECONDS: Final = 15.0
"""Idle timeout of a connection: shorter than vendors' own, so that no call meets a closing connection."""
MAX_IDLE: Final = 1_000
HEADERS: Final = {"accept-encoding": "identity", "content-type": "application/json", "user-agent": "penstock"}
LENGTHS: Final = frozenset({"content-length", "transfer-encoding"})
PORTS: Final = {"http": 80, "https": 443}

_Address: TypeAlias = tuple[str, int, bool]
"""Host, port and TLS flag of a connection."""


class _Connection(asyncio.Protocol):
    """One connection, for one call and its reply at a time."""

    transport: asyncio.Transport

    def __init__(self, pool: "ChatConnections", address: _Address) -> None:
        self._pool = pool
        self._address = address
        self._incoming: Incoming | None = None
        self._writable: asyncio.Future[None] | None = None
        self._is_sent = False
        self._backlog = b""  # a large read, of which `_place` bytes are processed; meanwhile nothing more is read
        self._place = 0
        self._is_waiting = False  # for its next time slice
        self._is_slicing = False
        self._is_held = False
        self._has_eof = False
        self._is_lost = False
        self.idle_since = 0.0

    def begin(self, head: bytes, body: bytes) -> Incoming:
        """Send a call, or the first part of a long one."""
        if self.transport.is_closing():
            raise NotSent("closed before anything was sent")
        incoming = self._incoming = Incoming(self)
        self._is_sent = len(body) <= MAX_BUFFERED_BYTES
        self.transport.write(head + body if self._is_sent else head + body[:MAX_BUFFERED_BYTES])
        return incoming

    async def go_on(self, body: bytes) -> None:
        """Send the rest of a long call."""
        incoming = self._incoming
        try:
            for start in range(MAX_BUFFERED_BYTES, len(body), MAX_BUFFERED_BYTES):
                await (self._writable or asyncio.sleep(0))  # read from the vendor in any case
                if self._incoming is None or self._incoming.status >= 300:
                    return  # the vendor is gone or has refused already
                self.transport.write(body[start : start + MAX_BUFFERED_BYTES])
            self._is_sent = True
        except BaseException:
            if incoming is not None:
                incoming.close()  # not the connection, which may serve another call if the reply has ended
            raise

    def finish(self, *, is_reusable: bool) -> None:
        """Return the connection to the pool after a reply, or close it if it cannot be reused."""
        self._incoming = None
        if is_reusable and self._is_sent and not self._backlog:  # a backlog is more than was asked for
            self._release()
            self._pool.keep(self._address, self)
        else:
            self.cut()

    def cut(self, reason: str = "the connection was lost") -> None:
        """Close the connection at once; a reply that is incomplete ends in `ReplyLost`."""
        self._backlog = b""
        if self._incoming is not None:
            self._incoming.end(ReplyLost(reason))
            self._incoming = None
        self.transport.abort()

    # -- large reads: taken in slices, so that a fast vendor does not block the others

    def pause(self) -> None:
        """Stop reading: the reply's reader has enough for now."""
        if not self._is_held and not self._is_lost:
            self._is_held = True
            self.transport.pause_reading()

    def resume(self) -> None:
        """Continue reading, first from the backlog."""
        if not self._backlog:
            self._release()
        elif not self._is_waiting:
            self._is_waiting = True
            self._pool.slices.add(self)

    def take_slice(self) -> bool:
        """Process some of a large read; return whether more of it can follow."""
        incoming = self._incoming
        self._is_waiting = incoming is not None and bool(self._backlog) and not incoming.is_paused
        if incoming is None or not self._is_waiting:
            return False  # cut meanwhile, or the reader will resume it
        end = self._place + SLICE_BYTES
        data = self._backlog[self._place : end]
        self._place = end
        if end >= len(self._backlog):
            self._backlog = b""
        self._is_slicing = True
        try:
            self.data_received(data)
        except Exception:
            self.cut()
            raise
        finally:
            self._is_slicing = False
        self._is_waiting = bool(self._backlog) and not incoming.is_paused
        if not self._backlog and self._incoming is incoming:
            self._catch_up(incoming)
        return self._is_waiting

    def _put_off(self, data: bytes) -> None:
        self._backlog = self._backlog[self._place :] + data if self._backlog else data
        self._place = 0
        self.pause()
        self.resume()

    def _catch_up(self, incoming: Incoming) -> None:
        """Handle an end of file, a lost connection or a pause that came during a large read."""
        if self._has_eof:
            self.eof_received()
        elif self._is_lost:
            self.cut()
        elif not incoming.is_paused:
            self._release()

    def _release(self) -> None:
        if self._is_held and not self._is_lost:
            self._is_held = False
            self.transport.resume_reading()

    # -- events of the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        incoming = self._incoming
        if incoming is None:  # no call is under way
            self.cut()
        elif incoming.parser is None and not self._backlog and incoming.take_whole(data):
            incoming.end()
            self.finish(is_reusable=True)
        elif len(data) > SLICE_BYTES or (self._backlog and not self._is_slicing):
            self._put_off(data)
        elif incoming.overhead_bytes > MAX_BUFFERED_BYTES:
            self.cut("the head is too large")
        else:
            try:
                if incoming.sink is None:
                    incoming.parse(data)
                else:
                    incoming.deliver(incoming.sink, data)
            except (httptools.HttpParserError, httptools.HttpParserUpgrade):
                self.cut("not HTTP")

    def eof_received(self) -> None:
        incoming = self._incoming
        if self._backlog:
            self._has_eof = True  # not before the rest was read
            return
        if incoming is not None and incoming.status and not incoming.headers.keys() & LENGTHS:
            incoming.end()  # only a reply without a declared length ends like this
        self.cut()

    def connection_lost(self, exc: Exception | None) -> None:
        _, _, is_secure = self._address
        self._is_lost = True
        if self._backlog:
            self._pool.forget(self._address, self)
            self.resume_writing()
            return
        if exc is not None and self._incoming is not None and not is_secure:
            # A vendor may refuse a long call and close: the write then fails before its reply was read.
            with suppress(OSError):
                if data := os.read(self.transport.get_extra_info("socket").fileno(), MAX_BUFFERED_BYTES):
                    self.data_received(data)
        self._pool.forget(self._address, self)
        self.resume_writing()
        if isinstance(exc, ConnectionResetError) and self._incoming is not None and not self._incoming.has_begun:
            # A system resets a connection, instead of ending it, if it has bytes that were never read.
            self._incoming.end(Unread("the connection was reset before the call was read"))
            self._incoming = None
        self.cut()

    def pause_writing(self) -> None:
        self._writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None


class ChatConnections:
    """The connection pool for all chat vendors. One per event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.slices = TimeSlices(self._loop)
        self._idle: dict[_Address, dict[_Connection, None]] = {}
        self._tls: asyncio.Future[ssl.SSLContext] | None = None
        self._sweeping = self._loop.call_later(IDLE_SECONDS, self._sweep)

    def close(self) -> None:
        """Close idle connections; calls under way end with their callers."""
        self._sweeping.cancel()
        for connection in [connection for idle in self._idle.values() for connection in idle]:
            connection.cut()

    async def open(
        self, base_url: str, call: Call, connect_seconds: float, options: VendorOptions | None = None
    ) -> Incoming:
        """Send a call at most once and return its reply, whose head comes later.

        `options` confine a new connection to their networks.
        """
        address, host, path = _read_url(call.url if "://" in call.url else base_url.rstrip("/") + call.url)
        body = call.body or b""
        head = _write_head(f"{call.method} {path} HTTP/1.1", host, tuple(call.headers.items()))
        connection = self._take(address) or await self._connect(address, connect_seconds, options)
        incoming = connection.begin(b"%bcontent-length: %d\r\n\r\n" % (head, len(body)), body)
        if len(body) > MAX_BUFFERED_BYTES:
            await connection.go_on(body)
        return incoming

    def keep(self, address: _Address, connection: _Connection) -> None:
        """Keep a connection for the next call."""
        idle = self._idle.setdefault(address, {})
        if self._sweeping.cancelled() or len(idle) >= MAX_IDLE:
            connection.cut()
        else:
            connection.idle_since = self._loop.time()
            idle[connection] = None

    def forget(self, address: _Address, connection: _Connection) -> None:
        """Remove a closed connection from the pool."""
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
        """Close connections that exceed the idle timeout, even if no more calls come."""
        self._sweeping = self._loop.call_later(IDLE_SECONDS, self._sweep)
        for connection in [connection for idle in self._idle.values() for connection in idle]:
            if self._loop.time() - connection.idle_since >= IDLE_SECONDS:
                connection.cut()

    async def _connect(self, address: _Address, seconds: float, options: VendorOptions | None) -> _Connection:
        host, port, is_secure = address
        if is_secure and self._tls is None:  # once for all calls, in a thread, as it is slow
            self._tls = self._loop.run_in_executor(None, ssl.create_default_context)
        try:
            tls = await asyncio.shield(self._tls) if is_secure and self._tls is not None else None
            async with asyncio.timeout(seconds):
                _, connection = await self._loop.create_connection(
                    lambda: _Connection(self, address), host, port, ssl=tls
                )
        except (OSError, TimeoutError, ValueError) as error:  # ValueError: an invalid host name
            raise NotSent(type(error).__name__) from error
        peer = connection.transport.get_extra_info("peername")
        if options is not None and peer and not is_vendor_address(peer[0], options.networks):
            connection.cut()
            raise NotSent("the address leads to where the vendor may not be")
        return connection


@lru_cache(1_000)
def _read_url(url: str) -> tuple[_Address, str, str]:
    """Return the address to connect to, the `host` header and the path."""
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


@lru_cache(1_000)
def _write_head(first: str, host: str, headers: tuple[tuple[str, str], ...]) -> bytes:
    """Return the bytes with which every such call begins."""
    lines = [first, f"host: {host}"]
    lines += [f"{name}: {value}" for name, value in {**HEADERS, **dict(headers)}.items()]
    head = "\r\n".join([*lines, ""])
    if head.count("\n") != len(lines) or head.count("\r") != len(lines) or "\0" in head:
        raise NotSent("a header that cannot be sent")
    return head.encode("utf-8", "replace")

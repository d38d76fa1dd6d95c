"""HTTP/1.1 connections with limits that uvicorn lacks. Every refusal has the error shape."""

import asyncio
import socket
import struct
from contextlib import suppress
from itertools import chain
from typing import Any, ClassVar, Final, cast

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from penstock.domain.ids import new_id
from penstock.errors import HeadersTooLarge, InvalidRequest, Overloaded, PenstockError
from penstock.observability import metrics
from penstock.web.server.asgi import CYCLE, Headers
from penstock.web.server.body_limits import LINGER_SECONDS
from penstock.web.server.connection_limits import Doorman
from penstock.web.server.error_response import render_error
from penstock.web.server.head_cache import Head, Heads
from penstock.web.server.request_cycle import Cycle
from penstock.web.server.sendfile import FileSocket

NO_LINGER: Final = struct.pack("ii", 1, 0)


def _count_queued(transport: Any) -> int:
    """Return the bytes in the socket's send queue, or 0 where the platform does not report them.

    A slow reader drains this queue long before the transport is asked for more.
    """
    try:
        import fcntl  # noqa: PLC0415  not on every platform
        import termios  # noqa: PLC0415

        queued = fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, struct.pack("i", 0))
    except (ImportError, OSError, ValueError):
        return 0
    return struct.unpack("i", queued)[0]


class GuardedConnection(HttpToolsProtocol):
    """uvicorn's protocol with a deadline and a size limit for request heads.

    It uses private attributes of uvicorn. The version is pinned, and tests/unit/web/server/test_connection.py checks
    them.
    """

    head_seconds: ClassVar[float] = 10.0
    head_bytes: ClassVar[int] = 65_536
    heads: ClassVar[Heads] = Heads()
    doorman: ClassVar[Doorman] = Doorman()

    app: Any
    parser: Any
    cycle: Any  # the latest `Cycle`; with pipelining not the one being answered
    _running: Cycle | None = None
    _deadline: asyncio.TimerHandle | None = None
    _idle_since: float | None = None
    _pending_bytes = 0  # since the parser last reported a whole head or a piece of a body
    _in_message = False  # the parser is inside a request
    _begun: int = 0  # requests that began in the latest read
    _refused = False
    _refusal: PenstockError | None = None  # sent once earlier requests are answered
    _host = ""
    _outlet: FileSocket | None = None  # the one `_unread` was measured on
    _unread: int | None = None  # unread bytes at the last check
    _progress_at = 0.0
    _is_narrow = False  # the write buffer limit is 0, so that writers wait for the reader

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Admit or refuse the connection, and start the deadline of its first request."""
        super().connection_made(transport)
        self._host = self.client[0] if self.client else ""
        refusal = self.doorman.enter(self._host)
        if refusal is None:
            self._start_deadline(self.head_seconds)
            return
        metrics.CONNECTIONS_CUT.count("too_many")
        if self.doorman.is_overrun:
            transport.abort()
        else:
            self._refuse(refusal)

    def connection_lost(self, exc: Exception | None) -> None:
        """Notify the running requests and clean up."""
        self._stop_deadline()
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
        self.connections.discard(self)
        self.doorman.leave(self._host)
        self.parser = None
        self.flow.resume_writing()
        if exc is None:
            self.transport.close()
        running, self._running = self._running, None
        if self.cycle is not None and self.cycle is not running:
            self.cycle.leave()
        if running is not None:
            running.leave()

    def data_received(self, data: bytes) -> None:
        """Parse bytes, or find their head in the cache. Refuse a head that is too large."""
        if self._refused:
            return
        before = self.cycle
        is_free = not self._in_message and (before is None or (before.response_complete and before.keep_alive))
        if is_free and (found := self.heads.find(data)) is not None:
            self._serve(*found)
            return
        self._pending_bytes += len(data)
        self._begun = 0
        self._idle_since = None
        self._parse(data)
        if self._pending_bytes > self.head_bytes:
            self._refuse(HeadersTooLarge())
        if not self._refused:
            self._watch_head()
            self._remember(data, is_alone=is_free)

    def _serve(self, head: Head, headers: Headers, body: bytes) -> None:
        """Begin a complete request whose head was found in the cache."""
        self._idle_since = None
        if self._deadline is not None:
            self._stop_deadline()
        cycle = self.cycle = self._make_cycle(head, headers)
        cycle.length = len(body)
        cycle.hear(body, more=False)
        self._run(cycle)

    def _remember(self, data: bytes, *, is_alone: bool) -> None:
        if is_alone and self._begun == 1:
            self.heads.keep(data, self.cycle.head)

    def _parse(self, data: bytes) -> None:
        """Parse bytes. A request with `Upgrade` is parsed again without that header, as plain HTTP/1.1."""
        while data:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:  # the parser stops here and gives the rest back
                if self._refused:
                    return
                data = self._write_head() + data[upgrade.args[0] :]
                self.parser = httptools.HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
            except httptools.HttpParserError as error:
                self._refuse_unread(error)
                return
            else:
                return

    def _write_head(self) -> bytes:
        """Return the latest head as received, without its `Upgrade`."""
        lines = [name + b": " + value + b"\r\n" for name, value in self.headers if name != b"upgrade"]
        first = b"%b %b HTTP/%b\r\n" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        return b"".join([first, *lines, b"\r\n"])

    # -- callbacks of the parser

    def on_message_begin(self) -> None:
        """Start collecting a request."""
        self._in_message = True
        self.url = b""
        self.headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect one header."""
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Begin the request, unless its head is too large or has to be parsed again."""
        # Counted exactly, since a body may have arrived too. Pipelined heads may exceed this by one read.
        if self._pending_bytes > self.head_bytes and self._head_size() > self.head_bytes:
            self._refuse(HeadersTooLarge())
            raise HeadersTooLarge  # stops the parser
        if self.parser.should_upgrade():
            if self.parser.get_method() == b"CONNECT":
                raise InvalidRequest  # it has no path, and cannot be parsed again
            return
        self._pending_bytes = 0
        self._begun += 1
        version = self.parser.get_http_version()
        head = Head(
            self.parser.get_method().decode("ascii"),
            self.url,
            version,
            self.headers,
            keep_alive=version != "1.0" and self.parser.should_keep_alive(),
        )
        self.headers = []  # trailers are not part of the head
        if (repeated := head.find_repeated()) is not None:
            self._refuse(
                InvalidRequest(f"The header `{repeated}` was sent more than once. Send it once.", code="invalid_http")
            )
            raise InvalidRequest  # stops the parser
        before, cycle = self.cycle, self._make_cycle(head, head.headers)
        self.cycle = cycle
        if before is None or before.response_complete:
            self._run(cycle)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, self.app))

    def on_body(self, body: bytes) -> None:
        """Pass a piece of the body to the request."""
        self._pending_bytes = 0
        cycle = self.cycle
        if not cycle.response_complete:
            cycle.hear(body, more=True)
            if len(cycle.body) > HIGH_WATER_LIMIT:
                self.flow.pause_reading()

    def on_message_complete(self) -> None:
        """Keep reading although nothing is expected, because only a reader notices a disconnect."""
        if self.parser.should_upgrade():
            return
        self._in_message = False
        if not self.cycle.response_complete:
            self.cycle.hear(b"", more=False)
        if not self.pipeline:
            self.flow.resume_reading()

    def _refuse_unread(self, reason: httptools.HttpParserError) -> None:
        """Refuse bytes that the parser could not read, with the reason."""
        problem = "its target is not a path" if isinstance(reason, httptools.HttpParserCallbackError) else reason
        self._refuse(InvalidRequest(f"This is not a valid HTTP/1.1 request: {problem}.", code="invalid_http"))

    # -- the sequence of requests

    def _make_cycle(self, head: Head, headers: Headers) -> Cycle:
        cycle = Cycle(head, self.transport, self.flow, self.logger, self.server_state, self.on_response_complete)
        cycle.scope = {
            **head.scope,
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme or "http",
            "headers": headers,
            "state": self.app_state.copy(),
            "extensions": {CYCLE: cycle},
        }
        return cycle

    def _run(self, cycle: Cycle) -> None:
        """Run the application for a request, or refuse it at the concurrency limit."""
        limit = self.limit_concurrency
        if limit is not None and len(self.tasks) >= limit:
            cycle.refuse(Overloaded())
            return
        self._running = cycle
        task = self.loop.create_task(cycle.run_asgi(self.app))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def on_response_complete(self) -> None:
        """Start the next pipelined request, or wait for one until the keep-alive timeout."""
        self._running = None
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        if self.flow.read_paused:
            self.flow.resume_reading()
        if self.pipeline:
            self._run(cast("Cycle", self.pipeline.pop()[0]))
            return
        if self._refusal is not None:
            self._write_refusal(self._refusal)
            return
        self._idle_since = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._await_next(self.timeout_keep_alive)

    def _await_next(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self._end_idle)

    def _end_idle(self) -> None:
        """Close the connection if it has been idle long enough. One timer serves many requests."""
        self.timeout_keep_alive_task = None
        if self._idle_since is not None:
            left = self._idle_since + self.timeout_keep_alive - self.loop.time()
            if left > 0.001:
                self._await_next(left)
            elif _count_queued(self.transport):  # the last response was never read: drop it from the send queue as well
                self._reset()
            else:
                self.transport.close()

    # -- clients that do not read

    def check_progress(self, now: float) -> None:
        """Reset the connection if the client has read nothing for the write timeout."""
        outlet = None if self._running is None else self._running.outlet
        unread = self.transport.get_write_buffer_size() if outlet is None else outlet.left
        if unread:
            unread += _count_queued(self.transport)
        if not unread:
            self._unread = None
            if self._is_narrow:
                self._is_narrow = False
                self.transport.set_write_buffer_limits()
        elif self._unread is None or unread < self._unread or outlet is not self._outlet:
            self._unread, self._outlet, self._progress_at = unread, outlet, now
        elif not self._is_narrow:
            # From now on nothing more is written until the client has read everything, so unread bytes show progress.
            self._is_narrow = True
            self.transport.set_write_buffer_limits(0)
            self._unread, self._progress_at = unread, now
        elif now - self._progress_at >= self.doorman.bounds.write_seconds:
            metrics.CONNECTIONS_CUT.count("not_reading")
            self._reset()

    def _reset(self) -> None:
        """Abort the connection and drop what is in the send queue."""
        with suppress(OSError, AttributeError):
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        self.transport.abort()

    def _head_size(self) -> int:
        return len(self.url) + sum(map(len, chain.from_iterable(self.headers)))

    def _watch_head(self) -> None:
        # Bytes arrived without a complete head. uvicorn has stopped its keep-alive timer for them.
        waiting = not self.cycle or self.cycle.response_complete
        if waiting and self._deadline is None:
            self._start_deadline(self.head_seconds)
        elif not waiting and self._deadline is not None:
            self._stop_deadline()

    def _start_deadline(self, seconds: float) -> None:
        self._deadline = self.loop.call_later(seconds, self.transport.close)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _refuse(self, error: PenstockError) -> None:
        """Send an error outside of any request, after the complete requests are answered."""
        if self._refused:
            return
        self._refused = True
        self._stop_deadline()
        latest, running = self.cycle, self._running
        if latest is not None and latest is not running and self.pipeline and not latest.has_whole_body:
            self.pipeline.popleft()  # it has not begun, and will not
        if running is not None and running.has_whole_body:
            self._refusal = error
            return
        if running is not None:
            running.disconnected = True
            running.notify()
            if running.response_started:
                self.transport.close()
                return
        self._write_refusal(error)

    def _write_refusal(self, error: PenstockError) -> None:
        """Write the error, and close after the client had a moment to read it."""
        response = render_error(error, new_id("req"), closes=True)
        headers = self.server_state.default_headers + response.headers
        lines = [name + b": " + value + b"\r\n" for name, value in headers]
        self.transport.write(b"".join([STATUS_LINE[response.status], *lines, b"\r\n", response.body]))
        self.transport.write_eof()
        self._start_deadline(LINGER_SECONDS)

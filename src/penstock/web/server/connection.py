"""The HTTP/1.1 connection, with the bounds that uvicorn leaves open and every refusal in our error shape."""

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

LINGER_NOT: Final = struct.pack("ii", 1, 0)


def _count_queued(transport: Any) -> int:
    """Return the bytes that the system was given and the caller's has not taken; 0 where it does not tell.

    A slow reader takes some of these for long before the system wants more of us.
    """
    try:
        import fcntl  # noqa: PLC0415  not on every platform
        import termios  # noqa: PLC0415

        queued = fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, struct.pack("i", 0))
    except (ImportError, OSError, ValueError):
        return 0
    return struct.unpack("i", queued)[0]


class GuardedConnection(HttpToolsProtocol):
    """uvicorn's protocol, plus a deadline and a size for a request's head.

    It uses uvicorn's private attributes. So uvicorn's version is pinned, and tests/unit/web/server/test_connection.py
    checks them.
    """

    head_seconds: ClassVar[float] = 10.0
    head_bytes: ClassVar[int] = 65_536
    heads: ClassVar[Heads] = Heads()
    doorman: ClassVar[Doorman] = Doorman()

    app: Any
    parser: Any
    cycle: Any  # a `Cycle`, the latest: of pipelined requests not the one that is answered
    _running: Cycle | None = None
    _deadline: asyncio.TimerHandle | None = None
    _idle_since: float | None = None
    _pending_bytes = 0  # since the parser last told of a whole head or a part of a body
    _in_message = False  # the parser is in the middle of a request
    _begun: int = 0  # requests that began in the latest read
    _refused = False
    _refusal: PenstockError | None = None  # to be told once whoever asked before is answered
    _host = ""
    _outlet: FileSocket | None = None  # which `_unread` is of
    _unread: int | None = None  # bytes that the caller had not taken when this was last looked at
    _progress_at = 0.0
    _is_narrow = False  # nothing is written while anything is unread

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Give the first request its time."""
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
        """Tell whoever works for the caller, and leave nothing behind."""
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
        """Parse, and see that the bytes lead somewhere."""
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
        """Begin a request that is wholly here, and of which nothing has to be parsed."""
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
        """Hand bytes to the parser. An `Upgrade` is a wish: the request is read again without it, as HTTP/1.1."""
        while data:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as wish:  # what comes next, it says, is for others to read
                if self._refused:
                    return
                data = self._write_head() + data[wish.args[0] :]
                self.parser = httptools.HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn's
            except httptools.HttpParserError as error:
                self._refuse_unread(error)
                return
            else:
                return

    def _write_head(self) -> bytes:
        """The latest head as it came, but for its `Upgrade`."""
        lines = [name + b": " + value + b"\r\n" for name, value in self.headers if name != b"upgrade"]
        first = b"%b %b HTTP/%b\r\n" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        return b"".join([first, *lines, b"\r\n"])

    # -- what the parser tells

    def on_message_begin(self) -> None:
        """A request begins."""
        self._in_message = True
        self.url = b""
        self.headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        """A line of its head."""
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Begin the request, unless its head is too large, or is to be read again."""
        # Exact, as a body may have come along. Pipelined heads may come to one read more.
        if self._pending_bytes > self.head_bytes and self._head_size() > self.head_bytes:
            self._refuse(HeadersTooLarge())
            raise HeadersTooLarge  # stops the parser
        if self.parser.should_upgrade():
            if self.parser.get_method() == b"CONNECT":
                raise InvalidRequest  # there is no path in it, and nothing to be read again
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
        self.headers = []  # what comes after the body is no part of the head
        if (repeated := head.find_repeated()) is not None:
            self._refuse(
                InvalidRequest(
                    f"The header `{repeated}` was sent more than once, and may be sent once.", code="invalid_http"
                )
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
        """Pass a part of the body on."""
        self._pending_bytes = 0
        cycle = self.cycle
        if not cycle.response_complete:
            cycle.hear(body, more=True)
            if len(cycle.body) > HIGH_WATER_LIMIT:
                self.flow.pause_reading()

    def on_message_complete(self) -> None:
        """Go on reading, though nothing is expected: only who reads hears of a caller that leaves."""
        if self.parser.should_upgrade():
            return
        self._in_message = False
        if not self.cycle.response_complete:
            self.cycle.hear(b"", more=False)
        if not self.pipeline:
            self.flow.resume_reading()

    def _refuse_unread(self, reason: httptools.HttpParserError) -> None:
        """Refuse what the parser could not read, saying why."""
        told = "its target is not a path" if isinstance(reason, httptools.HttpParserCallbackError) else reason
        self._refuse(InvalidRequest(f"This is not a valid HTTP/1.1 request: {told}.", code="invalid_http"))

    # -- one request after the other

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
        """Have the request answered."""
        most = self.limit_concurrency
        if most is not None and len(self.tasks) >= most:
            cycle.refuse(Overloaded())
            return
        self._running = cycle
        task = self.loop.create_task(cycle.run_asgi(self.app))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def on_response_complete(self) -> None:
        """Go on to the next request, or wait for it, though not for ever."""
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
        """One timer for many requests: it looks whether the connection has really been idle for so long."""
        self.timeout_keep_alive_task = None
        if self._idle_since is not None:
            left = self._idle_since + self.timeout_keep_alive - self.loop.time()
            if left > 0.001:
                self._await_next(left)
            elif _count_queued(self.transport):  # nobody has read the last answer: the system is not to keep it either
                self._reset()
            else:
                self.transport.close()

    # -- readers that do not read

    def check_progress(self, now: float) -> None:
        """Cut the connection off if its reader has taken nothing of what waits for it for too long."""
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
            # From now on nobody writes more before the caller has read it all: so what is unread tells of progress.
            self._is_narrow = True
            self.transport.set_write_buffer_limits(0)
            self._unread, self._progress_at = unread, now
        elif now - self._progress_at >= self.doorman.bounds.write_seconds:
            metrics.CONNECTIONS_CUT.count("not_reading")
            self._reset()

    def _reset(self) -> None:
        """End the connection at once: the system, too, forgets what nobody reads."""
        with suppress(OSError, AttributeError):
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
        self.transport.abort()

    def _head_size(self) -> int:
        return len(self.url) + sum(map(len, chain.from_iterable(self.headers)))

    def _watch_head(self) -> None:
        # Bytes came and there is still nothing to answer: uvicorn has stopped its keep-alive timer for them.
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
        """Answer outside of any request, after those that are whole."""
        if self._refused:
            return
        self._refused = True
        self._stop_deadline()
        latest, running = self.cycle, self._running
        if latest is not None and latest is not running and self.pipeline and not latest.has_whole_body:
            self.pipeline.popleft()  # it was not begun, and never will be
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
        """Tell it, and close once the caller has had a moment to read it."""
        response = render_error(error, new_id("req"), closes=True)
        headers = self.server_state.default_headers + response.headers
        lines = [name + b": " + value + b"\r\n" for name, value in headers]
        self.transport.write(b"".join([STATUS_LINE[response.status], *lines, b"\r\n", response.body]))
        self.transport.write_eof()
        self._start_deadline(LINGER_SECONDS)

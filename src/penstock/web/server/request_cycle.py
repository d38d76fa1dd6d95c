"""One request and its response: uvicorn's cycle with less work per request, and with errors in our shape."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Final, cast

from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle
from uvicorn.server import ServerState

from penstock.domain.ids import new_id
from penstock.errors import InternalError, Overloaded, PenstockError
from penstock.fairness.body_memory import SMALL_BODY_BYTES, Hold
from penstock.web.server.asgi import Headers, Message
from penstock.web.server.error_response import render_error
from penstock.web.server.error_shapes import find_shape
from penstock.web.server.head_cache import Head
from penstock.web.server.sendfile import FileSocket

FILE: Final = "http.response.zerocopysend"
"""Type of the ASGI message whose body is `count` bytes of an open `file`, starting at `offset`."""
SEPARATE_WRITE_BYTES: Final = 1 << 14
"""Bodies from this size on are written apart from the head, to save a copy."""


class _Done:
    """An awaitable that is already done. Sends rarely wait, and a coroutine for each would be expensive."""

    __slots__ = ()

    def __await__(self) -> Generator[None]:
        return cast("Generator[None]", iter(()))


_DONE: Final = _Done()


class Cycle(RequestResponseCycle):
    """Writes the head together with the first piece of the body. Ends HTTP/1.0 responses with the connection."""

    scope: Any
    body: bytes | bytearray = b""
    more_body = True
    waiting_for_100_continue = False
    disconnected = False
    response_started = False
    response_complete = False
    chunked_encoding: bool | None = None
    expected_content_length = 0
    status = 0
    request_id = ""
    extra = b""
    """Header lines of every response: the request id and the CORS headers."""
    gone = False
    on_gone: Callable[[], object] | None = None
    """Called when the client disconnects. Requests that cost money must not wait for `receive` to report it."""
    outlet: FileSocket | None = None
    """The socket while a file is sent, past the transport."""
    hold: Hold | None = None
    """The memory held for the request's body until the request ends."""
    _head: bytes | None = None
    _ends_with_connection = False
    _has_news = False
    _waiter: asyncio.Future[None] | None = None

    def __init__(
        self,
        head: Head,
        transport: Any,
        flow: FlowControl,
        logger: logging.Logger,
        server: ServerState,
        on_response: Callable[[], None],
    ) -> None:
        """Set only what differs between requests. Everything else is a class attribute."""
        self.head = head
        self.length = head.length
        self.transport = transport
        self.flow = flow
        self.logger = logger
        self.default_headers = server.default_headers
        self.on_response = on_response
        self.keep_alive = head.keep_alive
        if b"expect" in head.fields:
            self.waiting_for_100_continue = head.fields[b"expect"].lower() == b"100-continue"

    def hear(self, body: bytes, *, more: bool) -> None:
        """Store a piece of the body and wake up `receive`."""
        if not self.body:
            self.body = body
        else:
            self.body = bytearray(self.body) if isinstance(self.body, bytes) else self.body
            self.body += body
        self.more_body = more
        self.notify()

    def notify(self) -> None:
        """Wake up `receive`."""
        self._has_news = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def receive(self) -> Any:
        """Return the body received so far, or a disconnect."""
        if self.waiting_for_100_continue and not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.waiting_for_100_continue = False
        if not self.disconnected and not self.response_complete:
            self.flow.resume_reading()
            while not (self._has_news or self.disconnected or self.response_complete):
                if self._waiter is None or self._waiter.done():
                    self._waiter = asyncio.get_running_loop().create_future()
                await asyncio.shield(self._waiter)
            self._has_news = False
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        body, self.body = self.body, b""
        return {"type": "http.request", "body": bytes(body), "more_body": self.more_body}

    @property
    def has_whole_body(self) -> bool:
        """Return whether the request has arrived completely."""
        return not self.more_body

    def take_small_body(self) -> bytes:
        """Return the body if it is complete and small enough not to count as memory, else nothing."""
        if len(self.body) > SMALL_BODY_BYTES:
            return b""
        return self.take_whole_body()

    def take_whole_body(self) -> bytes:
        """Return the body if it is complete and its length was declared, else nothing. `receive` returns the others."""
        if self.more_body or self.length is None or not self.body:
            return b""
        body, self.body, self._has_news = self.body, b"", False
        return bytes(body)

    def release(self) -> None:
        """Release the memory held for the body."""
        if self.hold is not None:
            self.hold.release()

    def leave(self) -> None:
        """Note that the client disconnected, and notify the request."""
        self.gone = True
        if not self.response_complete:
            self.disconnected = True
        self.notify()
        if self.on_gone is not None:
            self.on_gone()

    def cut(self) -> None:
        """Close the connection within a response, so that the client sees that it is incomplete."""
        self.disconnected = True
        self.transport.close()

    async def run_asgi(self, app: ASGI3Application) -> None:
        """Run the application. Answer with an error if it fails before its response begins."""
        try:
            send: Any = self.send
            await app(self.scope, self.receive, send)
            self._check_complete()
        except BaseException as error:
            self.logger.error("exception in the ASGI application", exc_info=error)  # noqa: TRY400  also for other than Exception
            if not self.response_started:
                # A cancellation comes from the drain deadline. Anything else is a bug.
                self.refuse(InternalError() if isinstance(error, Exception) else Overloaded())
            self.transport.close()
        finally:
            self.on_response = _ignore
            self.release()

    def refuse(self, error: PenstockError) -> None:
        """Answer with an error without running the application."""
        shape = find_shape(self.scope["path"])
        response = render_error(error, self.request_id or new_id("req"), closes=True, shape=shape)
        self._send(response.start())
        self._send({"type": "http.response.body", "body": response.body})

    def _check_complete(self) -> None:
        if not (self.response_complete or self.disconnected):
            raise RuntimeError("The application returned without completing its response.")

    # -- the response: by ASGI messages, or piece by piece once it has begun

    @property
    def is_full(self) -> bool:
        """Return whether writing is paused because the client reads too slowly."""
        return self.flow.write_paused and not self.disconnected

    def respond(self, lines: bytes, body: bytes) -> None:
        """Send a whole response with status 200. The header lines must be valid."""
        if not self.disconnected:
            self.begin(200, lines, len(body))
            self._send_body(body, more=False)

    def begin(self, status: int, lines: bytes, length: int | None = None) -> None:
        """Begin a response, chunked if its length is not known. The header lines must be valid."""
        self.status, self.response_started, self.waiting_for_100_continue = status, True, False
        framing = b""
        if length is not None:
            self.expected_content_length, self.chunked_encoding = length, False
            framing = b"content-length: %d\r\n" % length
        elif self.scope["method"] != "HEAD" and status not in (204, 304):
            self.chunked_encoding = self.scope["http_version"] != "1.0"
            self._ends_with_connection = not self.chunked_encoding
            framing = b"transfer-encoding: chunked\r\n" if self.chunked_encoding else b""
        last = b"\r\n" if self.keep_alive else b"connection: close\r\n\r\n"
        first = STATUS_LINE[status], _write_defaults(self.default_headers), self.extra
        self._head = b"".join([*first, lines, framing, last])

    def write(self, piece: bytes) -> bool:
        """Send a piece of the body without waiting. Return False if the client does not keep up."""
        if self.disconnected or not piece:
            return True
        if self.chunked_encoding and self._head is None:  # the usual case
            self.transport.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        else:
            self._send_body(piece, more=True)
        return not self.flow.write_paused

    async def drain(self) -> None:
        """Wait until the client has read enough to write more."""
        await self.flow.drain()

    def send(self, message: Message) -> Awaitable[None]:  # type: ignore[override]  # an awaitable like a coroutine
        """Write a message of the response. Awaiting the result waits while the client does not read."""
        if message["type"] == FILE:
            return self._send_file(message["file"], message["offset"], message["count"])
        if self.is_full:
            return self._send_later(message)
        self._send(message)
        return _DONE

    async def _send_later(self, message: Message) -> None:
        await self.flow.drain()
        self._send(message)

    def _send(self, message: Message) -> None:
        if self.disconnected:
            return
        if self.response_complete:
            raise RuntimeError(f"Unexpected message {message['type']!r} after the response.")
        if (message["type"] == "http.response.start") is self.response_started:
            raise RuntimeError(f"Unexpected message {message['type']!r}.")
        if self.response_started:
            self._send_body(message.get("body", b""), more=message.get("more_body", False))
        else:
            self._begin(message["status"], message.get("headers", []))

    def _begin(self, status: int, headers: Headers) -> None:
        lines: list[bytes] = []
        length = None
        for name, value in headers:
            if name == b"content-length":
                length = int(value)
            elif name == b"connection":
                self.keep_alive = self.keep_alive and b"close" not in value.lower()
            elif name != b"x-request-id" or not self.request_id:
                lines.append(b"%b: %b\r\n" % (name, value))
        text = b"".join(lines)
        if text.count(b"\n") != len(lines) or text.count(b"\r") != len(lines) or b"\0" in text:
            raise RuntimeError("A response header contains a line break or a null byte.")
        self.begin(status, text, length)

    def _send_body(self, body: bytes, *, more: bool) -> None:
        if self.scope["method"] == "HEAD":
            self.expected_content_length, body = 0, b""
        elif self.chunked_encoding:
            if body:
                body = b"%x\r\n%b\r\n" % (len(body), body)
            if not more:
                body += b"0\r\n\r\n"
        elif not self._ends_with_connection:
            self._count(len(body), more=more)
        self._write(body)
        if not more:
            self._complete()

    async def _send_file(self, file: int, start: int, count: int) -> None:
        """Send the whole body from a file, after everything written before has left."""
        if self.disconnected:
            return
        self.transport.set_write_buffer_limits(0)
        self._write(b"")
        await self.flow.drain()
        if self.disconnected:
            return
        outlet = self.outlet = FileSocket(self.transport, count)
        self.on_gone = outlet.close
        try:
            sent = await outlet.send(file, start, count)
        except ConnectionError:
            self.cut()
            return
        finally:
            self.outlet = None
        if not self.disconnected:
            self.transport.set_write_buffer_limits()
            self._count(sent, more=False)
            self._complete()

    def _complete(self) -> None:
        self.response_complete = True
        if self._waiter is not None:
            self.notify()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()

    def _count(self, size: int, *, more: bool) -> None:
        self.expected_content_length -= size
        if self.expected_content_length < 0 or (self.expected_content_length and not more):
            raise RuntimeError("The length of the response body differs from its Content-Length.")

    def _write(self, body: bytes) -> None:
        head, self._head = self._head, None
        if head is not None and len(body) < SEPARATE_WRITE_BYTES:
            body, head = head + body, None
        if head is not None:
            self.transport.write(head)
        if body:
            self.transport.write(body)


_defaults: tuple[Headers, bytes] = ([], b"")


def _write_defaults(headers: Headers) -> bytes:
    """Return the default headers as lines, cached while uvicorn does not change them, for a second."""
    global _defaults  # noqa: PLW0603  one for all connections
    if _defaults[0] is not headers:
        _defaults = headers, b"".join([b"%b: %b\r\n" % header for header in headers])
    return _defaults[1]


def _ignore() -> None:
    """Do nothing: the connection may already serve the next request."""

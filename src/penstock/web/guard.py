"""The HTTP/1.1 connection, with the bounds that uvicorn leaves open and every refusal in our error shape."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from itertools import chain
from typing import ClassVar

import httptools
from uvicorn._types import ASGISendCallable, HTTPScope
from uvicorn.protocols.http.flow_control import service_unavailable
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from penstock.errors import InternalError, InvalidRequest, Overloaded, PenstockError
from penstock.identifiers import new_id
from penstock.web.limits import LINGER_SECONDS, render_error


class HeadersTooLarge(InvalidRequest):
    """The request line and headers together are larger than the 65536 bytes allowed."""

    code = "headers_too_large"
    status = 431


class Guarded(HttpToolsProtocol):
    """uvicorn's protocol, plus a deadline and a size for a request's head.

    It leans on uvicorn's attributes, so uvicorn's version is pinned and tests/unit/test_guard.py holds it to this.
    """

    head_seconds: ClassVar[float] = 10.0
    head_bytes: ClassVar[int] = 65_536

    _deadline: asyncio.TimerHandle | None = None
    _pending_bytes = 0  # since the parser last told of a whole head or a part of a body
    _refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Give the first request its time."""
        super().connection_made(transport)
        self._start_deadline(self.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave no timer behind."""
        self._stop_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse, and see that the bytes lead somewhere."""
        if self._refused:
            return
        self._pending_bytes += len(data)
        super().data_received(data)
        if self._pending_bytes > self.head_bytes:
            self._refuse(HeadersTooLarge())
        if not self._refused:
            self._watch_head()

    def on_headers_complete(self) -> None:
        """Begin the request, unless its head is too large."""
        # A head that came in one piece was parsed before it could be counted.
        size = len(self.url) + sum(map(len, chain.from_iterable(self.headers)))
        if size > self.head_bytes:
            self._refuse(HeadersTooLarge())
            raise HeadersTooLarge  # stops the parser
        self._pending_bytes = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Pass a part of the body on."""
        self._pending_bytes = 0
        super().on_body(body)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  uvicorn's words are the same for every cause
        """Refuse what the parser could not read, saying why."""
        reason = sys.exception()
        told = "its target is not a path" if isinstance(reason, httptools.HttpParserCallbackError) else reason
        self._refuse(InvalidRequest(f"This is not a valid HTTP/1.1 request: {told}.", code="invalid_http"))

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Callable[..., Awaitable[None]]) -> None:
        cycle.__class__ = _Cycle  # uvicorn offers no other way to name it
        super()._start_asgi_task(cycle, _answer_overloaded if app is service_unavailable else app)

    def _unsupported_upgrade_warning(self) -> None:
        """An `Upgrade` is a wish; the request is answered as HTTP/1.1."""

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
        """Answer outside of any request, and close once the caller has had a moment to read it."""
        if self._refused:
            return
        self._refused = True
        self._stop_deadline()
        cycle = self.cycle
        if cycle and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
            if cycle.response_started or self.pipeline:
                self.transport.close()
                return
        headers, body = render_error(error, new_id("req"))
        lines = [name + b": " + value + b"\r\n" for name, value in self.server_state.default_headers + headers]
        self.transport.write(b"".join([STATUS_LINE[error.status], *lines, b"\r\n", body]))
        self.transport.write_eof()
        self._start_deadline(LINGER_SECONDS)


class _Cycle(RequestResponseCycle):
    """One request and its response."""

    async def send_500_response(self) -> None:
        # A cancel comes at the end of a drain; anything else is a mistake of ours.
        error = Overloaded() if isinstance(sys.exception(), asyncio.CancelledError) else InternalError()
        await _answer(error, self.scope, self.send)


async def _answer_overloaded(scope: HTTPScope, _receive: object, send: ASGISendCallable) -> None:
    await _answer(Overloaded(), scope, send)


async def _answer(error: PenstockError, scope: HTTPScope, send: ASGISendCallable) -> None:
    headers, body = render_error(error, scope.get("state", {}).get("request_id") or new_id("req"))
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})

"""The HTTP/1.1 connection, with the bounds that uvicorn leaves open and every refusal in our error shape."""

import asyncio
import sys
from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Any, ClassVar, cast

import httptools
from uvicorn._types import ASGI3Application, ASGIReceiveCallable, ASGISendCallable, ASGISendEvent, Scope
from uvicorn.protocols.http.flow_control import service_unavailable
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from penstock.errors import HeadersTooLarge, InternalError, InvalidRequest, Overloaded, PenstockError
from penstock.identifiers import new_id
from penstock.web.limits import CONNECTION, LINGER_SECONDS, render_error


class Guarded(HttpToolsProtocol):
    """uvicorn's protocol, plus a deadline and a size for a request's head.

    It leans on uvicorn's attributes, so uvicorn's version is pinned and tests/unit/test_guard.py holds it to this.
    """

    head_seconds: ClassVar[float] = 10.0
    head_bytes: ClassVar[int] = 65_536

    _deadline: asyncio.TimerHandle | None = None
    _pending_bytes = 0  # since the parser last told of a whole head or a part of a body
    _refused = False

    on_gone: Callable[[], object] | None = None
    """Called when the caller leaves: a request that costs money must not wait for `receive` to tell."""
    gone = False

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Give the first request its time."""
        super().connection_made(transport)
        self._start_deadline(self.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave no timer behind."""
        self._stop_deadline()
        super().connection_lost(exc)
        self.gone = True
        if self.on_gone is not None:
            self.on_gone()

    @property
    def has_whole_body(self) -> bool:
        """Whether nothing of the request is on its way any more."""
        return not self.cycle.more_body

    def cut(self) -> None:
        """End the connection in the middle of a response, after what was sent: the caller sees that more is missing."""
        self.cycle.disconnected = True
        self.transport.close()

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
        # Exact, as a body may have come along. Pipelined heads may come to one read more.
        if self._pending_bytes > self.head_bytes and self._head_size() > self.head_bytes:
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

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        cast("dict[str, Any]", cycle.scope)["extensions"] = {CONNECTION: self}
        shaped = _answer_overloaded if app is service_unavailable else partial(_answer_failures, cycle, app)
        super()._start_asgi_task(cycle, shaped)

    def _unsupported_upgrade_warning(self) -> None:
        """An `Upgrade` is a wish; the request is answered as HTTP/1.1."""

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


async def _answer_failures(
    cycle: RequestResponseCycle,
    app: ASGI3Application,
    scope: Scope,
    receive: ASGIReceiveCallable,
    send: ASGISendCallable,
) -> None:
    if cycle.scope["http_version"] == "1.0":
        send = _without_chunks(cycle, send)
    try:
        await app(
            scope, receive, partial(_send_unchunked, cycle, send) if cycle.scope["http_version"] == "1.0" else send
        )
    except BaseException as error:
        if not cycle.response_started:
            # A cancel comes at the end of a drain; anything else is a mistake of ours.
            await _answer(Overloaded() if isinstance(error, asyncio.CancelledError) else InternalError(), scope, send)
        raise  # uvicorn logs it and closes the connection


def _without_chunks(cycle: RequestResponseCycle, send: ASGISendCallable) -> ASGISendCallable:
    """HTTP/1.0 knows no chunks, which uvicorn forgets: a body of unknown length ends with the connection."""
    unknown = False

    async def send_plain(message: ASGISendEvent) -> None:
        nonlocal unknown
        if message["type"] == "http.response.start":
            unknown = all(name != b"content-length" for name, _ in message.get("headers", ()))
            cycle.chunked_encoding = False if unknown else None
        elif message["type"] == "http.response.body" and unknown:
            cycle.expected_content_length = len(message.get("body", b""))  # uvicorn counts it down
        await send(message)

    return send_plain


async def _send_unchunked(cycle: RequestResponseCycle, send: ASGISendCallable, message: Any) -> None:
    """To an HTTP/1.0 client: uvicorn would send chunks, which it does not know. Its answer ends with the connection."""
    if message["type"] == "http.response.start":
        names = {name.lower() for name, _ in message.get("headers", ())}
        if b"content-length" not in names:
            cycle.chunked_encoding = False
    elif cycle.chunked_encoding is False and not cycle.expected_content_length:
        cycle.expected_content_length = len(message.get("body", b""))  # as much as there is, each time
    await send(message)


async def _answer_overloaded(scope: Scope, _receive: object, send: ASGISendCallable) -> None:
    await _answer(Overloaded(), scope, send)


async def _answer(error: PenstockError, scope: Scope, send: ASGISendCallable) -> None:
    headers, body = render_error(error, scope.get("state", {}).get("request_id") or new_id("req"))
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})

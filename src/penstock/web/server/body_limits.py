"""Limits on the size of a request body and on the time it may take to arrive."""

import asyncio
import re
from collections.abc import Awaitable
from contextlib import suppress

from penstock.domain.files import MAX_BYTES
from penstock.errors import BodyTooLarge, PenstockError, RequestTimeout
from penstock.fairness.body_memory import SMALL_BODY_BYTES
from penstock.web.server.asgi import CYCLE, Application, Message, Receive, Send
from penstock.web.server.error_response import render_error
from penstock.web.server.error_shapes import find_shape

MAX_STALLS = 10
"""A whole body may take this many times the stall timeout, so one that only drips is cut off in the end."""
MIN_BYTES_PER_SECOND = 32 << 10
"""Bytes per second that a large body needs on average after one stall timeout. It holds memory others wait for."""
LINGER_SECONDS = 1.0
"""Idle timeout of a refused sender. Closing while bytes are still arriving would reset the connection and lose the
answer."""
UPLOADS = frozenset({"/api/v1/files", "/api/v1/verify", "/replicate/v1/files"})
"""Paths whose bodies are files. They go to the disk as they arrive, so that they may be larger and take longer."""
FORMS = re.compile(r"/+(?:llm/+)?(?:v1/+)?(?:images/+edits|videos(?:/+(?:edits|extensions))?)")
"""Paths that take forms with files, besides small JSON bodies."""
UPLOAD_FOLDERS = ("/api/v1/files/tus/", "/fal/files/")
"""Beginnings of the paths of uploads that have a path of their own each."""
MAX_UPLOAD_BYTES = max(MAX_BYTES.values()) + (1 << 20)
"""Bytes of a form with the largest file. The limit of the file itself depends on its kind."""
MAX_LINGER_SECONDS = 30.0
"""Seconds after which a refused sender is cut off even if it still sends."""


class BodyLimits:
    """Refuses a body that is too large, declared or counted, and one that stops arriving."""

    def __init__(self, app: Application, max_body_bytes: int, body_seconds: float = 30) -> None:
        self._app = app
        self._max_body_bytes = max_body_bytes
        self._body_seconds = body_seconds

    def __call__(self, scope: Message, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve one request."""
        if scope["type"] != "http":
            return self._app(scope, receive, send)
        cycle = scope["extensions"][CYCLE]
        declared = cycle.length
        if declared is not None and declared > self._limit_of(scope):
            return _answer(_too_large(self._limit_of(scope)), scope, receive, send)
        # Small bodies arrive together with the head, so there is nothing to wait for.
        if declared == 0 or (declared is not None and cycle.has_whole_body):
            return self._app(scope, receive, send)
        return self._serve_counted(scope, receive, send)

    def _limit_of(self, scope: Message) -> int:
        most = self._max_body_bytes
        return max(most, MAX_UPLOAD_BYTES) if _is_upload(scope) else most

    async def _serve_counted(self, scope: Message, receive: Receive, send: Send) -> None:
        declared = scope["extensions"][CYCLE].length or 0
        exchange = _Exchange(receive, send, self._limit_of(scope), self._body_seconds, declared)
        exchange.is_upload = _is_upload(scope)
        try:
            await self._app(scope, exchange.receive, exchange.send)
        except Exception:
            if exchange.failure is None or exchange.started:
                raise
        if exchange.failure is not None and not exchange.started:
            await _answer(exchange.failure, scope, receive, send)


def _is_upload(scope: Message) -> bool:
    path: str = scope["path"]
    return path in UPLOADS or path.startswith(UPLOAD_FOLDERS) or (FORMS.fullmatch(path) is not None and _is_form(scope))


def _is_form(scope: Message) -> bool:
    content_type = scope["extensions"][CYCLE].head.fields.get(b"content-type", b"")
    return content_type[:10].lower() == b"multipart/"


class _Exchange:
    """One request, whose body is counted and timed while it arrives."""

    __slots__ = (
        "_begun_at",
        "_complete",
        "_declared",
        "_max_body_bytes",
        "_now",
        "_receive",
        "_received",
        "_seconds",
        "_send",
        "failure",
        "is_upload",
        "started",
    )

    def __init__(self, receive: Receive, send: Send, max_body_bytes: int, seconds: float, declared: int) -> None:
        self._receive = receive
        self._send = send
        self._max_body_bytes = max_body_bytes
        self._declared = declared
        self._seconds = seconds
        self._now = asyncio.get_running_loop().time
        self._begun_at: float | None = None
        self._received = 0
        self._complete = False
        self.failure: PenstockError | None = None
        self.is_upload = False
        self.started = False

    async def receive(self) -> Message:
        # Once the body is complete, only a disconnect can be received, and that has no deadline.
        if self._complete:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._due_at()):
                message = await self._receive()
        except TimeoutError:
            self.failure = RequestTimeout(
                f"The request body arrived too slowly: it stalled for {self._seconds:g} s, or came at less than "
                f"{MIN_BYTES_PER_SECOND} bytes per second.",
                suggestion="Send it again over a faster connection, or in smaller parts.",
            )
            raise self.failure from None
        self._received += len(message.get("body", b""))
        if self._received > self._max_body_bytes:
            self.failure = _too_large(self._max_body_bytes)
            raise self.failure
        self._complete = not message.get("more_body", False)
        return message

    def _due_at(self) -> float:
        """Return the deadline of the next piece. The clock starts with the first read."""
        now = self._now()
        if self._begun_at is None:
            self._begun_at = now
        allowed = self._seconds * MAX_STALLS
        if max(self._declared, self._received) > SMALL_BODY_BYTES:
            at_pace = self._seconds + self._received / MIN_BYTES_PER_SECOND
            allowed = at_pace if self.is_upload else min(allowed, at_pace)
        return min(now + self._seconds, self._begun_at + allowed)

    # Not a coroutine, so that each chunk of a stream costs a call but no frame.
    def send(self, message: Message) -> Awaitable[None]:
        if self.failure is not None and not self.started and message.get("status") != self.failure.status:
            return _drop()  # the framework took our error for an invalid body and answers that
        self.started = True
        return self._send(message)


async def _drop() -> None:
    """Discard a message."""


def _too_large(max_body_bytes: int) -> BodyTooLarge:
    return BodyTooLarge(
        f"The request body is too large: at most {max_body_bytes} bytes are allowed.",
        suggestion="Upload the file with POST /api/v1/files and send its token, or send a smaller body.",
    )


async def _answer(error: PenstockError, scope: Message, receive: Receive, send: Send) -> None:
    shape = find_shape(scope.get("path", ""))
    response = render_error(error, scope.get("state", {}).get("request_id"), closes=True, shape=shape)
    await send(response.start())
    await send({"type": "http.response.body", "body": response.body, "more_body": True})
    now = asyncio.get_running_loop().time
    deadline, is_sending = now() + MAX_LINGER_SECONDS, True
    with suppress(TimeoutError):
        while is_sending:
            async with asyncio.timeout_at(min(now() + LINGER_SECONDS, deadline)):
                is_sending = (await receive()).get("more_body", False)
    await send({"type": "http.response.body", "body": b"", "more_body": False})

"""What surrounds every request: its id, its line in the log, its count, and the answer when all else fails."""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable

from penstock import logs, metrics
from penstock.errors import InternalError
from penstock.identifiers import new_id
from penstock.web.limits import Application, Message, Receive, Send, render_error

GIVEN_ID = re.compile(rb"[A-Za-z0-9._:-]{8,100}")

log = logging.getLogger("penstock.access")


class Tracing:
    """The outermost layer."""

    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one request, and tell of it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(scope)
        state = scope["state"] = {**scope.get("state", {}), "request_id": request_id}
        status, begun = 0, time.perf_counter()

        # Not a coroutine itself, so that a stream of many chunks pays one call for each, no frame.
        def send_traced(message: Message) -> Awaitable[None]:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                others = [pair for pair in message.get("headers", ()) if pair[0] != b"x-request-id"]
                message["headers"] = [*others, (b"x-request-id", request_id.encode())]
            return send(message)

        with logs.bind(request_id=request_id):
            try:
                await self._app(scope, receive, send_traced)
            except asyncio.CancelledError:
                status = status or 499  # the client left, or the drain's time is over
                raise
            except Exception:
                log.exception("a request failed")
                if status:
                    raise
                await _answer_failure(request_id, send_traced)
            finally:
                _tell(scope, status, time.perf_counter() - begun, state.get("account"))


def _request_id(scope: Message) -> str:
    """A sane id given by the caller's proxy, else our own."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and GIVEN_ID.fullmatch(value):
            return value.decode()
    return new_id("req")


async def _answer_failure(request_id: str, send: Send) -> None:
    headers, body = render_error(InternalError(), request_id)
    await send({"type": "http.response.start", "status": 500, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _tell(scope: Message, status: int, seconds: float, account: str | None) -> None:
    route = getattr(scope.get("route"), "path", None)
    metrics.count_request(scope["method"], route, status, seconds)
    logs.tell_request(scope["method"], scope["path"], status, seconds, account)

"""What stands at the door: until the gateway is open, everyone is told to come again."""

from collections.abc import Awaitable
from typing import Any

from penstock.domain.ids import new_id
from penstock.errors import StoreUnavailable
from penstock.web.server.asgi import Application
from penstock.web.server.body_limits import render_error

ALIVE = "/healthz"


class StartupGate:
    """An ASGI application that hands everything to another, once there is one."""

    def __init__(self) -> None:
        self.app: Application | None = None

    def __call__(self, scope: Any, receive: Any, send: Any) -> Awaitable[None]:
        """Hand on, or say that the store is away."""
        if self.app is not None:
            return self.app(scope, receive, send)
        if scope["type"] == "lifespan":
            return _live(receive, send)
        return _refuse(scope["path"] == ALIVE, send)


async def _live(receive: Any, send: Any) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


async def _refuse(is_alive: bool, send: Any) -> None:  # noqa: FBT001
    told = "This process has just started, and its store does not answer yet."
    error = StoreUnavailable(told, headers={"retry-after": "1"})
    headers, body = render_error(error, new_id("req"))
    if is_alive:
        headers, body = [(b"content-type", b"application/json")], b'{"status":"starting"}'
    await send({"type": "http.response.start", "status": 200 if is_alive else error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

"""The answers of a starting server: 503 with retry headers until the gateway is open."""

from collections.abc import Awaitable
from typing import Any

from penstock.domain.ids import new_id
from penstock.errors import StoreUnavailable
from penstock.web.server.asgi import Application
from penstock.web.server.error_response import render_error
from penstock.web.server.error_shapes import find_shape

ALIVE = "/healthz"


class StartupGate:
    """An ASGI application that passes everything to `app` once that is set."""

    def __init__(self) -> None:
        self.app: Application | None = None

    def __call__(self, scope: Any, receive: Any, send: Any) -> Awaitable[None]:
        """Pass the request on, or answer that the store does not answer yet."""
        if scope["type"] == "lifespan":  # not the app's matter: the gateway is opened and closed by its process
            return _live(receive, send)
        if self.app is not None:
            return self.app(scope, receive, send)
        if scope["path"] == ALIVE:
            return _answer_alive(send)
        error = StoreUnavailable("The server is starting, and its store does not answer yet.", retry_after=1)
        return render_error(error, new_id("req"), closes=True, shape=find_shape(scope["path"])).send(send)


async def _live(receive: Any, send: Any) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


async def _answer_alive(send: Any) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b'{"status":"starting"}'})

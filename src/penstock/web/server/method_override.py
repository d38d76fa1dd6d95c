"""`X-HTTP-Method-Override`: the method of requests from networks that let only GET and POST through."""

from collections.abc import Awaitable

from penstock.web.server.asgi import Application, Message, Receive, Send

HEADER = b"x-http-method-override"


class MethodOverride:
    """Serves requests below one path by the method in the header, if they have it. Their own method is ignored."""

    def __init__(self, app: Application, path: str) -> None:
        self._app = app
        self._path = path

    def __call__(self, scope: Message, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve one request."""
        if scope["type"] == "http" and f"{scope['path']}/".startswith(f"{self._path}/"):
            method = dict(scope["headers"]).get(HEADER, b"").decode("latin-1").strip().upper()
            if method:
                return self._serve(method, scope, receive, send)
        return self._app(scope, receive, send)

    async def _serve(self, method: str, scope: Message, receive: Receive, send: Send) -> None:
        inner = {**scope, "method": method}  # the answer is framed by the method of the connection
        try:
            await self._app(inner, receive, send)
        finally:
            scope["route"] = inner.get("route")

"""The one renderer of errors: every answer that is an error is written here, in the shape that its caller reads."""

import math
from typing import NamedTuple

from penstock.chat.doors import DOORS
from penstock.domain.chat import Dialect
from penstock.errors import PenstockError
from penstock.web.server.asgi import Headers, Message, Send
from penstock.web.server.error_shapes import ErrorShape


class ErrorResponse(NamedTuple):
    """An error as it goes over the wire."""

    status: int
    headers: Headers
    body: bytes

    def start(self) -> Message:
        """Return the ASGI message that begins the response."""
        return {"type": "http.response.start", "status": self.status, "headers": self.headers}

    async def send(self, send: Send) -> None:
        """Send the whole response."""
        await send(self.start())
        await send({"type": "http.response.body", "body": self.body})


def render_error(
    error: PenstockError, request_id: str | None, *, closes: bool = False, shape: ErrorShape = DOORS[Dialect.CHAT]
) -> ErrorResponse:
    """Render an error with all headers it carries. `closes`: the connection ends with this response."""
    status, body = shape.write_error(error, request_id)
    headers = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        "x-should-retry": "true" if error.retryable else "false",
        **error.headers,
    }
    if error.retry_after is not None:
        headers["retry-after"] = str(max(1, math.ceil(error.retry_after)))
        headers["retry-after-ms"] = str(max(1, math.ceil(error.retry_after * 1000)))
    if error.reply is not None:  # the vendor's own error, for a caller of the vendor's dialect
        status, passed, body = error.reply
        headers |= {**passed, "content-length": str(len(body))}
    if closes:
        headers["connection"] = "close"
    if request_id is not None:
        headers["x-request-id"] = request_id
    raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    if request_id is not None:
        raw += shape.headers(request_id)
    return ErrorResponse(status, raw, body)

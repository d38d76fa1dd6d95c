"""The shapes of errors: each protocol's clients read their own."""

from typing import Any, Final, Protocol

import msgspec

from penstock.chat.doors import find_door
from penstock.errors import PenstockError

MAX_LINES: Final = 10
"""Problems that are shown in a text."""


class ErrorShape(Protocol):
    """Writes errors as the clients of one protocol read them."""

    def write_error(self, error: PenstockError, request_id: str | None) -> tuple[int, bytes]:
        """Return the HTTP status and the body of an error."""
        ...

    def headers(self, request_id: str) -> list[tuple[bytes, bytes]]:
        """Return the headers that every error of this shape has besides `x-request-id`."""
        ...


class ProblemShape:
    """RFC 7807, which the clients of Replicate read, with our own fields beside it.

    `error` is not among them: some clients take it for a text.
    """

    def write_error(self, error: PenstockError, request_id: str | None) -> tuple[int, bytes]:
        """Return the status and the problem. Invalid fields have 422."""
        status = 422 if error.details and error.status == 400 else error.status
        body: dict[str, Any] = {
            "type": "about:blank",
            "title": error.code.replace("_", " ") or "error",
            "status": status,
            "detail": _write_detail(error),
            "instance": None if request_id is None else f"urn:penstock:request:{request_id}",
            "code": error.code,
            "param": error.param,
            "details": [{"loc": d.loc, "message": d.message, "code": d.code} for d in error.details],
            "suggestion": error.suggestion,
        }
        return status, msgspec.json.encode(body)

    def headers(self, request_id: str) -> list[tuple[bytes, bytes]]:
        """Return no more headers."""
        del request_id
        return []


def _write_detail(error: PenstockError) -> str:
    """Return the message. Of several problems each has a line, as a client shows nothing else."""
    if len(error.details) < 2:
        return error.message
    lines = [f"{detail.loc}: {detail.message}" for detail in error.details[:MAX_LINES]]
    more = len(error.details) - len(lines)
    return "\n".join([*lines, f"(and {more} more)"] if more else lines)


class FalShape:
    """`detail`, which the clients of fal read, with our own fields beside it.

    The client for JavaScript shows `message` as the text of its error.
    """

    def write_error(self, error: PenstockError, request_id: str | None) -> tuple[int, bytes]:
        """Return the status and the body. Invalid fields are a list with 422, other errors a text."""
        detail: Any = error.message
        status = error.status
        if error.details and status == 400:
            status = 422
            detail = [{"loc": ["body", *d.loc.split(".")], "msg": d.message, "type": d.code} for d in error.details]
        body = {"detail": detail, "message": error.message, "error_type": error.code, "error": error.body(request_id)}
        return status, msgspec.json.encode(body)

    def headers(self, request_id: str) -> list[tuple[bytes, bytes]]:
        """Return the header by which fal's clients name a request."""
        return [(b"x-fal-request-id", request_id.encode())]


class McpShape:
    """JSON-RPC errors, which the clients of MCP read, with our own error as their data."""

    def write_error(self, error: PenstockError, request_id: str | None) -> tuple[int, bytes]:
        """Return the status and the error. Which message it answers is not known."""
        code = PARSE_ERROR if error.code == "invalid_json" else INVALID_MESSAGE if error.status < 500 else -32603
        shown = {"code": code, "message": error.message, "data": error.body(request_id)}
        return error.status, msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": shown})

    def headers(self, request_id: str) -> list[tuple[bytes, bytes]]:
        """Return no more headers."""
        del request_id
        return []


PARSE_ERROR: Final = -32700
INVALID_MESSAGE: Final = -32600
_PROBLEM: Final = ProblemShape()
_FAL: Final = FalShape()
_MCP: Final = McpShape()


def find_shape(path: str) -> ErrorShape:
    """Return the shape of an error at this path."""
    if path.startswith("/replicate/"):
        return _PROBLEM
    if path == "/mcp":
        return _MCP
    return _FAL if path.startswith("/fal/") else find_door(path)

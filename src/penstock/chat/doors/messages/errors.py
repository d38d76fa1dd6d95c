"""Errors in the shape and with the types of Anthropic's API."""

from typing import Any, Final

import msgspec

from penstock.errors import PenstockError

TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
STATUSES: Final = {503: 529}
"""Statuses that the API has another one for."""
TOO_LONG: Final = "prompt is too long"
"""Clients shorten the conversation if the message says so."""


def encode_error(error: PenstockError, request_id: str | None) -> tuple[int, bytes]:
    """Return the HTTP status and the body of an error."""
    status = STATUSES.get(error.status, error.status)
    return status, msgspec.json.encode(_describe(error, status) | {"request_id": request_id})


def write_error_event(error: PenstockError, request_id: str) -> bytes:
    """Return an error as an event; no end of the message follows it."""
    return b"event: error\ndata: " + encode_error(error, request_id)[1] + b"\n\n"


def _describe(error: PenstockError, status: int) -> dict[str, Any]:
    kind = TYPES.get(status) or ("api_error" if status >= 500 else "invalid_request_error")
    message = error.message
    if error.code == "context_length_exceeded" and TOO_LONG not in message:
        message = f"{TOO_LONG}: {message}"
    more = {"code": error.code, "param": error.param, "suggestion": error.suggestion}
    return {
        "type": "error",
        "error": {"type": kind, "message": message} | {name: text for name, text in more.items() if text},
    }

"""Errors of a response that has begun, with the codes that Responses clients know."""

import math
from typing import Any, Final

from penstock.errors import InsufficientBudget, InvalidRequest, PenstockError, QueueFull, RateLimited

KNOWN: Final = frozenset({"context_length_exceeded", "insufficient_quota", "rate_limit_exceeded", "server_error"})


def describe_failure(error: PenstockError) -> dict[str, Any]:
    """Return the `error` of a response that failed."""
    code = _find_code(error)
    message = error.message
    if code == "rate_limit_exceeded" and "try again in" not in message.lower():
        seconds = max(1, math.ceil(error.retry_after or 1))
        message = f"{message} Please try again in {seconds}s."  # Codex waits as long as this says
    return {"code": code, "message": message}


def _find_code(error: PenstockError) -> str:
    if error.code in KNOWN:
        return error.code
    match error:
        case RateLimited() | QueueFull():
            return "rate_limit_exceeded"
        case InsufficientBudget():
            return "insufficient_quota"
        case InvalidRequest():
            return "invalid_prompt"
        case _:
            return "server_error"

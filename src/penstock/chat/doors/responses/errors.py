"""Errors of a response that has begun, with the codes that Responses clients know."""

import math
import re
from typing import Any, Final

from penstock.chat.replies.chunks.writer import encode_error
from penstock.errors import InsufficientBudget, InvalidRequest, PenstockError, QueueFull, RateLimited

KNOWN: Final = frozenset({"context_length_exceeded", "insufficient_quota", "rate_limit_exceeded", "server_error"})


RENAMED: Final = {
    "max_completion_tokens": "max_output_tokens",
    "messages": "input",
    "reasoning_effort": "reasoning.effort",
    "response_format": "text.format",
    "verbosity": "text.verbosity",
}
"""Fields of the chat dialect, with the fields of a Responses request that they were translated from."""
_ROOT: Final = re.compile(r"\w+")


def encode_refusal(error: PenstockError, request_id: str | None) -> bytes:
    """Return an error in OpenAI's shape, which names the caller's own field."""
    root = _ROOT.match(error.param or "")
    if root is not None and root[0] in RENAMED:
        error.param = RENAMED[root[0]]
    return encode_error(error, request_id)


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

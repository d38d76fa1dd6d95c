"""Errors in OpenAI's dialect, as OpenAI and the many compatible servers write them."""

import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

import msgspec

from penstock.domain.chat import Blame, Fault, blame_status
from penstock.vendor_api.generation import Reply

_Json: TypeAlias = Mapping[str, Any]

_TOO_LONG: Final = "This model's maximum context length is"
_FLAGGED: Final = frozenset(
    {"content_filter", "content_policy_violation", "data_inspection_failed", "flagged_input", "moderation_blocked"}
)
"""Codes and types with which servers reject the content of a request."""
_FLAGGED_TEXT: Final = re.compile(r"\b(?:flagged|moderation|content[ _](?:policy|filter))", re.IGNORECASE)
_FORBIDDEN: Final = 403
_WORDS: Final = ("message", "msg", "detail", "details", "errors", "error", "reason", "title")
"""Fields that hold the reason, most common first."""
_MAX_REASONS: Final = 5
_MAX_DEPTH: Final = 4


def read_fault(reply: Reply) -> Fault:
    """Return the reason of a failed reply: `{"error": {…}}`, or any of the shapes that servers use instead."""
    error = _find_error(_parse(reply.body))
    message, code, kind = _find_text(error), error.get("code"), str(error.get("type") or "")
    status = reply.status
    if status < 400:  # inside a reply that began well
        status = code if isinstance(code, int) and 400 <= code < 600 else 400 if "invalid_request" in kind else 500
    param = error.get("param") or _find_place(error)
    word = code if isinstance(code, str) else None
    blame = blame_status(status)
    if _flags_input(error, status, word or kind, message):
        reasons = _join_reasons(_as_object(error.get("metadata")).get("reasons"))
        message = f"{message} ({reasons})" if reasons else message
        blame, word, param = Blame.CALLER, word or "content_policy_violation", param or "messages"
    elif blame is Blame.CREDENTIAL or _refuses_us(word, kind, message):
        blame = Blame.CREDENTIAL
    elif word == "context_length_exceeded" or kind == "exceed_context_size_error" or _is_too_long(message):
        blame, word, param = Blame.CALLER, "context_length_exceeded", param or "messages"
        message = message if "maximum context length is" in message else f"{_TOO_LONG} exceeded: {message}"
    return Fault(blame, message, word, param if isinstance(param, str) else None, reply.retry_after, status)


def _flags_input(error: _Json, status: int, word: str, message: str) -> bool:
    """Return whether the content was refused, and not our credential; OpenRouter uses 403 for both."""
    if "flagged_input" in _as_object(error.get("metadata")):
        return True
    return status == _FORBIDDEN and (word in _FLAGGED or _FLAGGED_TEXT.search(message) is not None)


def _refuses_us(word: str | None, kind: str, message: str) -> bool:
    """Return whether our key or credit was refused; some servers use a status that blames the request."""
    error = message.lower()
    return "insufficient_quota" in (word, kind) or word == "invalid_api_key" or "incorrect api key" in error


def _is_too_long(message: str) -> bool:
    error = message.lower()
    return "maximum context length" in error or ("context size" in error and "exceed" in error)


# -- reading


def _parse(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # a proxy's page


def _as_object(found: Any) -> _Json:
    return cast("_Json", found) if isinstance(found, dict) else {}


def _find_error(found: Any) -> _Json:
    """Return the object that describes the error, without its wrapping."""
    if isinstance(found, list):
        items = cast("list[Any]", found)
        return _find_error(items[0]) if len(items) == 1 else {"detail": items}
    error = _as_object(found)
    for name in ("error", "detail"):
        inner = error.get(name)
        if isinstance(inner, dict):
            return cast("_Json", inner)
    return error


def _find_text(error: _Json) -> str:
    """Return the reason from the first field that has one; empty if none has."""
    return next(filter(None, (_join_reasons(error.get(name)) for name in _WORDS)), "")


def _join_reasons(value: Any, depth: int = _MAX_DEPTH) -> str:
    """Return a reason as one text; FastAPI sends a list of `{"loc": ["body", "messages", 0], "msg": "…"}`."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list) and depth:
        items = cast("list[Any]", value)
        return "; ".join(filter(None, (_join_reasons(item, depth - 1) for item in items[:_MAX_REASONS])))
    error = _as_object(value)
    inner = (_join_reasons(error[name], depth - 1) for name in _WORDS if name in error)
    text = next(filter(None, inner), "") if depth else ""
    place = _join_place(error.get("loc"))
    return f"{place}: {text}" if place and text else text


def _find_place(error: _Json) -> str | None:
    """Return the field that the first of several reasons names."""
    for name in ("detail", "details", "errors"):
        reasons = error.get(name)
        if isinstance(reasons, list) and reasons:
            return _join_place(_as_object(cast("list[Any]", reasons)[0]).get("loc")) or None
    return None


def _join_place(loc: Any) -> str:
    """Write `["body", "messages", 0, "role"]` as `messages[0].role`."""
    steps = cast("list[Any]", loc) if isinstance(loc, list) else []
    steps = steps[1:] if steps[:1] == ["body"] else steps
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")

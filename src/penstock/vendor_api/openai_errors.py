"""How OpenAI, and the many servers that took over its dialect, tell that something went wrong."""

import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

import msgspec

from penstock.domain.chat import Blame, Fault, blame_status
from penstock.vendor_api.generation import Reply

Json: TypeAlias = Mapping[str, Any]

TOO_LONG: Final = "This model's maximum context length is"
FLAGGED: Final = frozenset(
    {"content_filter", "content_policy_violation", "data_inspection_failed", "flagged_input", "moderation_blocked"}
)
"""Codes and types by which servers say that they do not like what was asked."""
FLAGGED_TEXT: Final = re.compile(r"\b(?:flagged|moderation|content[ _](?:policy|filter))", re.IGNORECASE)
FORBIDDEN: Final = 403
WORDS: Final = ("message", "msg", "detail", "details", "errors", "error", "reason", "title")
"""Where servers put their reason, the most usual first."""
MAX_REASONS: Final = 5
MAX_DEPTH: Final = 4


def read_fault(reply: Reply) -> Fault:
    """Return what a reply without success says: `{"error": {…}}`, or any of the shapes that servers have instead."""
    said = _find_error(_parse(reply.body))
    message, code, kind = _find_text(said), said.get("code"), str(said.get("type") or "")
    status = reply.status
    if status < 400:  # inside a reply that began well
        status = code if isinstance(code, int) and 400 <= code < 600 else 400 if "invalid_request" in kind else 500
    param = said.get("param") or _find_place(said)
    word = code if isinstance(code, str) else None
    blame = blame_status(status)
    if _flags_input(said, status, word or kind, message):
        reasons = _tell(_as_object(said.get("metadata")).get("reasons"))
        message = f"{message} ({reasons})" if reasons else message
        blame, word, param = Blame.CALLER, word or "content_policy_violation", param or "messages"
    elif blame is Blame.CREDENTIAL or _refuses_us(word, kind, message):
        blame = Blame.CREDENTIAL
    elif word == "context_length_exceeded" or kind == "exceed_context_size_error" or _is_too_long(message):
        blame, word, param = Blame.CALLER, "context_length_exceeded", param or "messages"
        message = message if "maximum context length is" in message else f"{TOO_LONG} exceeded: {message}"
    return Fault(blame, message, word, param if isinstance(param, str) else None, reply.retry_after, status)


def _flags_input(said: Json, status: int, word: str, message: str) -> bool:
    """Return whether the vendor refuses what was asked, and not who asked it; OpenRouter says so with a 403."""
    if "flagged_input" in _as_object(said.get("metadata")):
        return True
    return status == FORBIDDEN and (word in FLAGGED or FLAGGED_TEXT.search(message) is not None)


def _refuses_us(word: str | None, kind: str, message: str) -> bool:
    """Whether our key or our credit is not good; some say so with a status that blames the request."""
    said = message.lower()
    return "insufficient_quota" in (word, kind) or word == "invalid_api_key" or "incorrect api key" in said


def _is_too_long(message: str) -> bool:
    said = message.lower()
    return "maximum context length" in said or ("context size" in said and "exceed" in said)


# -- reading


def _parse(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # a proxy's page


def _as_object(found: Any) -> Json:
    return cast("Json", found) if isinstance(found, dict) else {}


def _find_error(found: Any) -> Json:
    """Return the object that tells of the error, out of its wrapping."""
    if isinstance(found, list):
        items = cast("list[Any]", found)
        return _find_error(items[0]) if len(items) == 1 else {"detail": items}
    said = _as_object(found)
    for name in ("error", "detail"):
        inner = said.get(name)
        if isinstance(inner, dict):
            return cast("Json", inner)
    return said


def _find_text(said: Json) -> str:
    """Return the reason, wherever it stands; empty if none is given."""
    return next(filter(None, (_tell(said.get(name)) for name in WORDS)), "")


def _tell(value: Any, depth: int = MAX_DEPTH) -> str:
    """Return a reason as one text; FastAPI gives a list of `{"loc": ["body", "messages", 0], "msg": "…"}`."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list) and depth:
        items = cast("list[Any]", value)
        return "; ".join(filter(None, (_tell(item, depth - 1) for item in items[:MAX_REASONS])))
    said = _as_object(value)
    text = next(filter(None, (_tell(said.get(name), depth - 1) for name in WORDS)), "") if depth else ""
    place = _join_place(said.get("loc"))
    return f"{place}: {text}" if place and text else text


def _find_place(said: Json) -> str | None:
    """Return the field that the first of several reasons names."""
    for name in ("detail", "details", "errors"):
        reasons = said.get(name)
        if isinstance(reasons, list) and reasons:
            return _join_place(_as_object(cast("list[Any]", reasons)[0]).get("loc")) or None
    return None


def _join_place(loc: Any) -> str:
    """Write `["body", "messages", 0, "role"]` as `messages[0].role`."""
    steps = cast("list[Any]", loc) if isinstance(loc, list) else []
    steps = steps[1:] if steps[:1] == ["body"] else steps
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")

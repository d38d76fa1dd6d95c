"""How OpenAI, and the many servers that took over its dialect, tell that something went wrong."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from penstock.chat import Blame, Fault, blame_status
from penstock.contract import Reply

TOO_LONG = "This model's maximum context length is"


def read_fault(reply: Reply) -> Fault:
    """`{"error": {…}}`, or the same without its wrapping; `code` may be a number."""
    said = _read_error(reply.body)
    message, code, kind = str(said.get("message") or ""), said.get("code"), str(said.get("type") or "")
    status = reply.status
    if status < 400:  # inside a reply that began well
        status = code if isinstance(code, int) and 400 <= code < 600 else 400 if "invalid_request" in kind else 500
    param = said.get("param")
    word = code if isinstance(code, str) else None
    blame = blame_status(status)
    if blame is Blame.CREDENTIAL or _refuses_us(word, kind, message):
        blame = Blame.CREDENTIAL
    elif word == "context_length_exceeded" or kind == "exceed_context_size_error" or _is_too_long(message):
        blame, word, param = Blame.CALLER, "context_length_exceeded", param or "messages"
        message = message if "maximum context length is" in message else f"{TOO_LONG} exceeded: {message}"
    return Fault(blame, message, word, param if isinstance(param, str) else None, reply.retry_after, status)


def _refuses_us(word: str | None, kind: str, message: str) -> bool:
    """Whether our key or our credit is not good; some say so with a status that blames the request."""
    said = message.lower()
    return "insufficient_quota" in (word, kind) or word == "invalid_api_key" or "incorrect api key" in said


def _is_too_long(message: str) -> bool:
    said = message.lower()
    return "maximum context length" in said or ("context size" in said and "exceed" in said)


def _read_error(body: bytes) -> Mapping[str, Any]:
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}  # a proxy's page
    if not isinstance(found, dict):
        return {}
    said = cast("dict[str, Any]", found)
    error = said.get("error", said)
    return cast("dict[str, Any]", error) if isinstance(error, dict) else {"message": str(error)}

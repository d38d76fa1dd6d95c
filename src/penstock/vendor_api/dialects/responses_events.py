"""The events and bodies of OpenAI's Responses: their kinds, their usage, their errors."""

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from penstock.domain.chat import Blame, Fault, Reason, Usage, read_count
from penstock.vendor_api.dialects.openai_errors import read_fault
from penstock.vendor_api.generation import Reply
from penstock.vendor_api.lenient_json import write_json

COMPLETE: Final = ("response.completed", "response.incomplete", "response.done")
"""Events that end a complete response."""
FAILED: Final = ("response.failed", "response.cancelled", "error")
"""Events that end a response which failed."""
_CODES: Final = {
    "context_length_exceeded": 400,
    "invalid_prompt": 400,
    "insufficient_quota": 402,
    "invalid_api_key": 401,
    "rate_limit_exceeded": 429,
    "server_is_overloaded": 503,
    "slow_down": 503,
}
"""The HTTP status that an error inside a stream would have had, by its code."""
_REASONS: Final = {"max_output_tokens": Reason.LENGTH, "content_filter": Reason.FILTER}
_WAIT: Final = re.compile(r"try again in (\d+(?:\.\d+)?)\s*(ms|s)\b", re.IGNORECASE)


def read_usage(response: Mapping[str, Any]) -> Usage | None:
    """Return the usage of a response; None if it has none."""
    usage = response.get("usage")
    if not isinstance(usage, dict):
        return None
    counts = cast("dict[str, Any]", usage)
    given, written = (counts.get(f"{name}_tokens_details") for name in ("input", "output"))
    return Usage(
        prompt=_count(counts, "input_tokens"),
        completion=_count(counts, "output_tokens"),
        cached=_count(given, "cached_tokens"),
        reasoning=_count(written, "reasoning_tokens"),
    )


def _count(counts: Any, name: str) -> int:
    value = cast("dict[str, Any]", counts).get(name) if isinstance(counts, dict) else None
    return read_count(value) if isinstance(value, int | float) else 0


def read_reason(response: Mapping[str, Any], *, has_calls: bool) -> Reason:
    """Return the reason for the end of a complete response."""
    match response:
        case {"status": "incomplete", "incomplete_details": {"reason": str(reason)}}:
            return _REASONS.get(reason, Reason.LENGTH)
        case {"status": "incomplete"}:
            return Reason.LENGTH
        case _:
            return Reason.TOOL_CALLS if has_calls else Reason.STOP


def read_failure(event: Mapping[str, Any]) -> Fault:
    """Return the fault of a failed response, or of an error event."""
    match event:
        case {"response": {"error": {**error}}} | {"error": {**error}}:
            pass
        case {"status": "cancelled"} | {"response": {"status": "cancelled"}}:
            error = {"message": "The response was cancelled."}
        case _:
            error = {name: event[name] for name in ("code", "message", "param") if event.get(name) is not None}
    code, message = error.get("code"), str(error.get("message") or "")
    waited = _WAIT.search(message)
    seconds = None if waited is None else float(waited[1]) / (1000 if waited[2].lower() == "ms" else 1)
    status = _CODES.get(str(code)) or (code if isinstance(code, int) else 0)
    fault = read_fault(Reply(status or 200, {}, write_json({"error": error})))
    retry_after = seconds if fault.blame in (Blame.LIMIT, Blame.BUSY) else None
    return Fault(fault.blame, fault.message, fault.code, fault.param, retry_after, fault.status)

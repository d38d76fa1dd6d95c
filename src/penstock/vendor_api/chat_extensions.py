"""Fields of chat messages that only other dialects have, and their removal for vendors that take plain chat.

A request that came in another dialect may hold these in a message of the assistant: `reasoning_content`, the reasoning
as text, and `sealed_reasoning`, a list of seals. In any request, the id of a tool call may hold a seal.
"""

from typing import Any, Final, cast

import msgspec
from msgspec import Raw

from penstock.domain.chat import Ask
from penstock.vendor_api import left_out, seals

SEALED: Final = "sealed_reasoning"
REASONING: Final = "reasoning_content"
_ID_MARK: Final = seals.ID_MARK.encode()
_SEALED: Final = SEALED.encode()
_REASONING: Final = REASONING.encode()
_REASONING_FIELD: Final = b'"%b":' % _REASONING


def plain_messages(ask: Ask, *, keep_reasoning: bool) -> Raw | None:
    """Return the messages without these extensions; None if there are none of them, as nearly always."""
    raw = ask.fields.get("messages")
    if raw is None:
        return None
    text = memoryview(raw).tobytes()
    is_extended = ask.is_translated and (_SEALED in text or (_REASONING in text and not keep_reasoning))
    if not is_extended and _ID_MARK not in text:
        return None
    dropped = {SEALED} if keep_reasoning else {SEALED, REASONING}
    turns = cast("list[dict[str, Any]]", msgspec.json.decode(raw))
    return Raw(msgspec.json.encode([_strip(turn, dropped if ask.is_translated else set()) for turn in turns]))


def find_dropped(ask: Ask, *, keep_reasoning: bool) -> tuple[str, ...]:
    """Return the names of what `plain_messages` drops."""
    is_dropped = (
        ask.is_translated and not keep_reasoning and _REASONING_FIELD in memoryview(ask.fields["messages"]).tobytes()
    )
    return (left_out.REASONING,) if is_dropped else ()


def _strip(turn: dict[str, Any], dropped: set[str]) -> dict[str, Any]:
    kept = {name: value for name, value in turn.items() if name not in dropped}
    if isinstance(kept.get("tool_call_id"), str):
        kept["tool_call_id"] = seals.detach(kept["tool_call_id"])[0]
    calls = kept.get("tool_calls")
    if isinstance(calls, list):
        kept["tool_calls"] = [_strip_id(call) for call in cast("list[Any]", calls)]
    return kept


def _strip_id(call: Any) -> Any:
    match call:
        case {"id": str(call_id), **rest}:
            return {"id": seals.detach(call_id)[0], **cast("dict[str, Any]", rest)}
        case _:
            return call

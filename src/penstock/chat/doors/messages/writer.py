"""Writes a reply as Anthropic's events, or as one message."""

from typing import Any, Final, TypeAlias, cast

from penstock.chat.doors.messages.errors import write_error_event
from penstock.chat.replies.broken import Malformed
from penstock.domain.chat import (
    Arguments,
    Ask,
    Finish,
    Part,
    Reason,
    Reasoning,
    RefusalText,
    Seal,
    Text,
    ToolCall,
    Usage,
)
from penstock.errors import PenstockError
from penstock.vendor_api import seals
from penstock.vendor_api.dialects.messages_usage import write_usage
from penstock.vendor_api.lenient_json import read_json, write_json

Json: TypeAlias = dict[str, Any]

STOP_REASONS: Final = {
    Reason.STOP: "end_turn",
    Reason.LENGTH: "max_tokens",
    Reason.TOOL_CALLS: "tool_use",
    Reason.FILTER: "refusal",
}
UNSEALED: Final = seals.seal("none", "")
"""The signature of reasoning that its vendor does not want back. Clients demand one, and Anthropic never gets it."""


class _Block:
    """A block of content."""

    __slots__ = ("has_arguments", "is_held", "pieces", "shown")

    def __init__(self, shown: Json) -> None:
        self.shown = shown
        """The block as it begins."""
        self.pieces: list[str] = []
        """Its text so far; of a stream only the arguments of tools are kept."""
        self.has_arguments = False
        self.is_held = False
        """True if the arguments do not begin as an object: they are not sent before they are whole."""

    @property
    def kind(self) -> str:
        return self.shown["type"]


class MessageWriter:
    """Implements `Writer`. Only the first choice is written: a request cannot ask for more."""

    __slots__ = (
        "_ask",
        "_begun",
        "_block",
        "_blocks",
        "_calls",
        "_frame",
        "_id",
        "_index",
        "_reason",
        "_refuses",
    )

    def __init__(self, ask: Ask, reply_id: str) -> None:
        self._ask = ask
        self._id = f"msg_{reply_id.partition('-')[2] or reply_id}"
        self._blocks: list[Json] = []  # of a whole reply, each one complete
        self._block: _Block | None = None
        self._index = -1
        self._begun = False
        self._calls = False
        self._refuses = False
        self._reason = Reason.STOP
        self._frame: tuple[bytes, bytes] | None = None

    def take(self, part: Part) -> bytes:
        """Return the events of a part."""
        match part:
            case Text(choice=0) | RefusalText(choice=0) if part.text:
                self._refuses |= isinstance(part, RefusalText)
                return self._grow({"type": "text", "text": ""}, "text_delta", "text", part.text)
            case Reasoning(choice=0) if part.text:
                begin = {"type": "thinking", "thinking": "", "signature": ""}
                return self._grow(begin, "thinking_delta", "thinking", part.text)
            case Seal(choice=0):
                return self._seal(part.text)
            case ToolCall(choice=0):
                return self._close() + self._call(part)
            case Arguments(choice=0) if part.json:
                return self._add_arguments(part.json)
            case Finish(choice=0):
                self._reason = part.reason  # some vendors send it with every event
            case _:
                pass  # of no interest to the caller
        return b""

    def finish(self, usage: Usage) -> bytes:
        """Return the events that end the message."""
        out = self._close(is_last=True) if self._begun else self._begin()
        delta = {"stop_reason": self._stop_reason(), "stop_sequence": None}
        out += self._event("message_delta", {"delta": delta, "usage": write_usage(usage)})
        return out + self._event("message_stop", {})

    def fail(self, error: PenstockError, request_id: str) -> bytes:
        """Return the error as an event."""
        return write_error_event(error, request_id)

    def whole(self, usage: Usage) -> bytes:
        """Return the message."""
        self._close(is_last=True)
        end = {"stop_reason": self._stop_reason(), "stop_sequence": None, "usage": write_usage(usage)}
        return write_json(self._message(self._blocks) | end)

    def frame(self, text: bytes) -> bytes:
        """Return the event of one more piece of text."""
        if self._frame is None:
            event = self._delta({"type": "text_delta", "text": "~"})
            before, _, after = event.partition(b'"~"')
            self._frame = before + b'"', b'"' + after
        before, after = self._frame
        return before + text + after if text else b""

    # -- blocks

    def _begin(self) -> bytes:
        self._begun = True
        usage = write_usage(Usage(self._ask.prompt))  # estimated; the last event corrects it
        begun = self._message([]) | {"stop_reason": None, "stop_sequence": None, "usage": usage}
        return self._event("message_start", {"message": begun})

    def _message(self, blocks: list[Json]) -> Json:
        return {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self._ask.model,
            "content": blocks,
        }

    def _open(self, shown: Json) -> bytes:
        start = b"" if self._begun else self._begin()
        self._block = _Block(shown)
        self._index += 1
        self._frame = None
        return start + self._event("content_block_start", {"index": self._index, "content_block": shown})

    def _grow(self, begin: Json, kind: str, name: str, text: str) -> bytes:
        """Add text to the open block, or to a new one if the open one is of another kind."""
        out = b""
        if self._block is None or self._block.kind != begin["type"]:
            out = self._close() + self._open(begin)
        if not self._ask.stream and self._block is not None:
            self._block.pieces.append(text)
        return out + self._delta({"type": kind, name: text})

    def _seal(self, sealed: str) -> bytes:
        """Sign the open thinking, or an empty one, with data that its vendor needs back."""
        out = b""
        if self._block is None or self._block.kind != "thinking":
            out = self._close() + self._open({"type": "thinking", "thinking": "", "signature": ""})
        return out + self._close(signature=sealed)

    def _call(self, part: ToolCall) -> bytes:
        self._calls = True
        call_id = part.id or f"toolu_{self._id[4:]}_{self._index + 1}"
        return self._open({"type": "tool_use", "id": call_id, "name": part.name, "input": {}})

    def _add_arguments(self, json: str) -> bytes:
        block = self._block
        if block is None or block.kind != "tool_use":
            raise Malformed("it sent arguments after the end of their tool call")
        block.pieces.append(json)
        if not block.has_arguments:
            json = json.lstrip()
            block.has_arguments, block.is_held = bool(json), bool(json) and not json.startswith("{")
        return b"" if block.is_held or not json else self._delta(_json_delta(json))

    def _close(self, *, signature: str = UNSEALED, is_last: bool = False) -> bytes:
        """End the open block, if there is one."""
        block, self._block = self._block, None
        if block is None:
            return b""
        out = b""
        if block.kind == "thinking":
            out = self._event(
                "content_block_delta",
                {"index": self._index, "delta": {"type": "signature_delta", "signature": signature}},
            )
            self._keep(block.shown | {"thinking": "".join(block.pieces), "signature": signature})
        elif block.kind == "text":
            self._keep(block.shown | {"text": "".join(block.pieces)})
        else:
            out = self._close_call(block, is_last=is_last)
        return out + self._event("content_block_stop", {"index": self._index})

    def _close_call(self, block: _Block, *, is_last: bool) -> bytes:
        taken = _read_arguments("".join(block.pieces))
        if taken is not None:
            self._keep(block.shown | {"input": taken})
            return self._delta(_json_delta(write_json(taken).decode())) if block.is_held and taken else b""
        if not (is_last and self._reason is Reason.LENGTH):
            raise Malformed("it sent a tool call whose arguments are not a JSON object")
        return b""  # cut short by the token limit; a message that is sent whole leaves such a call out

    def _keep(self, block: Json) -> None:
        if not self._ask.stream:
            self._blocks.append(block)

    def _stop_reason(self) -> str:
        """Return the reason; clients wait for tools by it, so it must say whether any is called."""
        if self._reason not in (Reason.STOP, Reason.TOOL_CALLS):
            return STOP_REASONS[self._reason]
        if self._calls:
            return "tool_use"
        return "refusal" if self._refuses else "end_turn"

    # -- events

    def _delta(self, delta: Json) -> bytes:
        return self._event("content_block_delta", {"index": self._index, "delta": delta})

    def _event(self, kind: str, fields: Json) -> bytes:
        if not self._ask.stream:
            return b""
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), write_json({"type": kind, **fields}))


def _json_delta(json: str) -> Json:
    return {"type": "input_json_delta", "partial_json": json}


def _read_arguments(text: str) -> Json | None:
    """Return the arguments as an object, also if the vendor wrote none or a text of JSON; None for anything else."""
    try:
        found: Any = _parse(text.strip() or "{}")
        found = _parse(found) if isinstance(found, str) else found
    except (ValueError, RecursionError):
        return None
    return {} if found is None else cast("Json", found) if isinstance(found, dict) else None


def _parse(text: str) -> Any:
    return read_json(text.encode("utf-8", "replace"))

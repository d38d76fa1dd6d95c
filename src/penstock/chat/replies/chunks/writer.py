"""Writes a reply as OpenAI's chunks, or as one completion."""

from typing import Any, Final

import msgspec

from penstock.domain.chat import (
    Arguments,
    Ask,
    Finish,
    Opening,
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
from penstock.vendor_api.lenient_json import write_json

DONE: Final = b"data: [DONE]\n\n"
NAMES: Final = {Text: "content", Reasoning: "reasoning_content", RefusalText: "refusal"}
"""The field of a delta or message that holds such a part."""


class _Choice:
    """The state of one choice."""

    __slots__ = ("arguments", "calls", "finished", "is_open", "sealed", "texts")

    def __init__(self) -> None:
        self.is_open = False
        self.finished: Reason | None = None
        self.texts: dict[str, list[str]] = {}
        self.calls: list[dict[str, Any]] = []
        self.arguments: list[list[str]] = []
        self.sealed = ""


class ChunkWriter:
    """Implements `Writer`."""

    __slots__ = ("_ask", "_choices", "_created", "_frame", "_id", "_model")

    def __init__(self, ask: Ask, reply_id: str, created: int) -> None:
        self._ask = ask
        self._id = reply_id
        self._model = ask.model
        self._created = created
        self._choices: dict[int, _Choice] = {}
        self._frame: tuple[bytes, bytes] | None = None

    def take(self, part: Part) -> bytes:
        """Return the chunks of a part."""
        match part:
            case Opening():
                self._id, self._model = part.id or self._id, part.model or self._model
            case Text() | Reasoning() | RefusalText() | ToolCall() | Arguments() | Finish():
                deltas = self._grow(self._choices.setdefault(part.choice, _Choice()), part)
                return b"".join(self._write(part.choice, delta) for delta in deltas) if self._ask.stream else b""
            case Seal():
                self._choices.setdefault(part.choice, _Choice()).sealed = part.text
            case _:
                pass  # of no interest to the caller
        return b""

    def _grow(
        self, choice: _Choice, part: Text | Reasoning | RefusalText | ToolCall | Arguments | Finish
    ) -> list[dict[str, Any]]:
        """Add a part to a choice, and return its deltas."""
        match part:
            case ToolCall():
                return self._call(choice, part)
            case Arguments():
                choice.arguments[-1].append(part.json)
                return [_arguments(choice, part.json)]
            case Finish():
                deltas = [*_open(choice), *_close_call(choice)]
                choice.finished = part.reason
                return deltas  # the reason comes last, as some vendors send it with every event
            case _:
                name = NAMES[type(part)]
                choice.texts.setdefault(name, []).append(part.text)
                return [*_open(choice), {name: part.text}]

    def _call(self, choice: _Choice, part: ToolCall) -> list[dict[str, Any]]:
        call_id = seals.attach(part.id, choice.sealed) if choice.sealed else part.id
        choice.sealed = ""
        deltas = _close_call(choice)
        call = {"id": call_id, "type": "function", "function": {"name": part.name, "arguments": ""}}
        delta: dict[str, Any] = {"tool_calls": [{"index": len(choice.calls), **call}]}
        choice.calls.append(call)
        choice.arguments.append([])
        if not choice.is_open:  # as OpenAI does: role and first call in one delta
            choice.is_open = True
            return [{"role": "assistant", "content": None, **delta}]
        return [*deltas, delta]

    def finish(self, usage: Usage) -> bytes:
        """Return the chunks that end every choice, the usage if asked for, and the end."""
        out = [self._write(index, {}, choice.finished) for index, choice in sorted(self._choices.items())]
        if self._ask.include_usage:
            out.append(_event(self._head("chat.completion.chunk") | {"choices": [], "usage": usage.as_json()}))
        return b"".join(out) + DONE

    def fail(self, error: PenstockError, request_id: str) -> bytes:
        """Return the error as an event."""
        return write_error_event(error, request_id)

    def whole(self, usage: Usage) -> bytes:
        """Return the completion."""
        choices = [
            {"index": index, "message": _message(choice), "logprobs": None, "finish_reason": choice.finished}
            for index, choice in sorted(self._choices.items())
        ]
        return write_json(self._head("chat.completion") | {"choices": choices, "usage": usage.as_json()})

    def frame(self, text: bytes) -> bytes:
        """Return the chunk of one more piece of text."""
        if self._frame is None:
            before, _, after = self._write(0, {"content": "~"}).partition(b'"~"')
            self._frame = before + b'"', b'"' + after
        before, after = self._frame
        return before + text + after

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self._id, "object": kind, "created": self._created, "model": self._model}

    def _write(self, index: int, delta: dict[str, Any], reason: Reason | None = None) -> bytes:
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": reason}
        usage = {"usage": None} if self._ask.include_usage else {}
        return _event(self._head("chat.completion.chunk") | {"choices": [choice], **usage})


def _event(chunk: dict[str, Any]) -> bytes:
    return b"data: " + write_json(chunk) + b"\n\n"


def _open(choice: _Choice) -> list[dict[str, Any]]:
    if choice.is_open:
        return []
    choice.is_open = True
    return [{"role": "assistant", "content": "", "refusal": None}]


def _arguments(choice: _Choice, json: str) -> dict[str, Any]:
    return {"tool_calls": [{"index": len(choice.calls) - 1, "function": {"arguments": json}}]}


def _close_call(choice: _Choice) -> list[dict[str, Any]]:
    """Give a call without arguments an empty object, because clients parse the text."""
    if not choice.calls or any(choice.arguments[-1]):
        return []
    choice.arguments[-1].append("{}")
    return [_arguments(choice, "{}")]


def _message(choice: _Choice) -> dict[str, Any]:
    texts = {name: "".join(pieces) or None for name, pieces in choice.texts.items()}
    message: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None} | texts
    if choice.calls:
        message["tool_calls"] = [
            {**call, "function": {**call["function"], "arguments": "".join(arguments)}}
            for call, arguments in zip(choice.calls, choice.arguments, strict=True)
        ]
    return message


def encode_error(error: PenstockError, request_id: str | None) -> bytes:
    """Return an error in OpenAI's shape, with the fields that ours have besides."""
    return msgspec.json.encode({"error": error.body(request_id)})


def write_error_event(error: PenstockError, request_id: str) -> bytes:
    """Return an error as an event; no finish reason and no end follow it."""
    return b"data: " + encode_error(error, request_id) + b"\n\n"

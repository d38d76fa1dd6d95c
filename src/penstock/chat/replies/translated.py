"""Replies in a vendor's own dialect, written as OpenAI's chunks or as one completion."""

from collections.abc import Iterable, Iterator
from typing import Any, assert_never, cast

from penstock.chat.replies.flat_errors import find_error, write_error
from penstock.chat.replies.passthrough import DONE, MAX_SKIPPED, UNREPAIRABLE, Broken, Malformed
from penstock.chat.replies.repair import is_chunk_like
from penstock.chat.replies.sse import Splitter
from penstock.domain.chat import (
    Arguments,
    Ask,
    End,
    Fault,
    Finish,
    Opening,
    Part,
    Reason,
    Reasoning,
    Text,
    ToolCall,
    Usage,
    Used,
    estimate,
    read_count,
)
from penstock.vendor_api.chat import Translator
from penstock.vendor_api.lenient_json import read_json, write_json


class _Choice:
    """The state of one choice."""

    __slots__ = ("arguments", "calls", "finished", "opened", "reasoning", "text")

    def __init__(self) -> None:
        self.opened = False
        self.finished: Reason | None = None
        self.text: list[str] = []
        self.reasoning: list[str] = []
        self.calls: list[ToolCall] = []
        self.arguments: list[list[str]] = []


class _Reply:
    """The reply built from the parts so far."""

    __slots__ = ("ask", "characters", "choices", "created", "ended", "id", "model", "usage")

    def __init__(self, ask: Ask, reply_id: str, created: int) -> None:
        self.ask = ask
        self.id = reply_id
        self.model = ask.model
        self.created = created
        self.choices: dict[int, _Choice] = {}
        self.usage: Usage | None = None
        self.characters = 0
        self.ended = False

    @property
    def complete(self) -> bool:
        return bool(self.choices) and all(choice.finished for choice in self.choices.values())

    def take(self, part: Part) -> list[dict[str, Any]]:
        """Return the deltas of this part, each with its choice and finish reason."""
        match part:
            case Opening():
                self.id, self.model = _check_text(part.id) or self.id, _check_text(part.model) or self.model
            case Used():
                self.usage = _check_usage(part.usage)
            case End():
                self.ended = True
            case Fault():
                raise Broken(part)
            case Text() | Reasoning() | ToolCall() | Arguments() | Finish():
                choice = self.choices.setdefault(_check_index(part.choice), _Choice())
                return self._grow(choice, part)
            case _ as unreachable:
                assert_never(unreachable)
        return []

    def _grow(self, choice: _Choice, part: Text | Reasoning | ToolCall | Arguments | Finish) -> list[dict[str, Any]]:
        match part:
            case Text() | Reasoning():
                kept, name = (
                    (choice.text, "content") if isinstance(part, Text) else (choice.reasoning, "reasoning_content")
                )
                kept.append(_check_text(part.text))
                self.characters += len(part.text)
                return [*_open(choice, part.choice, content=""), _delta(part.choice, {name: part.text})]
            case ToolCall():
                call_id, function = _check_text(part.id), {"name": _check_text(part.name), "arguments": ""}
                call = {"index": len(choice.calls), "id": call_id, "type": "function", "function": function}
                deltas = _close_call(choice, part.choice)
                choice.calls.append(part)
                choice.arguments.append([])
                if not choice.opened:  # as OpenAI does: role and first call in one delta
                    choice.opened = True
                    return [_delta(part.choice, {"role": "assistant", "content": None, "tool_calls": [call]})]
                return [*deltas, _delta(part.choice, {"tool_calls": [call]})]
            case Arguments():
                choice.arguments[-1].append(_check_text(part.json))
                self.characters += len(part.json)
                return [_arguments(choice, part.choice, part.json)]
            case Finish():
                deltas = [*_open(choice, part.choice, content=""), *_close_call(choice, part.choice)]
                choice.finished = part.reason
                return deltas  # the reason comes last, as some vendors send it with every event

    def end(self) -> list[dict[str, Any]]:
        """Return the deltas that end every choice."""
        return [_delta(index, {}, choice.finished) for index, choice in sorted(self.choices.items())]

    def head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}


# Vendors build parts from unchecked JSON: a `TypeError` reports a value of the wrong type.


def _check_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def _check_index(value: Any) -> int:
    if type(value) is not int:  # nor a boolean
        raise TypeError("not the index of a choice")
    return value


def _check_usage(usage: Usage) -> Usage:
    return Usage(
        read_count(usage.prompt),
        read_count(usage.completion),
        read_count(usage.cached),
        read_count(usage.reasoning),
        cache_writes=read_count(usage.cache_writes),
        cache_writes_1h=read_count(usage.cache_writes_1h),
    )


def _delta(index: int, delta: dict[str, Any], reason: Reason | None = None) -> dict[str, Any]:
    return {"index": index, "delta": delta, "logprobs": None, "finish_reason": reason}


def _open(choice: _Choice, index: int, content: str | None) -> list[dict[str, Any]]:
    if choice.opened:
        return []
    choice.opened = True
    return [_delta(index, {"role": "assistant", "content": content, "refusal": None})]


def _arguments(choice: _Choice, index: int, json: str) -> dict[str, Any]:
    return _delta(index, {"tool_calls": [{"index": len(choice.calls) - 1, "function": {"arguments": json}}]})


def _close_call(choice: _Choice, index: int) -> list[dict[str, Any]]:
    """Give a call without arguments an empty object, because clients parse the text."""
    if not choice.calls or any(choice.arguments[-1]):
        return []
    choice.arguments[-1].append("{}")
    return [_arguments(choice, index, "{}")]


class TranslatedStream:
    """A stream in another dialect, written as chunks; implements `Stream`."""

    __slots__ = ("_reply", "_splitter", "_translator", "broken", "malformed", "quick")

    def __init__(self, ask: Ask, translator: Translator, reply_id: str, created: int) -> None:
        self._reply = _Reply(ask, reply_id, created)
        self._translator = translator
        self._splitter = Splitter()
        self.malformed = 0
        self.broken: Broken | Malformed | None = None
        self.quick = None  # every event is translated

    @property
    def usage(self) -> Usage | None:
        """The vendor's own count of tokens so far."""
        return self._reply.usage

    @property
    def characters(self) -> int:
        """Number of characters of the answer so far."""
        return self._reply.characters

    @property
    def finished(self) -> dict[int, str]:
        """The finish reason of each choice that has ended."""
        return {index: choice.finished for index, choice in self._reply.choices.items() if choice.finished}

    @property
    def ended(self) -> bool:
        """Return whether the vendor has marked the end of its stream."""
        return self._reply.ended

    @property
    def complete(self) -> bool:
        """Return whether every choice that began is complete."""
        return self._reply.complete

    @property
    def comments(self) -> int:
        """Number of comments received instead of events."""
        return self._splitter.comments

    def feed(self, data: bytes) -> bytes:
        """Take bytes of the vendor and return whole events for the caller."""
        return self._render_all(self._splitter.feed(data))

    def end(self) -> bytes:
        """End the vendor's stream and return the bytes that close ours."""
        was_complete = self.complete
        rest = self._render_all(self._splitter.end())
        if was_complete and isinstance(self.broken, Malformed):
            self.broken = None  # a truncated event after the end of every choice holds nothing of them
        if self.broken is not None or not self.complete:
            return rest
        reply = self._reply
        without = {"usage": None} if reply.ask.include_usage else {}
        rest += b"".join(self._event({"choices": [delta], **without}) for delta in reply.end())
        if reply.ask.include_usage:
            usage = reply.usage or estimate(reply.ask, reply.characters)
            rest += self._event({"choices": [], "usage": usage.as_json()})
        reply.ended = True
        return rest + DONE

    def _render_all(self, events: list[tuple[bytes, bytes]]) -> bytes:
        out: list[bytes] = []
        try:
            for name, payload in events:
                out += self._render(name, payload)
        except (Broken, Malformed) as broken:  # events before it still count
            self.broken = broken
        return b"".join(out)

    def _render(self, name: bytes, payload: bytes) -> Iterator[bytes]:
        without = {"usage": None} if self._reply.ask.include_usage else {}
        try:
            for part in list(self._translator.event(name.decode("latin-1"), payload)):
                for delta in self._reply.take(part):
                    yield self._event({"choices": [delta], **without})
        except UNREPAIRABLE:
            _check_harmless(name, payload)
            self.malformed += 1
            if self.malformed > MAX_SKIPPED:
                raise Malformed("it sent events that cannot be read, without end") from None

    def _event(self, rest: dict[str, Any]) -> bytes:
        return b"data: " + write_json(self._reply.head("chat.completion.chunk") | rest) + b"\n\n"


def _check_harmless(name: bytes, payload: bytes) -> None:
    """Raise if an event that the translator rejects is an error or holds a part of the answer."""
    try:
        found = read_json(payload)
    except (ValueError, RecursionError):
        found = payload.decode("utf-8", "replace") if name == b"error" else None
    if name == b"error":
        raise Broken(write_error(found))
    if isinstance(found, dict) and (error := find_error(cast("dict[str, Any]", found))):
        raise Broken(error)
    if is_chunk_like(payload):
        raise Malformed("it sent an event of an unknown shape")


def render_whole(parts: Iterable[Part], ask: Ask, reply_id: str, created: int) -> tuple[bytes, Usage | None, int]:
    """Return the completion of these parts, its usage and its number of characters."""
    reply = _Reply(ask, reply_id, created)
    try:
        for part in parts:
            reply.take(part)
    except UNREPAIRABLE as error:
        raise Malformed(f"a reply of an unexpected shape ({type(error).__name__})") from None
    if not reply.complete:
        raise Malformed("the reply is not complete")
    choices = [
        {"index": index, "message": _message(choice), "logprobs": None, "finish_reason": choice.finished}
        for index, choice in sorted(reply.choices.items())
    ]
    usage = reply.usage or estimate(ask, reply.characters)
    body = reply.head("chat.completion") | {"choices": choices, "usage": usage.as_json()}
    return write_json(body), reply.usage, reply.characters


def _message(choice: _Choice) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": "".join(choice.text) or None, "refusal": None}
    if choice.reasoning:
        message["reasoning_content"] = "".join(choice.reasoning)
    if choice.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": "".join(arguments)}}
            for call, arguments in zip(choice.calls, choice.arguments, strict=True)
        ]
    return message

"""Translates replies of OpenAI's dialect into parts, for callers of another dialect."""

from collections.abc import Iterator
from typing import Final

from msgspec import UnsetType

from penstock.chat.replies.chunks.completion import WholeMessage, find_usage, read_completion
from penstock.chat.replies.chunks.reader import ChunkChoice, ChunkReader, Delta, UsageCounts, read_usage, split_lines
from penstock.chat.replies.template import FramedTemplate
from penstock.domain.chat import (
    Arguments,
    Ask,
    End,
    Finish,
    Part,
    Reason,
    Reasoning,
    RefusalText,
    Text,
    ToolCall,
    Used,
)

REASONS: Final = {
    "length": Reason.LENGTH,
    "tool_calls": Reason.TOOL_CALLS,
    "function_call": Reason.TOOL_CALLS,
    "content_filter": Reason.FILTER,
}


class _Call:
    """A tool call that is collected until its turn."""

    __slots__ = ("arguments", "id", "name")

    def __init__(self, call_id: str) -> None:
        self.id = call_id
        self.name = ""
        self.arguments: list[str] = []


class ChunkTranslation:
    """Implements `Translator`.

    Only the first call of a choice is passed on as it comes: vendors may mix the pieces of parallel calls.
    """

    def __init__(self, ask: Ask, reply_id: str, created: int) -> None:
        self._ask = ask
        self._reply_id = reply_id
        self._created = created
        self._reader = ChunkReader(reply_id, created, ask.model)
        self._calls: dict[int, list[_Call]] = {}
        self.template: FramedTemplate | None = None
        """The template by which texts are passed on that this does not see."""

    def event(self, name: str, data: bytes) -> Iterator[Part]:
        """Yield the parts of one event."""
        if data.startswith(b"[DONE]"):
            yield from self._end()
            return
        event = name.encode("latin-1")
        if b"\n" in data:
            for line in split_lines(event, data):
                yield from self.event(name, line)
            return
        passed = self._reader.characters + (0 if self.template is None else self.template.characters)
        read = self._reader.read(event, data, passed)
        if read is None:
            raise ValueError("an event without a part of the answer")
        chunk = read[1]
        for choice in chunk.choices:
            yield from self._read_choice(choice)
        if isinstance(chunk.usage, UsageCounts) and (usage := read_usage(chunk.usage)):
            yield Used(usage)

    def _end(self) -> Iterator[Part]:
        """Yield the end; a choice without a finish reason ended properly all the same."""
        for index in sorted(self._reader.seen - self._reader.finished.keys()):
            yield from self._finish(index, "tool_calls" if self._calls.get(index) else "stop")
        yield End()

    def whole(self, body: bytes) -> Iterator[Part]:
        """Yield the parts of a reply that was not streamed."""
        _, completion = read_completion(body, self._ask, self._reply_id, self._created)
        for choice in completion.choices:
            yield from _read_message(choice.message, choice.index)
            yield Finish(_read_reason(choice.finish_reason, has_calls=_has_calls(choice.message)), choice.index)
        if usage := find_usage(completion):
            yield Used(usage)
        yield End()

    def _read_choice(self, choice: ChunkChoice) -> Iterator[Part]:
        delta, index = choice.delta, choice.index
        if delta.reasoning_content:
            yield Reasoning(delta.reasoning_content, index)
        if delta.content:
            yield Text(delta.content, index)
        if delta.refusal:
            yield RefusalText(delta.refusal, index)
        yield from self._read_calls(delta, index)
        if choice.finish_reason is not None:
            yield from self._finish(index, choice.finish_reason)

    def _read_calls(self, delta: Delta, index: int) -> Iterator[Part]:
        calls = self._calls.setdefault(index, []) if delta.tool_calls or delta.function_call else []
        pieces = [(call.index, call.id, call.function) for call in delta.tool_calls or ()]
        if delta.function_call is not None:
            pieces.append((0, f"call_{self._reply_id[-20:]}_{index}", delta.function_call))
        for place, call_id, function in pieces:
            is_new = place == len(calls)
            if is_new:
                calls.append(_Call(call_id or ""))
            call = calls[place]
            call.name += function.name or "" if function else ""
            arguments = function.arguments or "" if function else ""
            if place == 0:
                if is_new:
                    yield ToolCall(call.id, call.name, index)
                if arguments:
                    yield Arguments(arguments, index)
            else:
                call.arguments.append(arguments)

    def _finish(self, index: int, reason: str) -> Iterator[Part]:
        calls = self._calls.get(index, [])
        for call in calls[1:]:
            yield ToolCall(call.id, call.name, index)
            yield Arguments("".join(call.arguments), index)
        yield Finish(_read_reason(reason, has_calls=bool(calls)), index)


def _read_message(message: WholeMessage, index: int) -> Iterator[Part]:
    if message.reasoning_content:
        yield Reasoning(message.reasoning_content, index)
    if message.content:
        yield Text(message.content, index)
    if message.refusal:
        yield RefusalText(message.refusal, index)
    calls = () if isinstance(message.tool_calls, UnsetType) else message.tool_calls
    for call in calls:
        if call.function is not None:
            yield ToolCall(call.id, call.function.name, index)
            yield Arguments(call.function.arguments, index)


def _has_calls(message: WholeMessage) -> bool:
    return not isinstance(message.tool_calls, UnsetType) and bool(message.tool_calls)


def _read_reason(reason: str, *, has_calls: bool) -> Reason:
    """Return the reason; some vendors say `stop` although tools are called."""
    found = REASONS.get(reason, Reason.STOP)
    return Reason.TOOL_CALLS if found is Reason.STOP and has_calls else found

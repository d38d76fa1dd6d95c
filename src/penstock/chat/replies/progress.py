"""The progress of a reply in parts: which choices have begun and ended, and what it used."""

from typing import Any, Final, assert_never

from penstock.chat.replies.broken import Broken
from penstock.domain.chat import (
    Arguments,
    End,
    Fault,
    Finish,
    Opening,
    Part,
    Reasoning,
    RefusalText,
    Seal,
    Text,
    ToolCall,
    Usage,
    Used,
    read_count,
)

MAX_CALLS: Final = 1_000
"""Tool calls of one choice."""


class Progress:
    """Checks and counts the parts of one reply. Vendors build parts from JSON that nobody has checked."""

    __slots__ = ("_calls", "characters", "ended", "finished", "seen", "usage")

    def __init__(self) -> None:
        self._calls: dict[int, int] = {}
        self.seen: set[int] = set()
        """Choices that have begun."""
        self.finished: dict[int, str] = {}
        """The finish reason of each choice that has ended."""
        self.usage: Usage | None = None
        """The vendor's latest count of tokens."""
        self.characters = 0
        """Number of characters of the answer so far."""
        self.ended = False
        """True once the vendor has marked the end."""

    @property
    def complete(self) -> bool:
        """Return whether every choice that began is complete."""
        return bool(self.seen) and self.seen == self.finished.keys()

    def take(self, part: Part) -> None:
        """Record a part. Raise `Broken` for a fault, and `TypeError` or `LookupError` for a part that cannot be."""
        match part:
            case Text() | Reasoning() | RefusalText() | Seal() | ToolCall() | Arguments() | Finish():
                if type(part.choice) is not int:  # nor a boolean
                    raise TypeError("not the index of a choice")
                self._grow(part)
            case Opening():
                _check_text(part.id)
                _check_text(part.model)
            case Used():
                self.usage = _check_usage(part.usage)
            case End():
                self.ended = True
            case Fault():
                raise Broken(part)
            case _ as unreachable:
                assert_never(unreachable)

    def _grow(self, part: Text | Reasoning | RefusalText | Seal | ToolCall | Arguments | Finish) -> None:
        match part:
            case Arguments():
                if part.choice not in self._calls:
                    raise LookupError("arguments without a call")
                self.characters += len(_check_text(part.json))
            case ToolCall():
                _check_text(part.id)
                _check_text(part.name)
                calls = self._calls[part.choice] = self._calls.get(part.choice, 0) + 1
                if calls > MAX_CALLS:
                    raise ValueError("too many tool calls")
            case Finish():
                self.finished[part.choice] = part.reason
            case Seal():
                _check_text(part.text)
            case _:
                self.characters += len(_check_text(part.text))
        self.seen.add(part.choice)


def _check_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
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

"""Chat in words: what was asked, what it used, what can be wrong with a reply, and the parts a reply is made of."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, TypeAlias, cast

import msgspec
from msgspec import structs

# -- what a caller asks


class Ask(msgspec.Struct, frozen=True):  # as all of these: made for every request, and quicker than a dataclass
    """A chat request: the few fields that are read, and all of them as they came."""

    model: str
    fields: Mapping[str, msgspec.Raw]
    """Every top-level field of the body that is not null, unparsed."""
    stream: bool = False
    include_usage: bool = False
    max_tokens: int | None = None
    size: int = 0
    """Bytes of the body."""
    prompt: int = 0
    """About how many tokens are asked."""

    def field(self, name: str) -> Any:
        """A field's value, parsed; None where it is absent."""
        raw = self.fields.get(name)
        return None if raw is None else msgspec.json.decode(raw)

    def forget_messages(self) -> None:
        """Free the memory of a large body once a vendor answers: nobody reads the messages from then on."""
        fields = cast("dict[str, msgspec.Raw]", self.fields)
        fields.pop("messages", None)
        for name, raw in fields.items():
            fields[name] = raw.copy()  # each of them holds the whole body

    def has(self, name: str, *, but: Any = None) -> bool:
        """Whether a field is present with another value than one that asks for nothing."""
        return name in self.fields and self.field(name) != but


# -- what a completion used


class Usage(msgspec.Struct, frozen=True):
    """Tokens. `cached` are among `prompt`, `reasoning` among `completion`."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    reasoning: int = 0
    estimated: bool = False

    def as_json(self) -> dict[str, Any]:
        """The `usage` object of a reply."""
        found: dict[str, Any] = {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.prompt + self.completion,
            "prompt_tokens_details": {"cached_tokens": self.cached},
            "completion_tokens_details": {"reasoning_tokens": self.reasoning},
        }
        return found | {"estimated": True} if self.estimated else found


CHARACTERS_PER_TOKEN = 4
MOST_TOKENS = 1_000_000_000
TOKENS_PER_PICTURE = 1_000
PIECE_BYTES: Final = 1 << 20
"""Longer texts are looked at in such pieces: a copy of all would take memory and hold up other threads."""
_EMBEDDED = re.compile(rb"data:[a-z]+/[^\"\\]*")
_REST = re.compile(rb"[^\"\\]*")
_LONGEST_BEGINNING: Final = 64
"""Of `data:` and the kind of a picture; they may lie on both sides of a border between pieces."""


def read_count(told: Any) -> int:
    """A count of tokens as a vendor told it, within what can be true: the store could not hold just any number."""
    return told if type(told) is int and 0 <= told <= MOST_TOKENS else int(min(max(0, told or 0), MOST_TOKENS))


def guess_tokens(messages: msgspec.Raw) -> int:
    """About how many tokens they have, by their length; a picture has fewer than characters."""
    view = memoryview(messages)
    if len(view) > PIECE_BYTES:
        length, pictures = _measure_pieces(view)
    else:
        text, pictures = view.tobytes(), 0
        if b"data:" in text:
            text, pictures = _EMBEDDED.subn(b"", text)
        length = len(text)
    return length // CHARACTERS_PER_TOKEN + pictures * TOKENS_PER_PICTURE + 1


def _measure_pieces(view: memoryview) -> tuple[int, int]:
    """Return the number of bytes outside of embedded pictures, and of these, without a copy of the whole."""
    length, pictures, start, is_inside = len(view), 0, 0, False
    while start < len(view):
        piece = view[start : start + PIECE_BYTES].tobytes()
        is_last = start + len(piece) >= len(view)
        if is_inside:
            end = len(rest[0]) if (rest := _REST.match(piece)) else 0
            length -= end
            is_inside = end == len(piece)
            start += end
            continue
        found = _EMBEDDED.search(piece) if b"data:" in piece else None
        if found is None:
            start += len(piece) if is_last else len(piece) - _LONGEST_BEGINNING
        elif found.start() > len(piece) - _LONGEST_BEGINNING and not is_last and found.start() > 0:
            start += found.start()  # to see all of it that says what it is
        else:
            pictures += 1
            length -= len(found[0])
            is_inside = found.end() == len(piece)
            start += found.end()
    return length, pictures


def estimate(ask: Ask, answered_characters: int, told: Usage | None = None) -> Usage:
    """What was used, when the vendor did not say or not all: a guess by length, marked as such."""
    told = told or Usage(ask.prompt)
    completion = max(told.completion, -(-answered_characters // CHARACTERS_PER_TOKEN))
    return structs.replace(told, completion=completion, estimated=True)


# -- what can be wrong with a reply


class Blame(StrEnum):
    """Whose fault a failed reply is, and so what to do about it."""

    CALLER = "caller"  # the request: told to the caller, no other route would help
    CREDENTIAL = "credential"  # our key or our credit with the vendor: the operator's business
    LIMIT = "limit"  # the vendor's rate limit
    BUSY = "busy"  # the vendor is overloaded or loading
    VENDOR = "vendor"  # the vendor failed


class Fault(msgspec.Struct, frozen=True):
    """A failed reply, in the vendor's words."""

    blame: Blame
    message: str = ""
    code: str | None = None
    param: str | None = None
    retry_after: float | None = None
    status: int = 0


def blame_status(status: int) -> Blame:
    """What an HTTP status alone says, where a vendor's dialect does not say more."""
    match status:
        case 401 | 402 | 403:
            return Blame.CREDENTIAL
        case 429:
            return Blame.LIMIT
        case 503 | 529:
            return Blame.BUSY
        case 400 | 413 | 422:
            return Blame.CALLER
        case _:
            return Blame.VENDOR


# -- what a reply is made of; vendors with a dialect of their own give these, in the order they come


class Opening(msgspec.Struct, frozen=True):
    """The vendor's own id of the reply, and of the model that makes it."""

    id: str
    model: str


class Text(msgspec.Struct, frozen=True):
    """Some of the answer."""

    text: str
    choice: int = 0


class Reasoning(msgspec.Struct, frozen=True):
    """Some of the thinking before it."""

    text: str
    choice: int = 0


class ToolCall(msgspec.Struct, frozen=True):
    """A tool is called; its `Arguments` follow before the next call begins."""

    id: str
    name: str
    choice: int = 0


class Arguments(msgspec.Struct, frozen=True):
    """Some of the JSON text that the latest tool call of the choice takes."""

    json: str
    choice: int = 0


class Reason(StrEnum):
    """Why a choice ended."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    FILTER = "content_filter"


class Finish(msgspec.Struct, frozen=True):
    """A choice is complete."""

    reason: Reason
    choice: int = 0


class Used(msgspec.Struct, frozen=True):
    """What the vendor counted; a later one replaces an earlier one."""

    usage: Usage


class End(msgspec.Struct, frozen=True):
    """The vendor says that there is no more."""


Part: TypeAlias = Opening | Text | Reasoning | ToolCall | Arguments | Finish | Used | Fault | End

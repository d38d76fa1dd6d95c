"""Chat: the request, the usage, the faults of a reply, and the parts of a reply."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, TypeAlias, cast

import msgspec
from msgspec import structs

from penstock.domain.attribution.labels import Attribution

# -- the request


class Dialect(StrEnum):
    """The wire format of a request: that of the door it came through, or of a vendor."""

    CHAT = "chat"  # OpenAI's chat completions, into which all others are translated
    MESSAGES = "messages"  # Anthropic's
    RESPONSES = "responses"  # OpenAI's newer one
    EMBEDDINGS = "embeddings"  # OpenAI's embeddings, which only vendors of embedding models take
    SPEECH = "speech"  # OpenAI's speech, a text in and a sound out
    TRANSCRIPTIONS = "transcriptions"  # OpenAI's transcriptions, a sound in and a text out


ONE_SHOT: Final = frozenset({Dialect.EMBEDDINGS, Dialect.SPEECH, Dialect.TRANSCRIPTIONS})
"""Dialects of requests that are no conversation. They have no translation, and their vendors answer at once."""


class AudioUpload(msgspec.Struct, frozen=True):
    """A sound file as a caller sent it."""

    name: str
    content_type: str
    data: bytes


class Ask(msgspec.Struct, frozen=True):  # like all of these, one per request: faster than a dataclass
    """A chat request: the few fields that are read, and all fields unparsed."""

    model: str
    fields: Mapping[str, msgspec.Raw]
    """Every top-level field of the body that is not null, unparsed."""
    dialect: Dialect = Dialect.CHAT
    """The dialect of the fields."""
    stream: bool = False
    include_usage: bool = False
    max_tokens: int | None = None
    size: int = 0
    """Bytes of the body."""
    prompt: int = 0
    """Estimated number of prompt tokens."""
    choices: int = 1
    """Number of answers asked for."""
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    """Headers for a vendor of the same dialect, such as `anthropic-beta`."""
    left_out: tuple[str, ...] = ()
    """Fields of the caller's dialect that a translation cannot express."""
    reply_id: str = ""
    """The id of a reply that is kept. Empty: it is made of the request's id, which callers may choose."""
    characters: int = 0
    """Characters to read aloud."""
    upload: AudioUpload | None = None
    """The sound to write down."""
    seconds: float = 0.0
    """Its length, once it was opened."""
    is_translated: bool = False
    """True if it came in another dialect: then fields that no chat client sends may be in it."""
    attribution: Attribution | None = None
    """Its tags, end user and session; None if it names none."""

    @property
    def tags(self) -> tuple[str, ...]:
        """Return its tags, and those of its key."""
        return () if self.attribution is None else self.attribution.tags

    def field(self, name: str) -> Any:
        """Return a field's parsed value; None if it is absent."""
        raw = self.fields.get(name)
        return None if raw is None else msgspec.json.decode(raw)

    def forget_messages(self) -> None:
        """Free the memory of a large body once a vendor answers; the messages are not read after that."""
        fields = cast("dict[str, msgspec.Raw]", self.fields)
        for name in CONVERSATIONS:
            fields.pop(name, None)
        for name, raw in fields.items():
            fields[name] = raw.copy()  # each one references the whole body

    def has(self, name: str, *, but: Any = None) -> bool:
        """Return whether a field is present with another value than `but`, which has no effect."""
        return name in self.fields and self.field(name) != but


CONVERSATIONS: Final = ("messages", "input")
"""Fields that hold the conversation, each in its dialect."""


# -- the usage


class Usage(msgspec.Struct, frozen=True):
    """Token counts. `prompt` includes `cached` and `cache_writes`, `completion` includes `reasoning`."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    """Read from the vendor's cache."""
    reasoning: int = 0
    estimated: bool = False
    cache_writes: int = 0
    """Written to the vendor's cache, for any time."""
    cache_writes_1h: int = 0
    """Those of `cache_writes` that are kept for an hour, which some vendors charge more for."""

    def cut(self, prompt: int, completion: int) -> "Usage":
        """Return the usage with these totals and no part above what its total leaves for it."""
        cached = min(self.cached, prompt)
        writes = min(self.cache_writes, prompt - cached)
        return structs.replace(
            self,
            prompt=prompt,
            completion=completion,
            cached=cached,
            reasoning=min(self.reasoning, completion),
            cache_writes=writes,
            cache_writes_1h=min(self.cache_writes_1h, writes),
        )

    def as_json(self) -> dict[str, Any]:
        """Return the `usage` object of a reply; counts of cache writes only if there are some."""
        writes = {"cache_write_tokens": self.cache_writes, "cache_write_1h_tokens": self.cache_writes_1h}
        found: dict[str, Any] = {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.prompt + self.completion,
            "prompt_tokens_details": {"cached_tokens": self.cached} | {name: n for name, n in writes.items() if n},
            "completion_tokens_details": {"reasoning_tokens": self.reasoning},
        }
        return found | {"estimated": True} if self.estimated else found


CHARACTERS_PER_TOKEN = 4
MOST_TOKENS = 1_000_000_000
TOKENS_PER_PICTURE = 1_000
PIECE_BYTES: Final = 1 << 20
"""Longer texts are scanned in pieces: a copy of all would take memory and block other threads."""
_EMBEDDED = re.compile(rb'(?:data:[a-z]+/|data"\s?:\s?"(?=[\w+/-]{200}))[^"\\]*')
"""A `data:` URI, or the long value of a field `data`."""
_REST = re.compile(rb"[^\"\\]*")
_LONGEST_BEGINNING: Final = 256
"""Upper bound of what shows that embedded data begins, which may cross the border between two pieces."""


def read_count(value: Any) -> int:
    """Return a vendor's token count, limited to plausible values that the store can hold."""
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else int(min(max(0, value or 0), MOST_TOKENS))


def guess_tokens(messages: msgspec.Raw) -> int:
    """Estimate the number of tokens by length; an embedded picture counts as a fixed number."""
    view = memoryview(messages)
    if len(view) > PIECE_BYTES:
        length, pictures = _measure_pieces(view)
    else:
        text, pictures = view.tobytes(), 0
        if _has_data(text):
            text, pictures = _EMBEDDED.subn(b"", text)
        length = len(text)
    return length // CHARACTERS_PER_TOKEN + pictures * TOKENS_PER_PICTURE + 1


def _has_data(text: bytes) -> bool:
    return b"data:" in text or b'data"' in text


def _measure_pieces(view: memoryview) -> tuple[int, int]:
    """Return the number of bytes outside of embedded pictures, and of pictures, without copying the whole text."""
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
        found = _EMBEDDED.search(piece) if _has_data(piece) else None
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


def estimate(ask: Ask, answered_characters: int, reported: Usage | None = None) -> Usage:
    """Estimate the usage by length where the vendor reported none or only a part; mark it as estimated."""
    reported = reported or Usage(ask.prompt)
    completion = max(reported.completion, -(-answered_characters // CHARACTERS_PER_TOKEN))
    return structs.replace(reported, completion=completion, estimated=True)


# -- faults


class Blame(StrEnum):
    """The party at fault for a failed reply, which decides the reaction."""

    CALLER = "caller"  # the request: returned to the caller, as no other route would help
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
    """Return the party at fault by HTTP status, where the vendor's dialect has nothing more precise."""
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


# -- the parts of a reply, which vendors with a dialect of their own yield in order


class Opening(msgspec.Struct, frozen=True):
    """The vendor's own ids of the reply and of the model."""

    id: str
    model: str


class Text(msgspec.Struct, frozen=True):
    """A piece of the answer."""

    text: str
    choice: int = 0


class Reasoning(msgspec.Struct, frozen=True):
    """A piece of the reasoning before the answer."""

    text: str
    choice: int = 0


class RefusalText(msgspec.Struct, frozen=True):
    """A piece of the text with which a model refuses."""

    text: str
    choice: int = 0


class Seal(msgspec.Struct, frozen=True):
    """Reasoning that only its vendor can read, written by `seals.seal`: the vendor needs it back in a tool loop.

    It follows the `Reasoning` that it belongs to, and comes before the tool calls that were reasoned about.
    """

    text: str
    choice: int = 0


class ToolCall(msgspec.Struct, frozen=True):
    """A tool is called; its `Arguments` follow before the next call begins."""

    id: str
    name: str
    choice: int = 0


class Arguments(msgspec.Struct, frozen=True):
    """A piece of the JSON arguments of the choice's latest tool call."""

    json: str
    choice: int = 0


class Reason(StrEnum):
    """The reason for the end of a choice."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    FILTER = "content_filter"


class Finish(msgspec.Struct, frozen=True):
    """A choice is complete."""

    reason: Reason
    choice: int = 0


class Used(msgspec.Struct, frozen=True):
    """The vendor's token counts; later ones replace earlier ones."""

    usage: Usage


class End(msgspec.Struct, frozen=True):
    """The end of the reply, as stated by the vendor."""


Part: TypeAlias = Opening | Text | Reasoning | RefusalText | Seal | ToolCall | Arguments | Finish | Used | Fault | End

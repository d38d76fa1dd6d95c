"""Reads chunks of OpenAI's dialect, and repairs those that deviate from it."""

from typing import Any, Final, cast

import msgspec
from msgspec import UNSET, UnsetType

from penstock.chat.replies.broken import UNREPAIRABLE, Broken, Malformed
from penstock.chat.replies.chunks.repair import Json, Repairer, is_chunk_like, wraps_chunk
from penstock.chat.replies.chunks.tool_calls import ToolCalls
from penstock.chat.replies.flat_errors import find_error, write_error
from penstock.domain.chat import Usage, read_count
from penstock.vendor_api.lenient_json import UNREADABLE, read_json, write_json

MAX_CHOICES = 1_000

# -- the shape of a good chunk; any other is repaired


class Details(msgspec.Struct, gc=False):
    """Counts of a part of the tokens."""

    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    cache_write_1h_tokens: int | None = None  # our own, of a gateway that is a vendor of another
    reasoning_tokens: int | None = None


_NO_DETAILS: Final = Details()


class UsageCounts(msgspec.Struct, gc=False):
    """A vendor's own count of tokens."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: Details | None = None
    completion_tokens_details: Details | None = None


class FunctionChunk(msgspec.Struct, gc=False):
    """A piece of a called function."""

    name: str | None = None
    arguments: str | None = None


class CallChunk(msgspec.Struct, gc=False):
    """A piece of a tool call."""

    index: int
    id: str | None = None
    type: str | None = None
    function: FunctionChunk | None = None


class Delta(msgspec.Struct, gc=False):
    """The change to one choice."""

    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None  # of vLLM and Ollama
    tool_calls: list[CallChunk] | None = None
    function_call: FunctionChunk | None = None  # legacy


class ChunkChoice(msgspec.Struct, gc=False):
    """One choice of a chunk."""

    index: int
    delta: Delta
    finish_reason: str | None
    error: UnsetType = UNSET


class Chunk(msgspec.Struct, gc=False):
    """One event of a stream in OpenAI's dialect."""

    choices: list[ChunkChoice]
    usage: UsageCounts | UnsetType | None = UNSET
    error: UnsetType = UNSET


class ChunkHead(msgspec.Struct, gc=False):
    """Fields that a vendor sends on every chunk or on none: checked on the first."""

    id: str
    object: str
    created: int
    model: str


_head = msgspec.json.Decoder(ChunkHead)
_chunk = msgspec.json.Decoder(Chunk)


class ChunkReader:
    """Reads the chunks of one stream, and records what has come of each choice."""

    __slots__ = ("_calls", "_needs_repair", "_repairer", "characters", "finished", "seen")

    def __init__(self, reply_id: str, created: int, model: str) -> None:
        self._repairer = Repairer(reply_id, created, model)
        self._needs_repair: bool | None = None  # the head of every chunk; decided by the first
        self._calls: dict[int, ToolCalls] = {}
        self.seen: set[int] = set()
        """Choices that have begun."""
        self.finished: dict[int, str] = {}
        """The finish reason of each choice that has ended."""
        self.characters = 0
        """Number of characters read so far."""

    def read(self, name: bytes, payload: bytes, passed: int) -> tuple[bytes, Chunk] | None:
        """Return a chunk and its bytes, repaired if necessary; None for an event that holds nothing of the answer.

        `passed` is the number of characters that the caller has. Raise `Broken` for an error.
        """
        chunk = self._decode(payload) if name != b"error" else None
        return self._repair(name, payload, passed) if chunk is None else (payload, chunk)

    def make_chunk(self) -> Json:
        """Return a chunk without content."""
        return self._repairer.repair_chunk({}, (), {})

    def _decode(self, payload: bytes) -> Chunk | None:
        """Return the chunk after counting it; None if it needs repair."""
        try:
            check_text(payload)
            chunk = _chunk.decode(payload)
        except UNREADABLE:
            return None
        choices = chunk.choices
        if self._needs_repair is False and len(choices) == 1 and is_text(choices[0]):  # as nearly every chunk
            delta = choices[0].delta
            self.seen.add(0)
            self.characters += len(delta.content or delta.reasoning_content or delta.refusal or "")
            return chunk
        if self._needs_repair is None:
            self._needs_repair = not _has_head(payload)
        if self._needs_repair or not all(map(self._is_valid, choices)):
            return None
        self._count(chunk)
        return chunk

    def _is_valid(self, choice: ChunkChoice) -> bool:
        delta, reason = choice.delta, choice.finish_reason
        if reason is not None and (not reason or reason == "error" or choice.index in self.finished):
            return False  # empty, a failure or repeated
        if delta.tool_calls is not None and not self._calls_of(choice).fit(delta.tool_calls):
            return False
        if delta.function_call is not None and self._calls_of(choice).repeats(delta.function_call.name):
            return False
        return delta.reasoning is None or delta.reasoning_content is not None

    def _calls_of(self, choice: ChunkChoice) -> ToolCalls:
        found = self._calls.get(choice.index)
        return self._calls.setdefault(choice.index, ToolCalls()) if found is None else found

    def _count(self, chunk: Chunk) -> None:
        for choice in chunk.choices:
            delta = choice.delta
            self.seen.add(choice.index)
            if choice.finish_reason is not None:
                self.finished[choice.index] = choice.finish_reason
            self.characters += len(delta.content or delta.reasoning_content or delta.refusal or "")
            if delta.tool_calls:
                self._calls_of(choice).record(delta.tool_calls)
                self.characters += sum(len(call.function.arguments or "") for call in delta.tool_calls if call.function)
            if delta.function_call is not None:
                self._calls_of(choice).record_function(delta.function_call.name)
                self.characters += len(delta.function_call.arguments or "")
        if len(self.seen) > MAX_CHOICES:
            raise Malformed("it sent too many choices")

    def _repair(self, name: bytes, payload: bytes, passed: int) -> tuple[bytes, Chunk] | None:
        """Return the repaired chunk; None for an event that holds nothing of the answer."""
        found = parse(payload)
        if name == b"error":
            raise Broken(write_error(payload.decode("utf-8", "replace") if found is None else found))
        if not isinstance(found, dict):
            if is_chunk_like(payload):
                raise Malformed("it sent an event that cannot be read")
            return None
        if error := find_error(cast("Json", found)):
            raise Broken(error)
        if "choices" not in found and wraps_chunk(payload):
            raise Malformed("it sent an event of an unknown shape")
        try:
            whole = self._repairer.repair_chunk(cast("Json", found), self.finished, self._calls, passed)
            chunk = msgspec.convert(whole, Chunk)
        except UNREPAIRABLE:
            raise Malformed("it sent an event of an unknown shape") from None
        self._count(chunk)
        return write_json(whole), chunk


def split_lines(name: bytes, payload: bytes) -> list[bytes]:
    """Return the one event of several lines, or several events without blank lines between them."""
    joined = payload.replace(b"\n", b" ")
    return payload.split(b"\n") if parse(joined) is None and name != b"error" else [joined]


def parse(payload: bytes) -> Any:
    """Return the parsed payload; None if it cannot be read."""
    try:
        return read_json(payload)
    except (ValueError, RecursionError):
        return None


def read_usage(found: UsageCounts) -> Usage | None:
    """Return the vendor's count of tokens; None if it has none."""
    if found.prompt_tokens is None and found.completion_tokens is None:
        return None
    asked, answered = found.prompt_tokens_details or _NO_DETAILS, found.completion_tokens_details or _NO_DETAILS
    return Usage(
        read_count(found.prompt_tokens),
        read_count(found.completion_tokens),
        read_count(asked.cached_tokens),
        read_count(answered.reasoning_tokens),
        cache_writes=read_count(asked.cache_write_tokens),
        cache_writes_1h=read_count(asked.cache_write_1h_tokens),
    )


def is_text(choice: ChunkChoice) -> bool:
    """Return whether a choice holds nothing but text of the first choice."""
    delta = choice.delta
    is_plain = delta.content is not None and delta.tool_calls is None and delta.reasoning is None
    is_plain = is_plain and delta.function_call is None
    return is_plain and choice.finish_reason is None and choice.index == 0


def check_text(payload: bytes) -> None:
    """Check that the payload is UTF-8: msgspec does not check skipped fields."""
    if not payload.isascii():
        payload.decode()


def _has_head(payload: bytes) -> bool:
    try:
        _head.decode(payload)
    except UNREADABLE:
        return False
    return True

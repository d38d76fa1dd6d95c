"""Records of the content log: their facts, and the document that is sealed."""

import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

import msgspec

from penstock.domain.content.messages import LoggedConversation, Message, Part
from penstock.domain.content.redaction import ContentRedactor

ContentKind: TypeAlias = Literal["chat", "generation"]

ID_PREFIX: Final = "content"
PURPOSE: Final = "content"
"""The purpose that sealed documents are bound to."""
OVERHEAD_BYTES: Final = 500
"""Bytes that a record counts besides its document."""
MAX_PARTS: Final = 5_000
"""Parts of one record. Later ones are left out."""
PLAIN: Final = frozenset({"type", "sha256", "bytes"})
"""Fields of parts that hold nothing of a caller's."""
MAX_DOCUMENT_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentFacts:
    """Everything about a logged request but its content. Stored in clear."""

    id: str
    account_id: str
    key_id: str
    request_id: str
    kind: ContentKind
    endpoint: str
    """The dialect of a chat request, or `generation`."""
    model: str
    vendor: str
    upstream_model: str = ""
    streamed: bool = False
    status: str
    """The outcome of a chat request, or `accepted`."""
    error: str | None = None
    job_id: str | None = None
    created_at: float
    seconds: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: int | None = None


@dataclass(frozen=True, slots=True)
class ContentEntry:
    """A request on its way to the log."""

    facts: ContentFacts
    read: Callable[[], LoggedConversation]
    held: int
    """Bytes that it holds in memory until it is written."""
    trace: str | None = None
    """The trace of the request, as a `traceparent`."""


@dataclass(frozen=True, slots=True)
class SealedContent:
    """A record as it is stored."""

    facts: ContentFacts
    expires_at: float
    sealed: bytes = field(repr=False)

    @property
    def size(self) -> int:
        """Return the number of bytes that count against the account's quota."""
        return len(self.sealed) + OVERHEAD_BYTES


@dataclass(frozen=True, slots=True)
class ContentPolicy:
    """The operator's settings of the content log."""

    retention_seconds: float
    """0: the log is off."""
    quota_bytes: int
    max_characters: int
    redactor: Callable[[], ContentRedactor]
    is_exported: bool = False


def redact(conversation: LoggedConversation, redactor: ContentRedactor, max_characters: int) -> dict[str, Any]:
    """Return the document of a record: everything redacted, and no longer than allowed."""
    scribe = _Scribe(redactor, max_characters)
    instructions = scribe.write_parts(conversation.instructions)
    given = [scribe.write(message) for message in conversation.input]
    # The answer has as much room as the request.
    scribe.left += max_characters
    output = [scribe.write(message) for message in conversation.output]
    return {
        "instructions": instructions,
        "input": [message for message in given if message["parts"]],
        "output": [message for message in output if message["parts"]],
        "redactions": dict(scribe.counts),
        "truncated": scribe.is_truncated or conversation.is_partial,
    }


class _Scribe:
    """Writes parts after redaction, as long as there is room."""

    def __init__(self, redactor: ContentRedactor, left: int) -> None:
        self._redactor = redactor
        self.left = left
        self.counts: Counter[str] = Counter()
        self.is_truncated = False
        self._parts = 0

    def write(self, message: Message) -> dict[str, Any]:
        return {**message.describe(), "role": self._write(message.role), "parts": self.write_parts(message.parts)}

    def write_parts(self, parts: Sequence[Part]) -> list[Part]:
        return list(self._write_all(parts))

    def _write_all(self, parts: Sequence[Part]) -> Iterator[Part]:
        for part in parts:
            if self.left <= 0 or self._parts >= MAX_PARTS:
                self.is_truncated = True
                return
            self._parts += 1
            yield {name: value if name in PLAIN else self._write(value) for name, value in part.items()}

    def _write(self, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        written, is_cut = self._redactor.redact_part(value, self.counts, max(self.left, 0))
        self.left -= len(written)
        self.is_truncated |= is_cut
        return written


def pack(document: Mapping[str, Any]) -> bytes:
    """Return a document compressed."""
    return zlib.compress(msgspec.json.encode(document), 6)


def unpack(data: bytes) -> dict[str, Any]:
    """Return the document of a record."""
    return msgspec.json.decode(zlib.decompressobj().decompress(data, MAX_DOCUMENT_BYTES))


def place_of(account_id: str, content_id: str) -> str:
    """Return the row that a document is sealed for."""
    return f"{account_id}/{content_id}"

"""Recorders of answers on their way to the caller, and the one that hands a request to the content log."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from penstock.content_log.log import ContentLog
from penstock.domain.api_keys import ApiKey
from penstock.domain.chat import Ask, AudioUpload, Dialect
from penstock.domain.content.answers import read_answer
from penstock.domain.content.messages import LoggedConversation
from penstock.domain.content.records import ID_PREFIX, ContentEntry, ContentFacts
from penstock.domain.content.requests import copy_fields, read_request
from penstock.domain.ids import new_id
from penstock.domain.usage import Completion
from penstock.observability import traces

if TYPE_CHECKING:
    from penstock.chat.answer import Answer

ENTRY_BYTES: Final = 4_096
"""Bytes that a request counts besides its body."""
STEP_BYTES: Final = 1 << 16
"""Memory for a stream is taken in such steps."""


class Recorder(Protocol):
    """Gets each piece of a stream as its caller gets it."""

    def add(self, piece: bytes) -> None:
        """Take a piece of the answer."""
        ...

    def finish(self) -> None:
        """Note that the answer is complete."""
        ...


class Recorders:
    """Several recorders of one answer."""

    def __init__(self, *recorders: Recorder) -> None:
        self._recorders = recorders

    def add(self, piece: bytes) -> None:
        """Take a piece of the answer."""
        for recorder in self._recorders:
            recorder.add(piece)

    def finish(self) -> None:
        """Note that the answer is complete."""
        for recorder in self._recorders:
            recorder.finish()


def combine(first: Recorder | None, second: Recorder | None) -> Recorder | None:
    """Return one recorder for both; None if there is none."""
    if first is None or second is None:
        return first or second
    return Recorders(first, second)


class ContentCapture:
    """Keeps references to a request and its answer until both go to the content log. It copies nothing."""

    __slots__ = ("_account_id", "_ask", "_fields", "_held", "_is_full", "_log", "_pieces", "_room", "_size", "_trace")

    def __init__(self, log: ContentLog, ask: Ask, account_id: str, held: int) -> None:
        self._log = log
        self._ask = ask
        self._account_id = account_id
        self._fields = copy_fields(ask)
        self._pieces: list[bytes] = []
        self._held = held
        self._room = 0
        """Bytes of a stream for which memory is held."""
        self._size = 0
        self._is_full = False
        self._trace = traces.current()

    @classmethod
    def begin(cls, log: ContentLog, ask: Ask, key: ApiKey) -> "ContentCapture | None":
        """Return a capture of a request; None if the log is off or has no room."""
        if not log.is_on:
            return None
        size = ask.size + ENTRY_BYTES
        if log.try_hold(key.account_id, size):
            return cls(log, ask, key.account_id, size)
        log.drop("memory")
        return None

    def add(self, piece: bytes) -> None:
        """Keep a piece of a stream, as long as there is room."""
        if self._is_full:
            return
        self._size += len(piece)
        if self._size > self._room and not self._grow(len(piece)):
            self._is_full = True
            return
        self._pieces.append(piece)

    def finish(self) -> None:
        """Do nothing: an answer that breaks off is logged, too."""

    def hand_over(self, answer: "Answer", record: Completion) -> None:
        """Give the request and its answer to the log, once the request is settled."""
        body = answer.body or b""
        if body and self._take(len(body)):
            self._pieces.append(body)
        elif body:
            self._is_full = True
        ask = self._ask
        read = partial(
            _read, ask.dialect, ask.upload, self._fields, self._pieces, is_stream=ask.stream, is_partial=self._is_full
        )
        self._log.add(ContentEntry(_write_facts(ask, record), read, self._held, self._trace))

    def _grow(self, more: int) -> bool:
        step = max(STEP_BYTES, more)
        if self._room + step > self._log.max_answer_bytes or not self._take(step):
            return False
        self._room += step
        return True

    def _take(self, size: int) -> bool:
        if not self._log.try_hold(self._account_id, size):
            return False
        self._held += size
        return True


def _read(
    dialect: Dialect,
    upload: AudioUpload | None,
    fields: Mapping[str, msgspec.Raw],
    pieces: Sequence[bytes],
    *,
    is_stream: bool,
    is_partial: bool,
) -> LoggedConversation:
    """Return the content. It runs in the log's thread."""
    instructions, messages = read_request(dialect, fields, upload)
    output = read_answer(dialect, b"".join(pieces), is_stream=is_stream)
    return LoggedConversation(instructions, messages, output, is_partial)


def _write_facts(ask: Ask, record: Completion) -> ContentFacts:
    return ContentFacts(
        id=new_id(ID_PREFIX),
        account_id=record.account_id,
        key_id=record.key_id,
        request_id=record.request_id,
        kind="chat",
        endpoint=ask.dialect.value,
        model=record.model,
        vendor=record.vendor,
        upstream_model=record.upstream_model,
        streamed=record.streamed,
        status=record.outcome.value,
        error=record.code or None,
        created_at=record.created_at,
        seconds=record.seconds,
        prompt_tokens=record.usage.prompt,
        completion_tokens=record.usage.completion,
        cost=record.cost,
    )

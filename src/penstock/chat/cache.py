"""The response cache: complete answers to identical requests of one account. It is off without a size."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from penstock.domain.chat import Ask

MAX_CACHED_ANSWER_BYTES: Final = 1 << 20
"""Longer answers are not cached."""
MIN_CACHED_ANSWERS: Final = 16
"""Answers of the largest size that must fit into the cache."""


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """An answer as it was sent, with its vendor."""

    body: bytes
    vendor: str
    until: float


class CacheRecorder:
    """Collects an answer for the cache while it is sent; drops one that is too long."""

    __slots__ = ("_keep", "_pieces", "_size")

    def __init__(self, keep: Callable[[bytes], None]) -> None:
        self._keep = keep
        self._pieces: list[bytes] = []
        self._size = 0

    def add(self, piece: bytes) -> None:
        """Add a piece of the answer."""
        self._size += len(piece)
        self._pieces.append(piece)
        if self._size > MAX_CACHED_ANSWER_BYTES:
            self._pieces.clear()

    def finish(self) -> None:
        """Store the answer: it is complete."""
        if self._pieces:
            self._keep(b"".join(self._pieces))


class ChatCache:
    """A cache bounded in bytes; the least recently used answer is dropped first."""

    def __init__(self) -> None:
        self._answers: OrderedDict[bytes, CachedAnswer] = OrderedDict()
        self._bytes = 0

    def get(self, key: bytes, now: float) -> CachedAnswer | None:
        """Return the answer under this key unless it has expired."""
        found = self._answers.get(key)
        if found is None:
            return None
        if found.until <= now:
            self._drop(key)
            return None
        self._answers.move_to_end(key)
        return found

    def put(self, key: bytes, answer: CachedAnswer, max_bytes: int) -> None:
        """Store an answer unless it is too large for a cache of `max_bytes`."""
        if len(answer.body) * MIN_CACHED_ANSWERS > max_bytes:
            return
        if key in self._answers:
            self._drop(key)
        self._answers[key] = answer
        self._bytes += len(answer.body)
        while self._bytes > max_bytes:
            self._drop(next(iter(self._answers)))

    def _drop(self, key: bytes) -> None:
        self._bytes -= len(self._answers.pop(key).body)


def cache_key(account_id: str, ask: Ask) -> bytes:
    """Return a hash of account, dialect and fields, independent of the order of the fields."""
    digest = hashlib.sha256(f"{account_id} {ask.dialect} {sorted(ask.headers.items())}".encode())
    for name in sorted(ask.fields):
        raw = memoryview(ask.fields[name])
        digest.update(b"%d %s %d " % (len(name), name.encode(), len(raw)))
        digest.update(raw)
    if ask.upload is not None:
        digest.update(hashlib.sha256(ask.upload.data).digest())
    return digest.digest()

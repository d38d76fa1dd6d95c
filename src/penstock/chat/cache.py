"""The response cache: whole answers to the very same request of the same account; off unless it is given room."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from penstock.domain.chat import Ask

MAX_KEPT_BYTES: Final = 1 << 20
"""A longer answer is not kept."""
MAX_SHARE: Final = 16
"""No answer may take more than this part of the room."""


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """An answer as it was sent, and who made it."""

    body: bytes
    vendor: str
    until: float


class Keeper:
    """Collects an answer while it is sent, for the cache; one that is too long is let go."""

    __slots__ = ("_keep", "_pieces", "_size")

    def __init__(self, keep: Callable[[bytes], None]) -> None:
        self._keep = keep
        self._pieces: list[bytes] = []
        self._size = 0

    def add(self, piece: bytes) -> None:
        """Some of it."""
        self._size += len(piece)
        self._pieces.append(piece)
        if self._size > MAX_KEPT_BYTES:
            self._pieces.clear()

    def finish(self) -> None:
        """That was all of it."""
        if self._pieces:
            self._keep(b"".join(self._pieces))


class ChatCache:
    """Bounded by bytes; the answer used longest ago goes first."""

    def __init__(self) -> None:
        self._answers: OrderedDict[bytes, CachedAnswer] = OrderedDict()
        self._bytes = 0

    def get(self, place: bytes, now: float) -> CachedAnswer | None:
        """The answer kept under this place, if its time is not over."""
        found = self._answers.get(place)
        if found is None:
            return None
        if found.until <= now:
            self._drop(place)
            return None
        self._answers.move_to_end(place)
        return found

    def put(self, place: bytes, answer: CachedAnswer, room: int) -> None:
        """Keep an answer, if it is not too large for the room there is."""
        if len(answer.body) * MAX_SHARE > room:
            return
        if place in self._answers:
            self._drop(place)
        self._answers[place] = answer
        self._bytes += len(answer.body)
        while self._bytes > room:
            self._drop(next(iter(self._answers)))

    def _drop(self, place: bytes) -> None:
        self._bytes -= len(self._answers.pop(place).body)


def place_of(account_id: str, ask: Ask) -> bytes:
    """Equal for the same fields of the same account, in whatever order they were written."""
    digest = hashlib.sha256(account_id.encode())
    for name in sorted(ask.fields):
        raw = memoryview(ask.fields[name])
        digest.update(b"%d %s %d " % (len(name), name.encode(), len(raw)))
        digest.update(raw)
    return digest.digest()

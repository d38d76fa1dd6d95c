"""Ids: a prefix for the type, then 26 characters that sort by time and cannot be guessed."""

import os
import struct
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import overload
from weakref import WeakSet

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no i, l, o, u
_PAIRS = [first + second for first in ALPHABET for second in ALPHABET]  # two digits at a time, for speed
_POOL = 512


def encode(number: int, length: int) -> str:
    """Encode a number in base 32, padded with zeros."""
    pairs: list[str] = []
    for _ in range((length + 1) // 2):
        pairs.append(_PAIRS[number & 1023])
        number >>= 10
    pairs.reverse()
    return "".join(pairs)[-length:]


class IdSource:
    """The time and the random bits of ids. Its numbers grow, even if its clock does not."""

    __slots__ = ("__weakref__", "_last", "_lock", "_nanoseconds", "_pool", "_random_bytes")

    def __init__(
        self,
        nanoseconds: Callable[[], int] = time.time_ns,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._nanoseconds = nanoseconds
        self._random_bytes = random_bytes
        self._lock = threading.Lock()
        self._last = 0
        self._pool: list[int] = []
        _sources.add(self)

    def draw(self) -> int:
        """Return the next number: 64 bits of time, unique within the source, then 64 random bits."""
        with self._lock:
            last = self._last = max(self._last + 1, self._nanoseconds() // 1000)
            if not self._pool:  # drawn in bulk: a system call costs as much as the rest
                self._pool.extend(struct.unpack(f"{_POOL}Q", self._random_bytes(8 * _POOL)))
            return (last << 64) | self._pool.pop()

    def forget(self) -> None:
        """Drop the random bits that were drawn in advance."""
        self._pool.clear()


_sources: WeakSet[IdSource] = WeakSet()
_source = IdSource()


def use(source: IdSource) -> IdSource:
    """Make all further ids from this source. Return the one used so far."""
    global _source
    previous, _source = _source, source
    return previous


def new_id(prefix: str) -> str:
    """Return an id such as `job_…`: 64 bits of time, unique within a process, then 64 random bits."""
    return f"{prefix}_{encode(_source.draw(), 26)}"


def _forget_all() -> None:
    for source in _sources:
        source.forget()


os.register_at_fork(after_in_child=_forget_all)  # otherwise parent and child would share random bits


class Serial:
    """Cheap ids for every request of one process, which may be guessable."""

    def __init__(self, prefix: str) -> None:
        self._first = new_id(prefix)[: len(prefix) + 17]
        self._count = 0

    def next(self) -> str:
        """Return the next id, such as `req_…`; it is as long as other ids, and they are in order."""
        self._count += 1
        return f"{self._first}{self._count:010d}"


def first_id(prefix: str, moment: float) -> str:
    """Return a lower bound of all ids made after this moment."""
    return f"{prefix}_{encode(max(0, int(moment * 1_000_000)) << 64, 26)}"


@overload
def timestamp(moment: float) -> str: ...
@overload
def timestamp(moment: float | None) -> str | None: ...
def timestamp(moment: float | None) -> str | None:
    """Format a time in RFC 3339, in UTC with milliseconds."""
    if moment is None:
        return None
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

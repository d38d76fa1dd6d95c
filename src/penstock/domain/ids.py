"""Ids: a prefix that says what it names, then 26 characters that sort by time and cannot be guessed."""

import os
import struct
import threading
import time
from datetime import UTC, datetime
from typing import overload

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no i, l, o, u
_PAIRS = [first + second for first in ALPHABET for second in ALPHABET]  # two digits at a time: ids are made often
_POOL = 512
_lock = threading.Lock()
_last = 0
_random: list[int] = []


def encode(number: int, length: int) -> str:
    """A number in base 32, left-filled with zeros."""
    pairs: list[str] = []
    for _ in range((length + 1) // 2):
        pairs.append(_PAIRS[number & 1023])
        number >>= 10
    pairs.reverse()
    return "".join(pairs)[-length:]


def new_id(prefix: str) -> str:
    """`job_…`: 64 bits of time that never repeat within a process, then 64 random bits."""
    global _last  # noqa: PLW0603  ids made in the same microsecond must still sort
    with _lock:
        _last = max(_last + 1, time.time_ns() // 1000)
        if not _random:  # asked of the system for many at once: each question costs as much as the rest
            _random.extend(struct.unpack(f"{_POOL}Q", os.urandom(8 * _POOL)))
        number = (_last << 64) | _random.pop()
    return f"{prefix}_{encode(number, 26)}"


class Serial:
    """Ids of one process that need not be hard to guess: they are made for every request."""

    def __init__(self, prefix: str) -> None:
        self._first = new_id(prefix)[: len(prefix) + 17]
        self._count = 0

    def next(self) -> str:
        """`req_…`: as long as other ids, and in order."""
        self._count += 1
        return f"{self._first}{self._count:010d}"


os.register_at_fork(after_in_child=_random.clear)  # else parent and child would go on with the same


def first_id(prefix: str, moment: float) -> str:
    """What any id made after this moment is greater than."""
    return f"{prefix}_{encode(max(0, int(moment * 1_000_000)) << 64, 26)}"


@overload
def timestamp(moment: float) -> str: ...
@overload
def timestamp(moment: float | None) -> str | None: ...
def timestamp(moment: float | None) -> str | None:
    """RFC 3339 in UTC with milliseconds."""
    if moment is None:
        return None
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

"""Ids: a prefix for the type, then 26 characters that sort by time and cannot be guessed."""

import os
import struct
import threading
import time
from datetime import UTC, datetime
from typing import overload

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no i, l, o, u
_PAIRS = [first + second for first in ALPHABET for second in ALPHABET]  # two digits at a time, for speed
_POOL = 512
_lock = threading.Lock()
_last = 0
_random: list[int] = []


def encode(number: int, length: int) -> str:
    """Encode a number in base 32, padded with zeros."""
    pairs: list[str] = []
    for _ in range((length + 1) // 2):
        pairs.append(_PAIRS[number & 1023])
        number >>= 10
    pairs.reverse()
    return "".join(pairs)[-length:]


def new_id(prefix: str) -> str:
    """Return an id such as `job_…`: 64 bits of time, unique within a process, then 64 random bits."""
    global _last  # noqa: PLW0603  ids made in the same microsecond must still sort
    with _lock:
        _last = max(_last + 1, time.time_ns() // 1000)
        if not _random:  # drawn in bulk: a system call costs as much as the rest
            _random.extend(struct.unpack(f"{_POOL}Q", os.urandom(8 * _POOL)))
        number = (_last << 64) | _random.pop()
    return f"{prefix}_{encode(number, 26)}"


class Serial:
    """Cheap ids for every request of one process, which may be guessable."""

    def __init__(self, prefix: str) -> None:
        self._first = new_id(prefix)[: len(prefix) + 17]
        self._count = 0

    def next(self) -> str:
        """Return the next id, such as `req_…`; it is as long as other ids, and they are in order."""
        self._count += 1
        return f"{self._first}{self._count:010d}"


os.register_at_fork(after_in_child=_random.clear)  # otherwise parent and child would share random bits


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

"""When to ask a vendor again: as it says itself, or by how long its orders took before."""

from collections import deque
from collections.abc import Sequence
from typing import Final, TypeAlias

Way: TypeAlias = tuple[str, str]
"""A vendor, and its name of the model."""

LONGEST: Final = 10.0
"""A caller likes to see progress, and an order may be done sooner than any before it."""
ENOUGH: Final = 5
"""From how many orders on something can be said of the next."""
REMEMBERED: Final = 100
MAX_WAYS: Final = 1000


class Cadence:
    """How long vendors took for the latest orders; bounded."""

    def __init__(self) -> None:
        self._seconds: dict[Way, deque[float]] = {}

    def learn(self, way: Way, seconds: float) -> None:
        """An order was found done so long after it was placed."""
        found = self._seconds.setdefault(way, deque(maxlen=REMEMBERED))
        found.append(seconds)
        if len(self._seconds) > MAX_WAYS:
            del self._seconds[next(iter(self._seconds))]

    def wait(self, way: Way, elapsed: float, eta: float | None, least: float) -> float:
        """How long to wait before the next poll of an order placed `elapsed` seconds ago."""
        return wait_before_poll(self._seconds.get(way, ()), elapsed, eta, least)


def wait_before_poll(known: Sequence[float], elapsed: float, eta: float | None, least: float) -> float:
    """The vendor's word first; else what earlier orders took; else a part of what this one took so far."""
    if eta is not None:
        wait = eta / 4
    elif len(known) < ENOUGH:
        wait = elapsed / 10
    elif elapsed < min(known):
        wait = max(elapsed / 20, 0.9 * min(known) - elapsed)
    else:
        wait = elapsed / 20
    return max(least, min(wait, LONGEST))

"""An event loop for tests beside a busy machine: its clock runs while it waits, and hardly while it is held up."""

import asyncio
import selectors
import time
from typing import Final

BUSY_STEP_SECONDS: Final = 0.001
"""Longest time that one round of callbacks counts for, however long the machine takes over it."""
WAIT_STEP_SECONDS: Final = 0.05
"""Longest time that a wait counts for which an event ended: a slow machine brings events late."""


class WaitingClock(selectors.DefaultSelector):
    """Counts the seconds that a loop has waited.

    An event comes before the timer beside which it was waited for, even if both are seen at once.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = self._looked_at = time.monotonic()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for events, and count the time."""
        begun = time.monotonic()
        found = super().select(timeout)
        self.now += min(begun - self._looked_at, BUSY_STEP_SECONDS)
        self._looked_at = time.monotonic()
        waited = self._looked_at - begun
        if timeout is not None:
            waited = min(waited, timeout / 2 if found else timeout)
        self.now += min(waited, WAIT_STEP_SECONDS) if found else waited
        return found


class CalmLoop(asyncio.SelectorEventLoop):
    """A loop whose timers do not fire early because processes or threads beside it are slow.

    Its time never runs faster than the machine's. Whatever is measured in it is compared with what waits in it.
    """

    def __init__(self) -> None:
        self._clock = WaitingClock()
        super().__init__(self._clock)

    def time(self) -> float:
        """Return the seconds that this loop has counted."""
        return self._clock.now

"""Watches how long a vendor says nothing: keeps the caller's connection warm, and gives up in the end."""

import asyncio
from collections.abc import Callable

SOON = 0.01


class IdleTimer:
    """One timer that looks from time to time: a timer for every read would cost more than the read."""

    __slots__ = (
        "_beat",
        "_give_up",
        "_handle",
        "_heartbeat",
        "_idle",
        "_loop",
        "_until",
        "expired",
        "now",
        "since",
        "spoke",
    )

    def __init__(
        self,
        give_up: Callable[[], None],
        heartbeat: Callable[[], None],
        *,
        idle: float,
        total: float,
        beat: float,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._give_up = give_up
        self._heartbeat = heartbeat
        self._idle = idle
        self._beat = beat
        self.now = self._loop.time
        now = self.now()
        self._until = now + total
        self.spoke = now
        """When something was last sent to the caller."""
        self.since: float | None = None
        """Since when the vendor is waited for; None while the caller is."""
        self.expired = ""
        """Why it was given up, if it was."""
        self._handle = self._loop.call_at(min(self._until, now + idle, now + beat), self._look)

    def begin(self) -> None:
        """The vendor is waited for."""
        self.since = self._loop.time()

    def speak(self) -> None:
        """Something came, and is sent to the caller."""
        self.since = self.spoke = self._loop.time()

    def stop(self) -> None:
        """Watch no more."""
        self._handle.cancel()

    def _look(self) -> None:
        now = self._loop.time()
        since = now if self.since is None else self.since
        if now >= self._until:
            self.expired = "it took too long as a whole"
        elif now >= since + self._idle:
            self.expired = "it was silent for too long"
        if self.expired:
            self._give_up()
            return
        if now >= self.spoke + self._beat:
            self.spoke = now
            if self.since is not None:  # else it is the caller who is slow
                self._heartbeat()
        due = min(self._until, since + self._idle, self.spoke + self._beat)
        self._handle = self._loop.call_at(max(due, now + SOON), self._look)

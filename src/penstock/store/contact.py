"""Contact with the store: outages, their duration, and how long chat is served without it."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Concatenate, Final

from sqlalchemy import Connection

from penstock.errors import StoreUnavailable
from penstock.store.database import Database, P, T

UNANSWERED_SECONDS: Final = 1.0
"""A query without an answer for this long begins an outage."""
GAP_SECONDS: Final = 5.0
"""A gap between answers of this length makes the contact unsteady."""
STEADY_SECONDS: Final = 30.0
"""Every living process renews its leases within this time after an outage."""


def _never() -> float:
    return 0.0


class StoreContact:
    """Tracks outages, one per process. An outage begins with an unanswered query and ends with the next answer."""

    def __init__(
        self,
        database: Database,
        outage_seconds: Callable[[], float] = _never,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._outage_seconds = outage_seconds
        self._steady = steady
        self.heard_at = self._steady_since = steady()
        """The time at which the latest answered query was sent."""
        self._answered_at = self.heard_at
        self.is_away = False
        self._waiting: set[asyncio.Future[None]] = set()

    @property
    def outage_seconds(self) -> float:
        """The seconds for which chat is served from memory, counted from the store's last answer."""
        return self._outage_seconds()

    @property
    def away_seconds(self) -> float:
        """The seconds for which the store has not answered; 0 while it does."""
        return self._steady() - self.heard_at if self.is_away else 0.0

    @property
    def seconds_left(self) -> float:
        """The seconds for which chat is still served without the store."""
        return max(0.0, self.outage_seconds - self.away_seconds)

    @property
    def is_steady(self) -> bool:
        """Return whether the store has answered for so long that a process with unrenewed leases must be gone.

        Right after an outage it has not: other processes were cut off, too, and may have spent their leases.
        """
        now = self._steady()
        return now - self._answered_at < GAP_SECONDS and now - self._steady_since >= STEADY_SECONDS

    async def ask(
        self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> tuple[float, T]:
        """Run a query of one statement. Return when it was sent, and its result."""
        asked = self._steady()
        timer = asyncio.get_running_loop().call_later(UNANSWERED_SECONDS, self._lose, asked)
        try:
            answer = await self._database.look(function, *args, **kwargs)
        except StoreUnavailable:
            self._lose(asked)
            raise
        finally:
            timer.cancel()
        self._hear(asked)
        return asked, answer

    async def wait_for(self, query: "asyncio.Future[Any]") -> None:
        """Wait until a query is answered, or until the store is found to be away."""
        turn = asyncio.get_running_loop().create_future()
        wake = partial(_wake, turn)
        query.add_done_callback(wake)
        self._waiting.add(turn)
        try:
            await turn
        finally:
            self._waiting.discard(turn)
            query.remove_done_callback(wake)

    def _hear(self, asked: float) -> None:
        now = self._steady()
        if now - self._answered_at > GAP_SECONDS:
            self._steady_since = now
        self._answered_at = now
        self.heard_at = max(self.heard_at, asked)
        self.is_away = False

    def _lose(self, asked: float) -> None:
        """Begin an outage, unless a later query was answered or the store refuses this version."""
        if asked >= self.heard_at and not self._database.is_refused:
            self.is_away = True
            for turn in self._waiting:
                _wake(turn)


def _wake(turn: "asyncio.Future[None]", _query: object = None) -> None:
    if not turn.done():
        turn.set_result(None)


def ping(connection: Connection) -> None:
    """Run the cheapest statement there is, to see that the store answers."""
    connection.exec_driver_sql("SELECT 1")

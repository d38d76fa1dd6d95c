"""Contact with the store: whether it answers, since when it does not, and how long chat is served without it."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Concatenate, Final

from sqlalchemy import Connection

from penstock.errors import StoreUnavailable
from penstock.store.database import Database, P, T

SILENT_SECONDS: Final = 1.0
"""A question that waits this long for its answer begins an outage."""
GAP_SECONDS: Final = 5.0
"""Without an answer for this long, contact is not steady."""
STEADY_SECONDS: Final = 30.0
"""After an outage every process that lives has renewed its leases within this time."""


def _never() -> float:
    return 0.0


class StoreContact:
    """One per process. An outage begins with a question unanswered, and ends with the next answer."""

    def __init__(
        self,
        database: Database,
        outage_seconds: Callable[[], float] = _never,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._outage_seconds = outage_seconds
        self._monotonic = monotonic
        self.heard_at = self._steady_since = monotonic()
        """When the last question that was answered was asked; and since when no answer was missed."""
        self._answered_at = self.heard_at
        self.is_away = False
        self._waiting: set[asyncio.Future[None]] = set()

    @property
    def outage_seconds(self) -> float:
        """Seconds that chat is served from memory, counted from the store's last answer."""
        return self._outage_seconds()

    @property
    def away_seconds(self) -> float:
        """Return the seconds for which the store has not answered; 0 while it does."""
        return self._monotonic() - self.heard_at if self.is_away else 0.0

    @property
    def seconds_left(self) -> float:
        """Return the seconds that chat is still served without the store."""
        return max(0.0, self.outage_seconds - self.away_seconds)

    @property
    def is_steady(self) -> bool:
        """Tell if the store has answered for so long that whoever has not renewed a lease is gone.

        Right after an outage it is not: the others were cut off as well, and may have spent what they lease.
        """
        now = self._monotonic()
        return now - self._answered_at < GAP_SECONDS and now - self._steady_since >= STEADY_SECONDS

    async def ask(
        self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> tuple[float, T]:
        """Ask the store one statement. Return when it was asked, and the answer."""
        asked = self._monotonic()
        silence = asyncio.get_running_loop().call_later(SILENT_SECONDS, self._lose, asked)
        try:
            answer = await self._database.look(function, *args, **kwargs)
        except StoreUnavailable:
            self._lose(asked)
            raise
        finally:
            silence.cancel()
        self._hear(asked)
        return asked, answer

    async def wait_for(self, question: "asyncio.Future[Any]") -> None:
        """Wait until a question is answered, or for as long as an answer is worth waiting for."""
        turn = asyncio.get_running_loop().create_future()
        wake = partial(_wake, turn)
        question.add_done_callback(wake)
        self._waiting.add(turn)
        try:
            await turn
        finally:
            self._waiting.discard(turn)
            question.remove_done_callback(wake)

    def _hear(self, asked: float) -> None:
        now = self._monotonic()
        if now - self._answered_at > GAP_SECONDS:
            self._steady_since = now
        self._answered_at = now
        self.heard_at = max(self.heard_at, asked)
        self.is_away = False

    def _lose(self, asked: float) -> None:
        """Begin an outage, unless a later question was answered, or the store refuses this version."""
        if asked >= self.heard_at and not self._database.is_refused:
            self.is_away = True
            for turn in self._waiting:
                _wake(turn)


def _wake(turn: "asyncio.Future[None]", _question: object = None) -> None:
    if not turn.done():
        turn.set_result(None)


def ping(connection: Connection) -> None:
    """Run the cheapest statement there is, to see that the store answers."""
    connection.exec_driver_sql("SELECT 1")

"""How far the event log of PostgreSQL is complete: positions are given before commits, which may come in any order."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from sqlalchemy import Engine, text
from sqlalchemy.exc import SQLAlchemyError

from penstock.errors import StoreUnavailable

LOOK_SECONDS: Final = 0.003
PATIENCE_SECONDS: Final = 2.0
"""Longer than this nobody waits for a transaction: what is known to be complete is enough for now."""
# In this order: whoever has a position by now has a transaction's number, which is less than the one that is taken
# next; when that has ended, a snapshot tells which of the lesser ones are still under way.
_TOP = text("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM events_position_seq")
_NUMBER = text("SELECT pg_current_xact_id()::text")
_SNAPSHOT = text("SELECT pg_current_snapshot()::text")


class Horizon:
    """Found anew for whoever asks; those who ask at the same time share what is found."""

    def __init__(self, threads: ThreadPoolExecutor, engine: Engine) -> None:
        self._threads = threads
        self._engine = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._known = 0
        self._finding: asyncio.Task[int] | None = None
        self._next: asyncio.Task[int] | None = None

    async def find(self) -> int:
        """A position up to which every event is there that ever will be."""
        if self._finding is None or self._finding.done():
            self._finding = asyncio.create_task(self._find())
            return await asyncio.shield(self._finding)
        if self._next is None or self._next.done():  # the one under way may have begun too early
            self._next = asyncio.create_task(self._find_after(self._finding))
        return await asyncio.shield(self._next)

    async def _find_after(self, former: "asyncio.Task[int]") -> int:
        await asyncio.wait((former,))
        self._finding, self._next = self._next, None
        return await self._find()

    async def _find(self) -> int:
        loop, give_up_at = asyncio.get_running_loop(), time.monotonic() + PATIENCE_SECONDS
        top, under_way = await loop.run_in_executor(self._threads, self._look)
        while under_way and time.monotonic() < give_up_at:
            await asyncio.sleep(LOOK_SECONDS)
            under_way &= await loop.run_in_executor(self._threads, self._under_way)
        if not under_way:
            self._known = max(self._known, top)
        return self._known

    def _look(self) -> tuple[int, set[int]]:
        try:
            with self._engine.connect() as connection:
                top = connection.execute(_TOP).scalar_one()
                number = int(connection.execute(_NUMBER).scalar_one())
                under_way = _read(connection.execute(_SNAPSHOT).scalar_one())
        except SQLAlchemyError as error:
            raise StoreUnavailable(retry_after=1) from error
        return top, {each for each in under_way if each < number}

    def _under_way(self) -> set[int]:
        try:
            with self._engine.connect() as connection:
                return _read(connection.execute(_SNAPSHOT).scalar_one())
        except SQLAlchemyError as error:
            raise StoreUnavailable(retry_after=1) from error


def _read(snapshot: str) -> set[int]:
    """The transactions that have begun and not ended."""
    return {int(number) for number in snapshot.split(":")[2].split(",") if number}

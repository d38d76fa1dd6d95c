"""The committed position of PostgreSQL's event log: positions are given before commits, in any order."""

import asyncio
import time
from typing import Final

from sqlalchemy import Connection, text

from penstock.errors import StoreUnavailable
from penstock.store.database import Database

POLL_SECONDS: Final = 0.003
MAX_WAIT_SECONDS: Final = 2.0
"""The longest wait for open transactions. After it, the last known position is returned."""
# In this order: a transaction that has a position by now locked the table before, as every writer does, and unlocks it
# after its commit. Transactions on other tables and databases do not matter.
_TOP = text("SELECT CASE WHEN is_called THEN last_value ELSE 0 END, pg_is_in_recovery() FROM events_position_seq")
_WRITERS = text(
    "SELECT virtualtransaction FROM pg_locks WHERE locktype = 'relation' AND relation = 'events'::regclass "
    "AND mode = 'RowExclusiveLock' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


class CommittedPosition:
    """Finds the committed position. Concurrent callers share one search."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known = 0
        self._finding: asyncio.Task[int] | None = None
        self._next: asyncio.Task[int] | None = None

    async def find(self) -> int:
        """Return a position up to which every event is visible that ever will be."""
        if self._finding is None or self._finding.done():
            self._finding = asyncio.create_task(self._find())
            return await asyncio.shield(self._finding)
        if self._next is None or self._next.done():  # the current search may have begun too early
            self._next = asyncio.create_task(self._find_after(self._finding))
        return await asyncio.shield(self._next)

    async def _find_after(self, former: "asyncio.Task[int]") -> int:
        await asyncio.wait((former,))
        self._finding, self._next = self._next, None
        return await self._find()

    async def _find(self) -> int:
        give_up_at = time.monotonic() + MAX_WAIT_SECONDS
        top, writers = await self._database.read(_look)
        while writers and time.monotonic() < give_up_at:
            await asyncio.sleep(POLL_SECONDS)
            writers &= await self._database.read(_list_writers)
        if not writers:
            self._known = max(self._known, top)
        return self._known


def _look(connection: Connection) -> tuple[int, set[str]]:
    top, is_standby = connection.execute(_TOP).one()
    if is_standby:  # a standby does not see the open transactions of the primary
        raise StoreUnavailable(retry_after=1)
    return top, _list_writers(connection)


def _list_writers(connection: Connection) -> set[str]:
    """Return the open transactions that may have positions."""
    return set(connection.execute(_WRITERS).scalars())

"""Queue positions on PostgreSQL, read for all jobs together and only while callers ask for them."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from penstock.errors import StoreUnavailable
from penstock.store.postgres.database import PostgresDatabase
from penstock.store.queries.jobs import postgres_claim_rows

MAX_AGE_SECONDS: Final = 1.0
MAX_POSITIONS: Final = 20_000
"""Jobs further back in the queue are shown no position."""

log = logging.getLogger(__name__)


class QueuePositions:
    """Positions as last read from the store, at most about a second old."""

    def __init__(self, database: PostgresDatabase, steady: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._steady = steady
        self._positions: dict[str, int] = {}
        self._read_at = 0.0
        self._reading: asyncio.Task[None] | None = None

    def find(self, job_id: str) -> int | None:
        """Return the number of jobs before this one in its vendor's queue, or None if that is unknown."""
        if self._steady() >= self._read_at and self._reading is None:
            self._reading = asyncio.get_running_loop().create_task(self._read(), name="places")
        return self._positions.get(job_id)

    async def stop(self) -> None:
        """Stop reading positions."""
        self._read_at = float("inf")
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self) -> None:
        try:
            self._positions = await self._database.read(postgres_claim_rows.places, MAX_POSITIONS)
        except StoreUnavailable:
            log.warning("the store does not answer; queue positions are not updated")
        finally:
            self._read_at = self._steady() + MAX_AGE_SECONDS
            self._reading = None

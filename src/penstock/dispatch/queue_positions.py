"""Places in the queues on PostgreSQL: looked up for all at once, and only while somebody asks."""

import asyncio
import logging
import time
from typing import Final

from penstock.errors import StoreUnavailable
from penstock.store.postgres.database import PostgresDatabase
from penstock.store.queries.jobs import postgres_claim_rows

FRESH_SECONDS: Final = 1.0
MOST: Final = 20_000
"""Who stands behind so many is not told a place."""

log = logging.getLogger(__name__)


class QueuePositions:
    """What is told may be a moment old."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._places: dict[str, int] = {}
        self._look_at = 0.0
        self._looking: asyncio.Task[None] | None = None

    def find(self, job_id: str) -> int | None:
        """How many jobs wait for the same vendor before this one; None if it does not wait, or nobody knows yet."""
        if time.monotonic() >= self._look_at and self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._look(), name="places")
        return self._places.get(job_id)

    async def stop(self) -> None:
        """Look no more."""
        self._look_at = float("inf")
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def _look(self) -> None:
        try:
            self._places = await self._database.read(postgres_claim_rows.places, MOST)
        except StoreUnavailable:
            log.warning("the store does not answer; places in the queue are not known")
        finally:
            self._look_at = time.monotonic() + FRESH_SECONDS
            self._looking = None

"""The search indexer: follows the event log and writes the words of new jobs, so that accepting a job does not."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from penstock.store.database import Database
from penstock.store.queries.jobs import search_index_rows, worker_rows

PORTION: Final = 500
"""Events that are read for one transaction."""
PAUSE: Final = 32.0
"""The pause after each portion, as a multiple of its time: a burst is indexed later, at a small share of a core."""
TURN_SECONDS: Final = 0.1
CHECKED_JOBS: Final = 5_000
"""Indexed jobs that are checked for their removal at a time."""


class SearchIndexer:
    """Writes the index for all processes. It may stop at any point: the next round continues."""

    def __init__(self, database: Database, steady: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._steady = steady
        self._checked = ""

    async def take_part(self) -> int:
        """Index what is new, unless another process does it just now. Return the number of jobs."""
        count = 0
        while (portion := await self._find_next()) is not None:
            if not await self._database.write(worker_rows.take_turn, "search", TURN_SECONDS):
                break
            begun = self._steady()
            count += await self._index(*portion)
            await asyncio.sleep((self._steady() - begun) * PAUSE)
        return count

    async def catch_up(self) -> int:
        """Index all that was accepted, without a pause. Return the number of jobs."""
        count = 0
        while (portion := await self._find_next()) is not None:
            count += await self._index(*portion)
        return count

    async def _find_next(self) -> tuple[int, int] | None:
        """Return the positions between which the next events are, or None if all are read."""
        after = await self._database.read(search_index_rows.get_position)
        end = await self._database.read(search_index_rows.next_position, after, PORTION)
        if end is None:
            return None
        settled = await self._database.settled()
        end = end if settled is None else min(end, settled)
        return (after, end) if end > after else None

    async def _index(self, after: int, end: int) -> int:
        entries = await self._database.read(search_index_rows.read_entries, after, end)
        await self._database.write(search_index_rows.write_entries, entries, end)
        if entries:  # a job may have been removed since its words were read
            await self._remove(await self._database.read(search_index_rows.list_removed, [each[0] for each in entries]))
        return len(entries)

    async def check_some(self) -> int:
        """Remove words of removed jobs, among the next indexed jobs. Return the number of jobs.

        Code of an earlier version leaves them, and so does a process that dies while it indexes.
        """
        orphans, last = await self._database.read(search_index_rows.find_orphans, self._checked, CHECKED_JOBS)
        await self._remove(orphans)
        self._checked = last or ""
        return len(orphans)

    async def _remove(self, job_ids: list[str]) -> None:
        for job_id in job_ids:
            await self._database.write(search_index_rows.remove, job_id)

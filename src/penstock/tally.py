"""Collects usage records and writes them in batches, off the path of requests and durable within a second."""

import asyncio
import logging
from typing import Final

from penstock import metrics
from penstock.errors import StoreUnavailable
from penstock.identifiers import new_id
from penstock.store import completion_rows
from penstock.store.database import Database
from penstock.usage_records import Completion

WRITE_SECONDS: Final = 0.25
RETRY_SECONDS: Final = 1.0
BATCH: Final = 2_000
MOST: Final = 100_000
"""So many records may wait for a store that does not answer; then no more requests are taken."""

log = logging.getLogger(__name__)


class Tally:
    """Every record given to `add` is written once, also through an outage of the store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._first = new_id("chat")
        self._count = 0
        self._waiting: list[Completion] = []
        self._counted = 0
        self._writing: asyncio.Task[None] | None = None

    def check(self) -> None:
        """Refuse what could not be counted."""
        if len(self._waiting) >= MOST:
            raise StoreUnavailable("Too much usage waits for the store to be written.", retry_after=RETRY_SECONDS)

    def new_id(self) -> str:
        """An id for a record; a counter, as an id of its own for each would cost more than the record."""
        self._count += 1
        return f"{self._first}{self._count:010d}"

    def add(self, record: Completion) -> None:
        """Keep a record; it is written shortly."""
        self._waiting.append(record)
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_soon(), name="tally")

    async def stop(self) -> None:
        """Write what is left."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)
        while self._waiting:
            await self._write_batch()

    async def _write_soon(self) -> None:
        pause = WRITE_SECONDS
        while self._waiting:
            await asyncio.sleep(pause)
            try:
                await self._write_batch()
                pause = 0 if len(self._waiting) >= BATCH else WRITE_SECONDS
            except StoreUnavailable:
                pause = RETRY_SECONDS
                log.warning("usage records wait for the store", extra={"fields": {"records": len(self._waiting)}})
            except Exception:
                log.exception("a usage record cannot be written; it is put aside, and told here")
                await self._write_singly()
        self._writing = None

    async def _write_singly(self) -> None:
        """Find the records that the store cannot take, so that they do not hold up the others."""
        batch, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
        self._counted = 0
        for record in batch:
            try:
                await self._database.write(completion_rows.add_all, [record])
            except StoreUnavailable:
                self._waiting.append(record)
            except Exception:
                log.exception("lost a usage record", extra={"fields": {"record": repr(record)}})

    async def _write_batch(self) -> None:
        batch = self._waiting[:BATCH]
        metrics.count_completions(batch[self._counted :])
        self._counted = len(batch)
        # Taken off only when written: a write whose answer was lost is made again, and changes nothing.
        await self._database.write(completion_rows.add_all, batch)
        del self._waiting[: len(batch)]
        self._counted = 0

"""Group commit: writes of one kind that share a transaction. Later ones join the next transaction."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar, cast

from sqlalchemy import Connection

from penstock.errors import StoreUnavailable
from penstock.store.database import Database

A = TypeVar("A")
R = TypeVar("R")

LANES: Final = 2
"""The number of concurrent transactions: while one waits for the disk, the next is prepared."""
MAX_BATCH_ITEMS: Final = 32
MAX_WAITING: Final = 4096

log = logging.getLogger(__name__)


class GroupCommit(Generic[A, R]):
    """Collects items and writes them together.

    The function returns a result for each item. None means that the item must be written by itself.
    """

    def __init__(self, database: Database, function: Callable[[Connection, Sequence[A]], Sequence[R | None]]) -> None:
        self._database = database
        self._function = function
        self._waiting: deque[tuple[A, asyncio.Future[R | None]]] = deque()
        self._lanes: set[asyncio.Task[None]] = set()

    async def write(self, item: A) -> R | None:
        """Return the result of an item once it is committed, or None if it must be written by itself."""
        if len(self._waiting) >= MAX_WAITING:
            raise StoreUnavailable("The store has too many writes waiting.", retry_after=1)
        written: asyncio.Future[R | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, written))
        if len(self._lanes) < LANES:
            self._lanes.add(asyncio.create_task(self._write_on(), name="group commit"))
        return await written

    async def _write_on(self) -> None:
        try:
            while self._waiting:
                await self._write([self._waiting.popleft() for _ in range(_round(len(self._waiting)))])
        finally:  # at once: the next item must not rely on a lane that has stopped
            self._lanes.discard(cast("asyncio.Task[None]", asyncio.current_task()))

    async def _write(self, batch: Sequence[tuple[A, "asyncio.Future[R | None]"]]) -> None:
        """Write a batch. If it fails, each item returns None, is written by itself and raises its own error."""
        results: Sequence[R | None] = [None] * len(batch)
        try:
            results = await self._database.write(self._function, [item for item, _ in batch])
        except StoreUnavailable as error:  # it may have been committed: never retry
            for _, written in batch:
                if not written.done():
                    written.set_exception(error)
            return
        except Exception as error:  # raised again when the item is written by itself
            log.debug("a batch failed; its items are written one by one", exc_info=error)
        for (_, written), result in zip(batch, results, strict=True):
            if not written.done():
                written.set_result(result)


def _round(count: int) -> int:
    """Return the largest power of two within the limit: few distinct statements, which the server caches."""
    return min(MAX_BATCH_ITEMS, 1 << count.bit_length() - 1)

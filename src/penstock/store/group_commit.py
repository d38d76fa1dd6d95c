"""Writes of one kind that share a transaction: whoever comes while one is under way goes with the next."""

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
"""So many transactions at a time: while one waits for the disk, the next is made."""
MOST: Final = 32
MAX_WAITING: Final = 4096

log = logging.getLogger(__name__)


class GroupCommit(Generic[A, R]):
    """Gathers what is to be written. What the function gives for an item is its caller's; None: write it alone."""

    def __init__(self, database: Database, function: Callable[[Connection, Sequence[A]], Sequence[R | None]]) -> None:
        self._database = database
        self._function = function
        self._waiting: deque[tuple[A, asyncio.Future[R | None]]] = deque()
        self._lanes: set[asyncio.Task[None]] = set()

    async def write(self, item: A) -> R | None:
        """What became of it once that is committed; None if nothing did, and it is to be written alone."""
        if len(self._waiting) >= MAX_WAITING:
            raise StoreUnavailable("The store has too many writes waiting.", retry_after=1)
        written: asyncio.Future[R | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, written))
        if len(self._lanes) < LANES:
            self._lanes.add(asyncio.create_task(self._write_on(), name="together"))
        return await written

    async def _write_on(self) -> None:
        try:
            while self._waiting:
                await self._write([self._waiting.popleft() for _ in range(_round(len(self._waiting)))])
        finally:  # at once: whoever comes next must not count on a lane that has stopped
            self._lanes.discard(cast("asyncio.Task[None]", asyncio.current_task()))

    async def _write(self, batch: Sequence[tuple[A, "asyncio.Future[R | None]"]]) -> None:
        """One that fails takes the others back with it: then each is written alone, and told its own failure."""
        results: Sequence[R | None] = [None] * len(batch)
        try:
            results = await self._database.write(self._function, [item for item, _ in batch])
        except StoreUnavailable as error:  # whether it is committed may not be known: never try that again
            for _, written in batch:
                if not written.done():
                    written.set_exception(error)
            return
        except Exception as error:  # told where it comes again
            log.debug("written one by one", exc_info=error)
        for (_, written), result in zip(batch, results, strict=True):
            if not written.done():
                written.set_result(result)


def _round(count: int) -> int:
    """A power of two, at most: so there are few statements, which the server knows again."""
    return min(MOST, 1 << count.bit_length() - 1)

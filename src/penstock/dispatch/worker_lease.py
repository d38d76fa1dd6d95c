"""A worker's lease on PostgreSQL: while it is renewed, what the worker claimed is the worker's alone."""

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable
from typing import Final

from penstock.domain.ids import new_id
from penstock.errors import StoreUnavailable
from penstock.observability import metrics
from penstock.store.postgres.database import PostgresDatabase
from penstock.store.queries.jobs import worker_rows

RENEWALS: Final = 4
"""How often a lease is renewed in its time."""
SURE: Final = 0.75
"""What part of a lease is counted on: the rest is for clocks, and for what is on its way."""

log = logging.getLogger(__name__)


class Lease:
    """One worker's name, and how long it is good for. A name that was lost is never used again."""

    def __init__(self, database: PostgresDatabase, seconds: float, on_lost: Callable[[], None]) -> None:
        self._database = database
        self._seconds = seconds
        self._on_lost = on_lost
        self._renewed = 0.0
        self._steady_since = 0.0
        self.owner = ""

    def is_sure(self) -> bool:
        """Whether nobody can have ended it yet, by this machine's own clock."""
        return bool(self.owner) and time.monotonic() - self._renewed < self._seconds * SURE

    async def begin(self) -> None:
        """Take a new name."""
        asked, owner = time.monotonic(), new_id("worker")
        await self._database.urgent(worker_rows.register, owner, f"{socket.gethostname()}:{os.getpid()}")
        self.owner, self._renewed, self._steady_since = owner, asked, time.monotonic()

    async def keep(self) -> None:
        """Renew it for ever, and end the leases of others that are silent."""
        while True:
            await asyncio.sleep(self._seconds / RENEWALS)
            try:
                await self._renew()
                if time.monotonic() - self._steady_since >= self._seconds:
                    await self._sweep()
            except StoreUnavailable:
                self._steady_since = float("inf")  # after an outage the others may live, and are given time to say so
            except Exception:
                log.exception("keeping the lease failed; it goes on")

    async def leave(self) -> None:
        """End it: all that it covers is anyone's at once."""
        if not self.owner:
            return
        try:
            await self._database.write(worker_rows.leave, self.owner)
        except StoreUnavailable:
            log.warning("the store does not answer: what was claimed here is free when the lease has ended")

    async def _renew(self) -> None:
        asked = time.monotonic()
        if not await self._database.urgent(worker_rows.renew, self.owner):
            await self._lose()
            return
        answered = time.monotonic()
        if answered - self._renewed > self._seconds / 2 or self._steady_since > answered:
            self._steady_since = answered  # whatever held us up may have held up the others
        self._renewed = asked

    async def _sweep(self) -> None:
        freed = await self._database.urgent(worker_rows.sweep, self._seconds)
        if freed:
            metrics.JOBS_TAKEN_OVER.inc(freed)
            log.warning("jobs of workers that are gone are taken over", extra={"fields": {"jobs": freed}})

    async def _lose(self) -> None:
        """Others have our jobs: stop working on them, and begin anew under another name."""
        log.error("this worker's lease has ended; its jobs are others' now")
        metrics.LEASES_LOST.inc()
        self._on_lost()
        await self.begin()

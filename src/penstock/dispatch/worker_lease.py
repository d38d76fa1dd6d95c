"""A worker's lease on PostgreSQL: while it is renewed, nobody else can claim the worker's jobs."""

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

RENEWALS_PER_LEASE: Final = 4
SURE_PART: Final = 0.75
"""The part of a lease that counts as certain. The rest allows for clock drift and requests in flight."""

log = logging.getLogger(__name__)


class Lease:
    """The name of one worker while its lease lasts. A lost name is never used again."""

    def __init__(
        self,
        database: PostgresDatabase,
        seconds: float,
        on_lost: Callable[[], None],
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._seconds = seconds
        self._on_lost = on_lost
        self._steady = steady
        self._renewed = 0.0
        self._steady_since = 0.0
        self.owner = ""

    def is_sure(self) -> bool:
        """Return whether no other worker can have ended the lease yet, by this machine's own clock."""
        return bool(self.owner) and self._steady() - self._renewed < self._seconds * SURE_PART

    async def begin(self) -> None:
        """Register under a new name."""
        asked, owner = self._steady(), new_id("worker")
        await self._database.urgent(worker_rows.register, owner, f"{socket.gethostname()}:{os.getpid()}")
        self.owner, self._renewed, self._steady_since = owner, asked, self._steady()

    async def keep(self) -> None:
        """Renew the lease forever, and end the leases of workers that stopped renewing theirs."""
        while True:
            await asyncio.sleep(self._seconds / RENEWALS_PER_LEASE)
            try:
                await self._renew()
                if self._steady() - self._steady_since >= self._seconds:
                    await self._sweep()
            except StoreUnavailable:
                self._steady_since = float("inf")  # after an outage, give live workers time to renew
            except Exception:
                log.exception("the lease could not be renewed; it is retried")

    async def leave(self) -> None:
        """End the lease, so that other workers can claim its jobs immediately."""
        if not self.owner:
            return
        try:
            await self._database.write(worker_rows.leave, self.owner)
        except StoreUnavailable:
            log.warning("the store does not answer; the jobs of this worker are free when its lease expires")

    async def _renew(self) -> None:
        asked = self._steady()
        if not await self._database.urgent(worker_rows.renew, self.owner):
            await self._lose()
            return
        answered = self._steady()
        if answered - self._renewed > self._seconds / 2 or self._steady_since > answered:
            self._steady_since = answered  # what delayed this worker may have delayed the others
        self._renewed = asked

    async def _sweep(self) -> None:
        freed = await self._database.urgent(worker_rows.sweep, self._seconds)
        if freed:
            metrics.JOBS_TAKEN_OVER.inc(freed)
            log.warning("workers have died; others take over their jobs", extra={"fields": {"jobs": freed}})

    async def _lose(self) -> None:
        """Stop all jobs, which other workers have now, and register under a new name."""
        log.error("this worker's lease has ended; other workers take over its jobs")
        metrics.LEASES_LOST.inc()
        self._on_lost()
        await self.begin()

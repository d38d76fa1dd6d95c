"""Dispatch on PostgreSQL: the rows themselves are claimed, by any number of workers, each under a lease of its own."""

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from penstock import metrics
from penstock.dispatch import Run
from penstock.errors import StoreUnavailable
from penstock.identifiers import new_id
from penstock.store import claim_rows, lease_rows
from penstock.store.bell import QUEUE
from penstock.store.claim_rows import Claimed
from penstock.store.postgres import PostgresDatabase

BATCH: Final = 50
LEASE_SECONDS: Final = 4.0
RENEW_SECONDS: Final = 1.0
SURE: Final = 0.75
"""What part of a lease is counted on: the rest is for clocks, and for what is on its way."""
SAFETY_NET_SECONDS: Final = 1.0
PAUSE_SECONDS: Final = 0.01
"""At least so long lies between two claims that found nothing."""

log = logging.getLogger(__name__)


class PostgresDispatch:
    """One worker's side. A claim counts by its fence: whoever lost it writes nothing any more."""

    def __init__(
        self,
        database: PostgresDatabase,
        seats: Callable[[], Mapping[str, int]],
        max_held: int,
        clock: Callable[[], float],
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        self._database = database
        self._seats = seats
        self._max_held = max_held
        self._clock = clock
        self._lease_seconds = lease_seconds
        self._owner = ""
        self._renewed = 0.0
        self._steady_since = 0.0
        self._held: dict[str, asyncio.Task[None]] = {}
        self._loops: list[asyncio.Task[None]] = []

    # -- the port

    async def start(self, run: Run) -> None:
        """Take a lease, then claim for as long as this process lives."""
        await self._begin()
        self._loops = [
            asyncio.create_task(self._keep_lease(), name="lease"),
            asyncio.create_task(self._claim_forever(run), name="dispatch"),
        ]

    def position(self, job_id: str) -> int | None:
        """Nobody here knows the whole queue."""
        del job_id

    def is_sure(self) -> bool:
        """Whether what is claimed here is ours beyond doubt: asked right before anything is paid for."""
        return time.monotonic() - self._renewed < self._lease_seconds * SURE

    def reseat(self) -> None:
        """The settings may allow more seats now."""
        self._database.bell.ring([QUEUE])

    async def stop(self) -> None:
        """Claim no more, let go of everything at once: the rows know where each job stands, and others go on."""
        tasks = [*self._loops, *self._held.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._owner:
            try:
                await self._database.write(lease_rows.leave, self._owner)
            except StoreUnavailable:
                log.warning("the store does not answer: what was claimed here is free when the lease has ended")

    # -- the lease

    async def _begin(self) -> None:
        asked, owner = time.monotonic(), new_id("worker")
        await self._database.urgent(lease_rows.register, owner, f"{socket.gethostname()}:{os.getpid()}")
        self._owner, self._renewed, self._steady_since = owner, asked, asked

    async def _keep_lease(self) -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS * self._lease_seconds / LEASE_SECONDS)
            try:
                await self._renew()
                if time.monotonic() - self._steady_since >= self._lease_seconds:
                    await self._sweep()
            except StoreUnavailable:
                self._steady_since = float("inf")  # after an outage the others may live, and are given time to say so
            except Exception:
                log.exception("keeping the lease failed; it goes on")

    async def _renew(self) -> None:
        asked = time.monotonic()
        if not await self._database.urgent(lease_rows.renew, self._owner):
            await self._lose()
            return
        if asked - self._renewed > self._lease_seconds / 2:
            self._steady_since = asked
        self._steady_since = min(self._steady_since, asked)
        self._renewed = asked

    async def _sweep(self) -> None:
        freed = await self._database.urgent(lease_rows.sweep, self._lease_seconds)
        if freed:
            metrics.JOBS_TAKEN_OVER.inc(freed)
            log.warning("jobs of workers that are gone are taken over", extra={"fields": {"jobs": freed}})

    async def _lose(self) -> None:
        """Others have our jobs: stop working on them, and begin anew under another name."""
        log.error(
            "this worker's lease has ended; its jobs are others' now", extra={"fields": {"jobs": len(self._held)}}
        )
        metrics.LEASES_LOST.inc()
        for task in list(self._held.values()):
            task.cancel()
        self._held.clear()
        await self._begin()

    # -- the claims

    async def _claim_forever(self, run: Run) -> None:
        with self._database.bell.listen(QUEUE) as ear:
            while True:
                begun = time.monotonic()
                if not await self._claim(run):
                    await ear.wait(SAFETY_NET_SECONDS)
                    await asyncio.sleep(max(0.0, PAUSE_SECONDS - (time.monotonic() - begun)))

    async def _claim(self, run: Run) -> bool:
        """Claim what there is room for; whether there may be more. A store that fails is asked again later."""
        most = min(BATCH, self._max_held - len(self._held))
        if most <= 0 or not self.is_sure():
            return False
        owner = self._owner
        try:
            claimed = await self._database.write(claim_rows.claim, owner, self._seats(), most, self._clock())
        except StoreUnavailable:
            log.warning("the store does not answer; no jobs are claimed")
            return False
        except Exception:
            log.exception("could not claim jobs")
            return False
        if owner == self._owner:
            for each in claimed:
                self._hold(run, each)
        return len(claimed) >= most

    def _hold(self, run: Run, claimed: Claimed) -> None:
        seat, job_id = asyncio.Event(), claimed.job.id
        if claimed.is_seated:
            seat.set()
        task = asyncio.create_task(run(claimed.claim, claimed.job, seat), name=job_id)
        self._held[job_id] = task
        task.add_done_callback(partial(self._let_go, job_id))

    def _let_go(self, job_id: str, task: asyncio.Task[None]) -> None:
        """A seat is free: whoever waits for it is claimed at once."""
        if self._held.get(job_id) is task:
            del self._held[job_id]
        self._database.bell.ring([QUEUE])

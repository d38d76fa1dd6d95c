"""Dispatch on PostgreSQL: any number of workers claim rows, each under its own lease."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from penstock.dispatch import Run
from penstock.dispatch.queue_positions import QueuePositions
from penstock.dispatch.worker_lease import Lease
from penstock.domain.jobs import Claim
from penstock.errors import StoreUnavailable
from penstock.store.postgres.database import PostgresDatabase
from penstock.store.queries.jobs import postgres_claim_rows
from penstock.store.queries.jobs.postgres_claim_rows import Claimed
from penstock.store.signals import QUEUE

CLAIM_BATCH: Final = 50
LEASE_SECONDS: Final = 4.0
SAFETY_NET_SECONDS: Final = 1.0
MIN_CLAIM_INTERVAL_SECONDS: Final = 0.01
"""The shortest time between two claims that found no job."""
LAST_CLAIM_TIMEOUT_SECONDS: Final = 2.0
FAST_STOP_SECONDS: Final = 0.5
"""Seconds that a stopping worker waits for all jobs to stop, before it releases those that have stopped."""

log = logging.getLogger(__name__)


class PostgresDispatch:
    """The dispatch of one worker. Claims are fenced: a worker that has lost one can no longer write to that job."""

    def __init__(
        self,
        database: PostgresDatabase,
        seats: Callable[[], Mapping[str, int]],
        max_held: int,
        clock: Callable[[], float],
        lease_seconds: float = LEASE_SECONDS,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._seats = seats
        self._max_held = max_held
        self._clock = clock
        self._steady = steady
        self._lease = Lease(database, lease_seconds, self._drop_all, steady)
        self._places = QueuePositions(database, steady)
        self._held: dict[str, asyncio.Task[None]] = {}
        self._keeping: asyncio.Task[None] | None = None
        self._claiming: asyncio.Task[None] | None = None
        self._doubts = False
        """True after a failed claim, which may have been committed nevertheless."""
        self._is_stopping = False

    # -- the port

    async def start(self, run: Run) -> None:
        """Take a lease, then claim jobs until `stop`."""
        await self._lease.begin()
        self._keeping = asyncio.create_task(self._lease.keep(), name="lease")
        self._claiming = asyncio.create_task(self._claim_forever(run), name="dispatch")

    def position(self, job_id: str) -> int | None:
        """Return the position in the vendor's queue, which may be a second old."""
        return self._places.find(job_id)

    def is_sure(self, claim: Claim | None = None) -> bool:
        """Return whether the lease of this claim, or of any made now, is certainly valid.

        A lost lease is replaced immediately, but claims made under the lost one stay invalid.
        """
        return self._lease.is_sure() and (claim is None or claim.owner == self._lease.owner)

    def reseat(self) -> None:
        """Claim by the limits of the new settings."""
        self._database.signals.ring([QUEUE])

    async def stop(self) -> None:
        """Stop claiming, cancel all jobs and end the lease, so that other workers continue the jobs."""
        await self._places.stop()
        if self._keeping is None or self._claiming is None:
            return
        await self._stop_claiming(self._claiming)
        await self._let_go_all()
        await _end(self._keeping)
        await self._lease.leave()

    async def _stop_claiming(self, claiming: asyncio.Task[None]) -> None:
        """Wait for a claim in progress: if the lease ended first, its jobs would have no owner for a while."""
        self._is_stopping = True
        self._database.signals.ring([QUEUE])
        await asyncio.wait((claiming,), timeout=LAST_CLAIM_TIMEOUT_SECONDS)
        await _end(claiming)

    async def _let_go_all(self) -> None:
        """Cancel all jobs. Those that still wait for the answer to an order keep the lease, all others are released."""
        held = dict(self._held)
        if not held:
            return
        for task in held.values():
            task.cancel()
        _, late = await asyncio.wait(held.values(), timeout=FAST_STOP_SECONDS)
        if late:
            await self._give_back_all_but({job_id for job_id, task in held.items() if task in late})
            await asyncio.wait(late)

    async def _give_back_all_but(self, kept: set[str]) -> None:
        try:
            await self._database.write(postgres_claim_rows.give_back_all_but, self._lease.owner, kept)
        except StoreUnavailable:
            log.warning("the store does not answer; the claims of this worker are released later")

    def _drop_all(self) -> None:
        """Cancel all jobs, as the lease has ended."""
        for task in list(self._held.values()):
            task.cancel()
        self._held.clear()

    # -- the claims

    async def _claim_forever(self, run: Run) -> None:
        with self._database.signals.listen(QUEUE) as subscription:
            while not self._is_stopping:
                begun = self._steady()
                if not await self._claim(run) and not self._is_stopping:
                    await subscription.wait(SAFETY_NET_SECONDS)
                    await asyncio.sleep(max(0.0, MIN_CLAIM_INTERVAL_SECONDS - (self._steady() - begun)))

    async def _claim(self, run: Run) -> bool:
        """Claim jobs while there is room. Return whether more may wait. A failure of the store is retried later."""
        if not self._lease.is_sure():
            return False
        most = min(CLAIM_BATCH, self._room)
        owner, doubted = self._claimant, self._doubts
        self._doubts = True
        try:
            if doubted:
                await self._database.write(postgres_claim_rows.give_back_all_but, owner, self._known)
            claimed = await self._ask(owner, most)
        except StoreUnavailable:
            log.warning("the store does not answer; no jobs are claimed")
            return False
        except Exception:
            log.exception("jobs could not be claimed; it is retried")
            return False
        self._doubts = False
        if owner == self._claimant and not self._is_stopping:
            for each in claimed:
                self._run_claimed(run, each)
        return 0 < most <= len(claimed)

    @property
    def _room(self) -> int:
        return self._max_held - len(self._held)

    @property
    def _claimant(self) -> str:
        """The owner in whose name jobs are claimed."""
        return self._lease.owner

    @property
    def _known(self) -> set[str]:
        """The ids of the claimant's jobs that this worker knows."""
        return set(self._held)

    async def _ask(self, owner: str, most: int) -> list[Claimed]:
        if most <= 0:  # jobs that only have to be ended are claimed even so
            return await self._database.write(postgres_claim_rows.claim_ending, owner, CLAIM_BATCH, self._clock())
        return await self._database.write(postgres_claim_rows.claim, owner, self._seats(), most, self._clock())

    def _run_claimed(self, run: Run, claimed: Claimed) -> None:
        self._hold(run, claimed)

    def _hold(self, run: Run, claimed: Claimed) -> asyncio.Task[None]:
        seat, job_id = asyncio.Event(), claimed.job.id
        if claimed.is_seated:
            seat.set()
        task = asyncio.create_task(run(claimed.claim, claimed.job, seat), name=job_id)
        self._held[job_id] = task
        task.add_done_callback(partial(self._let_go, job_id))
        return task

    def _let_go(self, job_id: str, task: asyncio.Task[None]) -> None:
        """Signal that a seat is free, so that the next job is claimed immediately."""
        if self._held.get(job_id) is task:
            del self._held[job_id]
        self._database.signals.ring([QUEUE])


async def _end(loop: asyncio.Task[None]) -> None:
    loop.cancel()
    await asyncio.gather(loop, return_exceptions=True)

"""Dispatch on PostgreSQL: the rows themselves are claimed, by any number of workers, each under a lease of its own."""

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

BATCH: Final = 50
LEASE_SECONDS: Final = 4.0
SAFETY_NET_SECONDS: Final = 1.0
PAUSE_SECONDS: Final = 0.01
"""At least so long lies between two claims that found nothing."""
CLAIM_SECONDS: Final = 2.0
HURRY_SECONDS: Final = 0.5
"""How long a worker that stops waits for what holds on, before it gives back all else."""

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
        self._lease = Lease(database, lease_seconds, self._drop_all)
        self._places = QueuePositions(database)
        self._held: dict[str, asyncio.Task[None]] = {}
        self._keeping: asyncio.Task[None] | None = None
        self._claiming: asyncio.Task[None] | None = None
        self._doubts = False
        """A claim failed, and may have been committed all the same."""
        self._is_stopping = False

    # -- the port

    async def start(self, run: Run) -> None:
        """Take a lease, then claim for as long as this process lives."""
        await self._lease.begin()
        self._keeping = asyncio.create_task(self._lease.keep(), name="lease")
        self._claiming = asyncio.create_task(self._claim_forever(run), name="dispatch")

    def position(self, job_id: str) -> int | None:
        """Place in the vendor's queue, as it was a moment ago."""
        return self._places.find(job_id)

    def is_sure(self, claim: Claim | None = None) -> bool:
        """Whether the lease under which this was claimed, or would be now, is good beyond doubt.

        A lease that was lost has a successor at once: what was claimed under the lost one is others' all the same.
        """
        return self._lease.is_sure() and (claim is None or claim.owner == self._lease.owner)

    def reseat(self) -> None:
        """The settings may allow more seats now."""
        self._database.signals.ring([QUEUE])

    async def stop(self) -> None:
        """Claim no more, let go of everything at once: the rows know where each job stands, and others go on."""
        await self._places.stop()
        if self._keeping is None or self._claiming is None:
            return
        await self._stop_claiming(self._claiming)
        await self._let_go_all()
        await _end(self._keeping)
        await self._lease.leave()

    async def _stop_claiming(self, claiming: asyncio.Task[None]) -> None:
        """A claim that is under way is waited for: once the lease has ended, its jobs would be nobody's for a while."""
        self._is_stopping = True
        self._database.signals.ring([QUEUE])
        await asyncio.wait((claiming,), timeout=CLAIM_SECONDS)
        await _end(claiming)

    async def _let_go_all(self) -> None:
        """An order whose answer is awaited holds on for a while, under the lease; all else is given back before."""
        held = dict(self._held)
        if not held:
            return
        for task in held.values():
            task.cancel()
        _, late = await asyncio.wait(held.values(), timeout=HURRY_SECONDS)
        if late:
            await self._give_back_all_but({job_id for job_id, task in held.items() if task in late})
            await asyncio.wait(late)

    async def _give_back_all_but(self, kept: set[str]) -> None:
        try:
            await self._database.write(postgres_claim_rows.give_back_all_but, self._lease.owner, kept)
        except StoreUnavailable:
            log.warning("the store does not answer: what was claimed here is given back later")

    def _drop_all(self) -> None:
        """The lease has ended."""
        for task in list(self._held.values()):
            task.cancel()
        self._held.clear()

    # -- the claims

    async def _claim_forever(self, run: Run) -> None:
        with self._database.signals.listen(QUEUE) as subscription:
            while not self._is_stopping:
                begun = time.monotonic()
                if not await self._claim(run) and not self._is_stopping:
                    await subscription.wait(SAFETY_NET_SECONDS)
                    await asyncio.sleep(max(0.0, PAUSE_SECONDS - (time.monotonic() - begun)))

    async def _claim(self, run: Run) -> bool:
        """Claim what there is room for; whether there may be more. A store that fails is asked again later."""
        if not self._lease.is_sure():
            return False
        most = min(BATCH, self._room)
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
            log.exception("could not claim jobs")
            return False
        self._doubts = False
        if owner == self._claimant and not self._is_stopping:
            for each in claimed:
                self._take_up(run, each)
        return 0 < most <= len(claimed)

    @property
    def _room(self) -> int:
        return self._max_held - len(self._held)

    @property
    def _claimant(self) -> str:
        """In whose name jobs are claimed."""
        return self._lease.owner

    @property
    def _known(self) -> set[str]:
        """Which of the claimant's jobs are taken care of."""
        return set(self._held)

    async def _ask(self, owner: str, most: int) -> list[Claimed]:
        if most <= 0:  # what has only to be ended is taken up all the same
            return await self._database.write(postgres_claim_rows.claim_ending, owner, BATCH, self._clock())
        return await self._database.write(postgres_claim_rows.claim, owner, self._seats(), most, self._clock())

    def _take_up(self, run: Run, claimed: Claimed) -> None:
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
        """A seat is free: whoever waits for it is claimed at once."""
        if self._held.get(job_id) is task:
            del self._held[job_id]
        self._database.signals.ring([QUEUE])


async def _end(loop: asyncio.Task[None]) -> None:
    loop.cancel()
    await asyncio.gather(loop, return_exceptions=True)

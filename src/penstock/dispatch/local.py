"""Dispatch in one process on SQLite, with one task per open job. Unfinished jobs are resumed at start."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

from penstock.dispatch import Run
from penstock.dispatch.vendor_seats import Seat, Seats
from penstock.domain.ids import new_id
from penstock.domain.jobs import Claim, Job
from penstock.errors import StoreUnavailable
from penstock.store.database import Database
from penstock.store.queries.jobs import open_job_rows
from penstock.store.signals import QUEUE

CLAIM_BATCH = 100
SAFETY_NET_SECONDS = 5.0
ENDING_INTERVAL_SECONDS = 0.5
RESERVE_PART = 10
"""One in this many places is reserved for accounts that hold few jobs, so that no backlog takes all places."""

log = logging.getLogger(__name__)


class LocalDispatch:
    """The only dispatch of its store: it starts in the process that holds the lock of the data folder."""

    def __init__(
        self,
        database: Database,
        seats: Callable[[str], int],
        max_held: int,
        clock: Callable[[], float],
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._seats = Seats(seats)
        self._max_held = max_held
        self._clock = clock
        self._steady = steady
        self._owner = new_id("runner")
        self._held: dict[str, asyncio.Task[None]] = {}
        self._held_by: Counter[str] = Counter()
        self._served = ""
        """The account whose job was claimed last while others waited. The accounts after it come next."""
        self._end_at = 0.0
        self._loop: asyncio.Task[None] | None = None

    async def start(self, run: Run) -> None:
        """Release the claims of an earlier process, then claim jobs until `stop`."""
        if self._loop is not None:
            return  # it runs already: the caller retries a later step of its own
        await self._database.write(open_job_rows.release_all, died=True)
        self._loop = asyncio.create_task(self._claim_forever(run), name="dispatch")

    def position(self, job_id: str) -> int | None:
        """Return the position in the vendor's queue."""
        return self._seats.position(job_id)

    def is_sure(self, claim: Claim | None = None) -> bool:
        """Return True, as no other process works on this store."""
        del claim
        return True

    def reseat(self) -> None:
        """Grant seats by the limits of the new settings."""
        self._seats.refill()

    async def stop(self) -> None:
        """Cancel all tasks and release their claims. Do nothing if it never started: the jobs are another server's."""
        if self._loop is None:
            return
        tasks = [self._loop, *self._held.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(StoreUnavailable):  # then the next process releases them when it starts
            await self._database.write(open_job_rows.release_all)

    @property
    def _spare(self) -> int:
        """Return the number of free places beyond the reserve."""
        return self._max_held - self._max_held // RESERVE_PART - len(self._held)

    async def _claim_forever(self, run: Run) -> None:
        """Claim jobs while there is room. If there is little, also claim jobs that only have to be ended."""
        with self._database.signals.listen(QUEUE) as subscription:
            while True:
                if await self._claim(run):
                    continue
                if self._spare <= 0:
                    await self._claim_ending(run)
                await subscription.wait(SAFETY_NET_SECONDS if self._spare > 0 else ENDING_INTERVAL_SECONDS)

    async def _claim(self, run: Run) -> bool:
        """Claim jobs while there is room. Return whether more may wait. A failure of the store is retried later."""
        limit = min(CLAIM_BATCH, self._max_held - len(self._held))
        if limit <= 0:
            return False
        held, spare, after = dict(self._held_by), self._spare, self._served
        try:
            claimed = await self._database.write(
                open_job_rows.claim, self._owner, limit, held=held, spare=spare, after=after
            )
        except Exception:
            log.exception("jobs could not be claimed; it is retried")
            return False
        if len(claimed) < limit <= spare:  # no job is left
            self._served = ""
        elif claimed:
            self._served = claimed[-1][1].account_id
        self._hold_all(run, claimed)
        return len(claimed) == limit

    async def _claim_ending(self, run: Run) -> None:
        """Claim canceled and expired jobs even without room, at most once in each interval."""
        now = self._steady()
        if now < self._end_at:
            return
        self._end_at = now + ENDING_INTERVAL_SECONDS
        try:
            self._hold_all(
                run, await self._database.write(open_job_rows.claim_ending, self._owner, CLAIM_BATCH, self._clock())
            )
        except Exception:
            log.exception("canceled and expired jobs could not be claimed; it is retried")

    def _hold_all(self, run: Run, claimed: Iterable[tuple[Claim, Job]]) -> None:
        for claim, job in sorted(claimed, key=_waits_for_vendor):
            seat = self._seats.ask(job.vendor, job.account_id, job.id, at_once=not _waits_for_vendor((claim, job)))
            task = asyncio.create_task(run(claim, job, seat.granted), name=job.id)
            self._held[job.id] = task
            self._held_by[job.account_id] += 1
            task.add_done_callback(partial(self._let_go, seat))

    def _let_go(self, seat: Seat, task: asyncio.Task[None]) -> None:
        self._seats.give_back(seat)
        if self._spare <= 0:
            self._database.signals.ring([QUEUE])  # there is room for one more
        self._held_by[seat.account_id] -= 1
        if not self._held_by[seat.account_id]:
            del self._held_by[seat.account_id]
        if self._held.get(seat.job_id) is task:  # a released job may have been claimed again
            del self._held[seat.job_id]


def _waits_for_vendor(claimed: tuple[Claim, Job]) -> bool:
    """Return whether the vendor has no order of the job. The others come first, as their seats are taken already."""
    return claimed[1].attempt is None

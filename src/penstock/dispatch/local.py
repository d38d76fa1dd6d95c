"""Dispatch in one process on SQLite: one coroutine per open job, every unfinished row resumed at start."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from penstock.dispatch import Run
from penstock.dispatch.seats import Seat, Seats
from penstock.identifiers import new_id
from penstock.jobs import Job
from penstock.store import job_rows
from penstock.store.bell import QUEUE
from penstock.store.database import Database
from penstock.store.job_rows import Claim

BATCH = 200
SAFETY_NET_SECONDS = 5.0
ENDING_SECONDS = 0.5

log = logging.getLogger(__name__)


class LocalDispatch:
    """The only one to work on this store: it starts where the data folder's lock is held, and nowhere else."""

    def __init__(
        self, database: Database, seats: Callable[[str], int], max_held: int, clock: Callable[[], float]
    ) -> None:
        self._database = database
        self._seats = Seats(seats)
        self._max_held = max_held
        self._clock = clock
        self._owner = new_id("runner")
        self._held: dict[str, asyncio.Task[None]] = {}
        self._room = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None

    async def start(self, run: Run) -> None:
        """Free what a former process held, then claim for as long as this one lives."""
        await self._database.write(job_rows.release_all)
        self._loop = asyncio.create_task(self._claim_forever(run), name="dispatch")

    def position(self, job_id: str) -> int | None:
        """Place in the vendor's queue."""
        return self._seats.position(job_id)

    def reseat(self) -> None:
        """The settings may allow more seats now."""
        self._seats.refill()

    async def stop(self) -> None:
        """Cancel every coroutine: the rows know where each job stands. Where it never started, others' jobs go on."""
        if self._loop is None:
            return
        tasks = [task for task in (self._loop, *self._held.values()) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._database.write(job_rows.release_all)

    async def _claim_forever(self, run: Run) -> None:
        """Claim as far as there is room; without room, only what merely has to be ended."""
        with self._database.bell.listen(QUEUE) as ear:
            while True:
                room = self._max_held - len(self._held)
                if room <= 0:
                    await self._claim(run, BATCH, ending_by=self._clock())
                    await self._wait_for_room()
                elif not await self._claim(run, min(BATCH, room)):
                    await ear.wait(SAFETY_NET_SECONDS)

    async def _claim(self, run: Run, limit: int, ending_by: float | None = None) -> bool:
        """Claim and hold; whether there may be more. A store that does not answer is asked again later."""
        try:
            claimed = await self._database.write(job_rows.claim, self._owner, limit, ending_by)
        except Exception:
            log.exception("could not claim jobs")
            return False
        for claim, job in claimed:
            self._hold(run, claim, job)
        return len(claimed) == limit

    async def _wait_for_room(self) -> None:
        self._room.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(ENDING_SECONDS):
                await self._room.wait()

    def _hold(self, run: Run, claim: Claim, job: Job) -> None:
        begun = job.attempt is not None
        seat = self._seats.ask(job.vendor, job.id, at_once=begun)
        task = asyncio.create_task(run(claim, job, seat.granted), name=job.id)
        self._held[job.id] = task
        task.add_done_callback(lambda task: self._let_go(job.id, task, seat))

    def _let_go(self, job_id: str, task: asyncio.Task[None], seat: Seat) -> None:
        self._seats.give_back(seat)
        if self._held.get(job_id) is task:  # a job that was given back may be held anew already
            del self._held[job_id]
        self._room.set()

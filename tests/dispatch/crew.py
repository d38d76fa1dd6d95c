"""Workers of any dispatcher on one store, and a vendor that sees every order: what the contract suite needs."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, func, select
from store.sample_jobs import make_asset, make_attempt, make_job

from penstock.dispatch import Dispatch
from penstock.dispatch.local import LocalDispatch
from penstock.dispatch.postgres import PostgresDispatch
from penstock.dispatch.temporal import TemporalAddress, TemporalDispatch
from penstock.domain import jobs
from penstock.domain.jobs import Claim, Job, State
from penstock.errors import StoreUnavailable
from penstock.store.connect import open_database
from penstock.store.database import Database
from penstock.store.queries.jobs import job_rows
from penstock.store.queries.jobs.job_rows import FenceLost
from penstock.store.tables import jobs as job_table

LEASE_SECONDS = 2.0
PATIENCE_SECONDS = 300.0
"""Only ends a test that hangs: a busy machine may need much of it."""


def loop_time() -> float:
    """Return the time of the loop that runs the test, by which its timers go."""
    return asyncio.get_running_loop().time()


async def until(condition: Callable[[], Any], seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until something is so."""
    give_up_at = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up_at, "it did not come to be"
        await asyncio.sleep(0.005)


@dataclass
class Vendor:
    """Takes orders, and finishes those that it is told to, or all."""

    orders: Counter[str] = field(default_factory=Counter)
    log: list[str] = field(default_factory=list)
    """Accounts, in the order of their orders."""
    finished: set[str] = field(default_factory=set)
    peak: int = 0
    is_quick: bool = False
    news: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def running(self) -> int:
        return len(self.orders.keys() - self.finished)

    async def place(self, job: Job) -> None:
        self.orders[job.id] += 1
        self.log.append(job.account_id)
        self.peak = max(self.peak, self.running)
        if self.is_quick:
            await self.finish(job.id)

    async def finish(self, *job_ids: str) -> None:
        self.finished.update(job_ids)
        async with self.news:
            self.news.notify_all()

    async def finish_all(self) -> None:
        """Whatever was ordered, and will be."""
        self.is_quick = True
        await self.finish(*self.orders)

    async def wait_for(self, job_id: str) -> None:
        async with self.news:
            await self.news.wait_for(lambda: job_id in self.finished)


@dataclass
class Worker:
    """One process's side of the dispatch, on a connection to the store of its own."""

    database: Database
    dispatch: Dispatch
    vendors: dict[str, Vendor]
    claims: dict[str, Claim] = field(default_factory=dict)
    running: dict[str, "asyncio.Task[None]"] = field(default_factory=dict)
    is_alive: bool = True
    is_at_work: bool = True

    @property
    def held(self) -> set[str]:
        return set(self.running)

    async def run(self, claim: Claim, job: Job, seat: asyncio.Event) -> None:
        """What the runner does, in a few lines."""
        await seat.wait()
        self.claims[job.id] = claim
        self.running[job.id] = current_task()
        try:
            while not await self.work(claim, job):
                await asyncio.sleep(0.05)
                job = await self.database.read(job_rows.get_claimed, claim)
        except (FenceLost, StoreUnavailable):
            return
        finally:
            if self.claims[job.id] == claim:
                del self.running[job.id]

    async def work(self, claim: Claim, job: Job) -> bool:
        """An order where there is none, then wait, then the end; False if it has to be looked at again."""
        vendor = self.vendors[job.vendor]
        try:
            if job.attempt is None:
                job = await self.amend(claim, begin)
            if job.id not in vendor.orders:
                if not self.dispatch.is_sure(claim):
                    return False
                await vendor.place(job)
            await vendor.wait_for(job.id)
            await self.amend(claim, end)
        except StoreUnavailable:
            return not self.is_alive
        return True

    async def amend(self, claim: Claim, change: Callable[[Job], Job]) -> Job:
        return await self.database.write(job_rows.amend, claim, change, time.time())

    async def kill(self) -> None:
        """From now on nothing that it does reaches the store."""
        self.is_alive = False
        await self.database.close()

    async def stop(self) -> None:
        if self.is_at_work:
            self.is_at_work = False
            await self.dispatch.stop()
        if self.is_alive:
            await self.kill()


def current_task() -> "asyncio.Task[None]":
    task = asyncio.current_task()
    assert task is not None
    return task


def begin(job: Job) -> Job:
    job = jobs.start(job, time.time()) if job.state is State.QUEUED else job
    return jobs.order(job, make_attempt(job.id, len(job.attempts) + 1, vendor=job.vendor))


def end(job: Job) -> Job:
    return jobs.succeed(job, time.time(), (make_asset(),), ())


@dataclass
class Crew:
    """Everyone who works on one store."""

    kind: str
    url: str
    database: Database
    temporal: str = ""
    queue: str = field(default_factory=lambda: uuid4().hex)
    vendors: dict[str, Vendor] = field(default_factory=lambda: {"sim": Vendor(), "other": Vendor()})
    workers: list[Worker] = field(default_factory=list)

    @property
    def vendor(self) -> Vendor:
        return self.vendors["sim"]

    async def hire(
        self, seats: int = 100, number: int = 1, max_held: int = 1000, knows: Sequence[str] = ("sim", "other")
    ) -> list[Worker]:
        """Start so many workers; on SQLite there is only ever one."""
        hired: list[Worker] = []
        for _ in range(1 if self.kind == "local" else number):
            database = open_database(self.url)
            await database.watch()
            dispatch = self._make(database, dict.fromkeys(knows, seats), max_held)
            hired.append(Worker(database, dispatch, self.vendors))
        self.workers += hired
        await asyncio.gather(*(worker.dispatch.start(worker.run) for worker in hired))
        return hired

    def _make(self, database: Any, seats: dict[str, int], max_held: int) -> Dispatch:
        if self.kind == "local":
            return LocalDispatch(database, seats.__getitem__, max_held, time.time)
        if self.kind == "temporal":
            place = TemporalAddress(self.temporal, queue=self.queue)
            return TemporalDispatch(database, lambda: seats, max_held, time.time, place, LEASE_SECONDS)
        return PostgresDispatch(database, lambda: seats, max_held, time.time, LEASE_SECONDS)

    async def accept(self, account: str = "acct_one", number: int = 1, **fields: Any) -> list[Job]:
        """As the gateway does."""
        now = time.time()
        made = [
            make_job(account_id=account, created_at=now, start_by=now + 600, estimated=0, **fields)
            for _ in range(number)
        ]
        return await self.database.write(job_rows.insert_all, made, now)

    async def all_done(self, seconds: float = PATIENCE_SECONDS) -> None:
        give_up_at = time.monotonic() + seconds
        while await self.database.read(count, job_table.c.done == 0):
            assert time.monotonic() < give_up_at, "jobs are left open"
            await asyncio.sleep(0.02)

    async def open_of(self, accepted: list[Job]) -> int:
        return await self.database.read(count, job_table.c.done == 0, job_table.c.id.in_(job.id for job in accepted))

    async def epochs(self) -> dict[str, int]:
        return await self.database.read(read_epochs)

    async def owned(self) -> int:
        return await self.database.read(count, job_table.c.done == 0, job_table.c.owner.is_not(None))

    async def seated(self) -> int:
        return await self.database.read(count, job_table.c.done == 0, job_table.c.seated == 1)


def count(connection: Connection, *conditions: Any) -> int:
    return connection.execute(select(func.count()).select_from(job_table).where(*conditions)).scalar_one()


def read_epochs(connection: Connection) -> dict[str, int]:
    return {row.id: row.epoch for row in connection.execute(select(job_table.c.id, job_table.c.epoch))}


@asynccontextmanager
async def gathered(kind: str, url: str, temporal: str = "") -> AsyncGenerator[Crew]:
    """A crew, sent home when the block ends."""
    database = open_database(url)
    database.patience = 60  # a busy machine is no outage
    await database.watch()
    crew = Crew(kind, url, database, temporal)
    try:
        yield crew
    finally:
        await asyncio.gather(*(worker.stop() for worker in crew.workers))
        await database.close()


def rerouted(job: Job, vendor: str) -> Job:
    """The job, handed to another vendor."""
    assert job.attempt is not None
    return jobs.reroute(job, replace(job.attempt, outcome=jobs.Outcome.REFUSED), vendor, "m")

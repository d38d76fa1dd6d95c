"""Real workers, frozen, killed and stopped: others go on with their jobs, and whoever wakes up does nothing twice."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from conftest import SIMULATOR, Server, Start
from crew import loop_time
from fleet_machines import Machine
from ports import free_port
from sqlalchemy import Connection, text

HELD = text("""
    SELECT count(*) FROM jobs JOIN workers ON workers.id = split_part(jobs.owner, '/', 1)
    WHERE done = 0 AND workers.name = :name
""")
ORPHANED = text("SELECT count(*) FROM jobs WHERE done = 0 AND seated = 1 AND owner IS NULL")


class Fleet:
    """Two workers, a gateway that runs no jobs, and the vendor that all of them share."""

    def __init__(self, folder: Path, environ: dict[str, str], server: Server) -> None:
        self.server = server
        self.workers = [self._make(name, folder, environ) for name in ("one", "two")]
        self.jobs: list[str] = []
        self.seconds: list[float] = []

    def _make(self, name: str, folder: Path, environ: dict[str, str]) -> Machine:
        own = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
        return Machine(name, ("worker",), folder / "data", free_port(), own | environ)

    async def submit(self, number: int, seconds: float) -> None:
        made = await asyncio.gather(*(self.server.submit(script={"latency": seconds}) for _ in range(number)))
        self.jobs += [job["id"] for job in made]

    async def busiest(self) -> tuple[Machine, Machine]:
        """Who has the most jobs, and the other one; as soon as anyone has any."""
        first, second = self.workers
        async with asyncio.timeout(300):
            while not any(counts := [await self.held(worker) for worker in self.workers]):  # noqa: ASYNC110  rows
                await asyncio.sleep(0.005)
        return (first, second) if counts[0] >= counts[1] else (second, first)

    async def held(self, worker: Machine) -> int:
        return await self._count(HELD, name=worker.worker_name) if worker.process else 0

    async def taken_over(self, name: str) -> None:
        """Until nothing is left with this worker, nor with nobody."""
        begun = loop_time()
        async with asyncio.timeout(300):
            while await self._count(HELD, name=name) or await self._count(ORPHANED):  # noqa: ASYNC110  rows
                await asyncio.sleep(0.02)
        self.seconds.append(loop_time() - begun)

    async def _count(self, query: Any, **values: Any) -> int:
        def count(connection: Connection) -> int:
            return connection.execute(query, values).scalar_one()

        return await self.server.gateway.database.read(count)

    async def all_succeed(self) -> None:
        ends = await asyncio.gather(*(self.server.finish(job_id) for job_id in self.jobs))
        assert {job["status"] for job in ends} == {"succeeded"}
        counts = self.server.gateway.offers.vendors["sim"].upstream.counts()
        assert counts == {"orders": len(self.jobs), "jobs": len(self.jobs), "duplicates": 0}


@pytest.fixture(params=["postgres", pytest.param("temporal", marks=pytest.mark.long)])
async def fleet(
    request: pytest.FixtureRequest, postgres_store_url: str, tmp_path: Path, start: Start
) -> AsyncGenerator[Fleet]:
    environ = {"PENSTOCK_DATABASE_URL": postgres_store_url}
    if request.param == "temporal":
        environ["PENSTOCK_TEMPORAL"] = request.getfixturevalue("temporal_server").address
        environ["PENSTOCK_TEMPORAL_QUEUE"] = uuid4().hex
    overrides = {name.removeprefix("PENSTOCK_").lower(): value for name, value in environ.items()}
    server = await start(SIMULATOR, overrides | {"jobs.run": "workers"})
    environ["PENSTOCK_CONFIG"] = str(tmp_path / "penstock.toml")
    fleet = Fleet(tmp_path, environ, server)
    try:
        await asyncio.gather(*(worker.start() for worker in fleet.workers))
        yield fleet
    finally:
        for worker in fleet.workers:
            await worker.kill()


@pytest.mark.timeout(900)
async def test_others_go_on_and_whoever_wakes_up_does_nothing_twice(fleet: Fleet):
    submitting = asyncio.create_task(fleet.submit(12, 5.0))
    frozen, other = await fleet.busiest()  # some of its orders are about to be placed
    frozen.send(signal.SIGSTOP)
    await submitting
    await fleet.taken_over(frozen.worker_name)
    frozen.send(signal.SIGCONT)
    await fleet.submit(4, 5.0)
    await asyncio.sleep(0.5)
    name = other.worker_name
    await other.kill()
    await fleet.taken_over(name)
    await fleet.submit(3, 3.0)
    assert await fleet.busiest() == (frozen, other)
    code, seconds = await frozen.stop()
    assert (code, seconds < 30) == (0, True), seconds
    await other.start()
    await fleet.all_succeed()
    assert max(fleet.seconds) < 40
    assert frozen.errors() == other.errors() == {}

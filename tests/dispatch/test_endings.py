"""Jobs that end before a vendor works on them, with the real runner behind every dispatcher."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
from conftest import Server, Start
from sqlalchemy import Connection, update

from penstock.dispatch import Dispatch, Run
from penstock.domain.jobs import Claim
from penstock.jobs.quarantine import MAX_DEATHS
from penstock.store.tables import jobs

ONE_SEAT = '[vendors.sim]\ntype = "sim"\nmax_concurrent = 1\n'
DISPATCHERS = ["local", "postgres", "temporal"]


@pytest.fixture(params=DISPATCHERS)
def overrides(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Settings of each dispatcher."""
    if request.param == "local":
        return {}
    found = {"database_url": request.getfixturevalue("postgres_store_url")}
    if request.param == "temporal":
        address = request.getfixturevalue("temporal_server").address
        found |= {"temporal": address, "temporal_queue": uuid4().hex}
    return found


@pytest.fixture
async def taken(overrides: dict[str, Any], start: Start) -> Server:
    """A gateway whose vendor has one seat, which is taken for a while."""
    server = await start(ONE_SEAT, overrides)
    await await_state(server, (await server.submit(script={"latency": 2}))["id"], "running")
    return server


async def await_state(server: Server, job_id: str, state: str) -> None:
    async with asyncio.timeout(300):
        while (await server.client.get(f"/api/v1/jobs/{job_id}")).json()["status"] != state:  # noqa: ASYNC110  the API
            await asyncio.sleep(0.02)


async def test_a_waiting_job_can_be_canceled_and_ends_at_its_deadline(taken: Server):
    canceled = await taken.submit(script={})
    body = {"model": "sim_text_to_video", "input": [{"params": {}}], "start_timeout": 0.3}
    late = (await taken.client.post("/model/v1/generation", json=body)).json()
    after = await taken.submit(script={})
    response = await taken.client.post(f"/api/v1/jobs/{canceled['id']}/cancel")
    assert response.status_code in (200, 202)
    assert (await taken.finish(canceled["id"]))["status"] == "canceled"
    ended = await taken.finish(late["id"])
    assert (ended["status"], ended["error"]["code"]) == ("expired", "start_timeout")
    assert (await taken.finish(after["id"]))["status"] == "succeeded"
    assert count_orders(taken) == 2


@pytest.mark.parametrize("overrides", DISPATCHERS[1:], indirect=True)  # the local one has it claimed already
async def test_a_job_that_takes_its_processes_down_is_ended(taken: Server):
    waiting = await taken.submit(script={})

    def bury(connection: Connection) -> None:
        connection.execute(update(jobs).where(jobs.c.id == waiting["id"]).values(deaths=MAX_DEATHS))

    await taken.gateway.database.write(bury)
    ended = await taken.finish(waiting["id"])
    assert (ended["status"], ended["error"]["code"]) == ("failed", "internal_error")
    assert count_orders(taken) == 1


@dataclass
class Doubtful:
    """A dispatch that is not sure of its claims until it is told to be."""

    dispatch: Dispatch
    sure: bool = False
    asked: int = 0

    def is_sure(self, claim: Claim | None = None) -> bool:
        del claim
        self.asked += 1
        return self.sure

    async def start(self, run: Run) -> None:
        await self.dispatch.start(run)

    def position(self, job_id: str) -> int | None:
        return self.dispatch.position(job_id)

    def reseat(self) -> None:
        self.dispatch.reseat()

    async def stop(self) -> None:
        await self.dispatch.stop()


async def test_who_is_not_sure_pays_nothing(start: Start):
    server = await start('[vendors.sim]\ntype = "sim"\npoll_seconds = 0.05\n')
    server.gateway.dispatch = doubtful = Doubtful(server.gateway.dispatch)
    job = await server.submit(script={})
    await until(lambda: doubtful.asked >= 2)
    assert count_orders(server) == 0
    doubtful.sure = True
    assert (await server.finish(job["id"]))["status"] == "succeeded"
    assert count_orders(server) == 1


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(300):
        while not condition():  # noqa: ASYNC110  nobody rings for it
            await asyncio.sleep(0.01)


def count_orders(server: Server) -> int:
    """What the vendor's own side has seen."""
    return server.gateway.offers.vendors["sim"].upstream.counts()["orders"]

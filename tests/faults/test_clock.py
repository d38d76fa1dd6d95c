"""The time of day jumps under a gateway and its worker: nothing is lost, ended early, late or paid twice by it."""

import asyncio
import shutil
import time
from collections.abc import AsyncGenerator, Generator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from conftest import SIMULATOR, VIDEO, Start, running
from crew import loop_time
from fault_steps import Site, site_of
from postgres import PostgresServer
from steps import until

from penstock.clocks import Clocks
from penstock.domain import ids
from penstock.settings.tables import load
from penstock.store.queries.billing import balance_rows
from penstock.store.queries.jobs import worker_rows

HOUR = 3600.0


class WrongClock:
    """The time of day, and how wrong it is."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


@pytest.fixture
def clock() -> Generator[WrongClock]:
    clock = WrongClock()
    right = ids.use(ids.IdSource(lambda: int(clock() * 1e9)))
    yield clock
    ids.use(right)


@pytest.fixture
async def site(
    postgres_store_url: str, clock: WrongClock, start: Start, tmp_path: Path, postgres_server: PostgresServer
) -> AsyncGenerator[Site]:
    async with site_of(partial(start, clocks=Clocks(clock)), tmp_path, postgres_server, postgres_store_url) as site:
        yield site


def moment(job: dict[str, Any], name: str) -> float:
    return datetime.fromisoformat(job[name]).timestamp()


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
async def test_a_jump_of_an_hour_ends_nothing(site: Site, clock: WrongClock, jump: float):
    spender = await site.server.sign_in("spender", budgets={"day": "1"}, expires_at=clock() + 2 * HOUR)
    assert (await site.ask(spender)).status_code == 200
    (owner,) = await site.server.gateway.database.read(worker_rows.list_all)
    running = (await site.order(2)).json()
    await site.until_ordered(1)
    clock.ahead = jump
    later = (await site.order(0.05)).json()
    assert (await site.ask(spender)).status_code == 200
    begun = loop_time()
    done = [await site.server.finish(job["id"]) for job in (running, later)]
    assert loop_time() - begun < 30, "who waits for a vendor does not wait for the clock"
    for job in done:
        assert (job["status"], len(job["attempts"])) == ("succeeded", 1), job
        assert moment(job, "created_at") <= moment(job, "started_at") <= moment(job, "finished_at")
    assert done[0]["id"] < done[1]["id"], "within a process ids sort as they are made"
    await asyncio.sleep(max(0.0, 5 - (loop_time() - begun)))  # a worker's lease would have ended by now
    workers = await site.server.gateway.database.read(worker_rows.list_all)
    assert [worker.id for worker in workers] == [owner.id]
    await site.check_books(2)


async def test_who_is_ahead_of_time_does_not_free_what_others_hold(site: Site, clock: WrongClock):
    """Nor lets it in a key that its clock says has expired; when the clock is right again, so is the key."""
    spender = await site.server.sign_in("spender", budgets={"day": "1"}, expires_at=clock() + HOUR / 2)
    assert (await site.ask(spender)).status_code == 200
    database = site.server.gateway.database
    payer = (await site.server.gateway.keyring.check(spender.headers["authorization"])).payer
    await database.write(balance_rows.give_back, site.server.gateway.admission.process, {})
    clock.ahead = HOUR
    assert await database.write(balance_rows.expire_leases, clock()) == 0
    assert await database.read(balance_rows.leased_of, payer.owners)
    assert (await site.ask(spender)).json()["error"]["code"] == "expired_api_key"
    clock.ahead = 0.0
    assert (await site.ask(spender)).status_code == 200


async def test_a_job_that_began_ahead_of_time_ends_at_its_run_timeout(
    clock: WrongClock, tmp_path: Path, empty_store: Path, weights: Path
):
    shutil.copy(empty_store, tmp_path)
    (tmp_path / "penstock.toml").write_text(SIMULATOR)
    settings = load(tmp_path / "penstock.toml", {}, {"data": tmp_path, "weights": weights})
    body = {"model": VIDEO, "input": [{"params": {"script": {"ending": "never"}}}], "run_timeout": 2}
    clock.ahead = 48 * HOUR
    async with running(settings, clocks=Clocks(clock)) as server:
        job = (await server.client.post("/model/v1/generation", json=body)).json()
        await until(server.client, job["id"], phase="generating")
    clock.ahead = 0.0
    async with running(settings, clocks=Clocks(clock)) as server:
        done = await server.finish(job["id"], 60)
    assert (done["status"], done["error"]["code"]) == ("expired", "run_timeout")

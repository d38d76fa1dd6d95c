"""The store goes away and comes back: whoever holds a job keeps it, nothing is begun twice, and nothing is left."""

import asyncio
import time
from collections.abc import AsyncGenerator

import pytest
from crew import LEASE_SECONDS, Crew, gathered, until
from postgres import PostgresServer


@pytest.fixture
async def crew(postgres_store_url: str) -> AsyncGenerator[Crew]:
    async with gathered("postgres", postgres_store_url) as crew:
        yield crew


async def hold_twenty(crew: Crew) -> dict[str, int]:
    """Three workers with twenty orders between them; which epoch each job is in."""
    await crew.hire(number=3)
    await crew.accept(number=20)
    await until(lambda: crew.vendor.running == 20)
    await asyncio.sleep(LEASE_SECONDS)  # from then on each would sweep the others
    return await crew.epochs()


async def check_held(crew: Crew, before: dict[str, int]) -> None:
    """After a while nobody has taken anything over, and all ends well."""
    await until(lambda: all(worker.dispatch.is_sure() for worker in crew.workers))
    await asyncio.sleep(LEASE_SECONDS * 1.5)
    assert await crew.epochs() == before
    await crew.vendor.finish_all()
    await crew.accept(number=5)
    await crew.all_done()
    assert len(crew.vendor.orders) == 25
    assert max(crew.vendor.orders.values()) == 1


@pytest.mark.parametrize("seconds", [0.0, LEASE_SECONDS * 2])
@pytest.mark.long
async def test_a_store_that_restarts_is_no_reason_to_take_jobs_over(
    crew: Crew, postgres_server: PostgresServer, seconds: float
):
    before = await hold_twenty(crew)
    await asyncio.to_thread(postgres_server.stop)
    await asyncio.sleep(seconds)
    postgres_server.start()  # here: it would end with the thread that starts it
    await check_held(crew, before)


@pytest.mark.long
async def test_nor_is_one_that_hangs(crew: Crew, postgres_server: PostgresServer):
    before = await hold_twenty(crew)
    with postgres_server.frozen():
        await until(lambda: not any(worker.dispatch.is_sure() for worker in crew.workers))
        await asyncio.sleep(LEASE_SECONDS)
    await check_held(crew, before)


async def test_cut_connections_leave_no_job_behind(crew: Crew, postgres_server: PostgresServer):
    await crew.hire(seats=30, number=3)
    await crew.vendor.finish_all()
    over = time.monotonic() + 2
    while time.monotonic() < over:
        await crew.accept(number=10)
        await asyncio.to_thread(postgres_server.cut, "penstock", crew.url.rpartition("/")[2])
    await crew.all_done()
    assert max(crew.vendor.orders.values()) == 1

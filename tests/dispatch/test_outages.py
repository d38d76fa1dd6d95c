"""The store goes away and comes back: whoever holds a job keeps it, nothing is begun twice, and nothing is left."""

import asyncio
import time
from collections.abc import AsyncGenerator

import pytest
from postgres import PostgresServer
from threads import LEASE_SECONDS, Crew, gathered, until


@pytest.fixture
async def threads(postgres_store_url: str) -> AsyncGenerator[Crew]:
    async with gathered("postgres", postgres_store_url) as threads:
        yield threads


async def hold_twenty(threads: Crew) -> dict[str, int]:
    """Three workers with twenty orders between them; which epoch each job is in."""
    await threads.hire(number=3)
    await threads.accept(number=20)
    await until(lambda: threads.vendor.running == 20)
    await asyncio.sleep(LEASE_SECONDS)  # from then on each would sweep the others
    return await threads.epochs()


async def check_held(threads: Crew, before: dict[str, int]) -> None:
    """After a while nobody has taken anything over, and all ends well."""
    await until(lambda: all(worker.dispatch.is_sure() for worker in threads.workers))
    await asyncio.sleep(LEASE_SECONDS * 1.5)
    assert await threads.epochs() == before
    await threads.vendor.finish_all()
    await threads.accept(number=5)
    await threads.all_done()
    assert len(threads.vendor.orders) == 25
    assert max(threads.vendor.orders.values()) == 1


@pytest.mark.parametrize("seconds", [0.0, LEASE_SECONDS * 2])
@pytest.mark.long
async def test_a_store_that_restarts_is_no_reason_to_take_jobs_over(
    threads: Crew, postgres_server: PostgresServer, seconds: float
):
    before = await hold_twenty(threads)
    await asyncio.to_thread(postgres_server.stop)
    await asyncio.sleep(seconds)
    postgres_server.start()  # here: it would end with the thread that starts it
    await check_held(threads, before)


@pytest.mark.long
async def test_nor_is_one_that_hangs(threads: Crew, postgres_server: PostgresServer):
    before = await hold_twenty(threads)
    with postgres_server.frozen():
        await until(lambda: not any(worker.dispatch.is_sure() for worker in threads.workers))
        await asyncio.sleep(LEASE_SECONDS)
    await check_held(threads, before)


async def test_cut_connections_leave_no_job_behind(threads: Crew, postgres_server: PostgresServer):
    await threads.hire(seats=30, number=3)
    await threads.vendor.finish_all()
    over = time.monotonic() + 2
    while time.monotonic() < over:
        await threads.accept(number=10)
        await asyncio.to_thread(postgres_server.cut, "penstock", threads.url.rpartition("/")[2])
    await threads.all_done()
    assert max(threads.vendor.orders.values()) == 1

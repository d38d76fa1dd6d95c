"""What only Temporal brings: it may be away, lose its data or be told to stop a workflow, and others work beside it."""

import asyncio
from collections.abc import AsyncGenerator, Generator

import pytest
from temporal_server import TemporalServer
from temporalio.client import Client
from threads import Crew, gathered, until


@pytest.fixture
def own_server() -> Generator[TemporalServer]:
    """A server of this test's own: it forgets everything when it is stopped."""
    server = TemporalServer()
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
async def threads(postgres_store_url: str, temporal_server: TemporalServer) -> AsyncGenerator[Crew]:
    async with gathered("temporal", postgres_store_url, temporal_server.address) as threads:
        yield threads


async def test_while_temporal_is_away_jobs_wait_and_what_runs_goes_on(
    postgres_store_url: str, own_server: TemporalServer
):
    async with gathered("temporal", postgres_store_url, own_server.address) as threads:
        await threads.hire(number=2)
        running = await threads.accept(number=4)
        await until(lambda: threads.vendor.running == 4)
        own_server.stop()
        waiting = await threads.accept(number=3)
        await threads.vendor.finish(running[0].id, running[1].id)
        while await threads.open_of(running) > 2:  # noqa: ASYNC110  rows ring no bell
            await asyncio.sleep(0.02)
        assert len(threads.vendor.orders) == 4
        own_server.start()
        await until(lambda: len(threads.vendor.orders) == 7)
        await threads.vendor.finish_all()
        await threads.all_done()
        assert dict(threads.vendor.orders) == {job.id: 1 for job in (*running, *waiting)}


async def test_a_job_outlives_its_workflow(threads: Crew):
    await threads.hire(number=2)
    (job,) = await threads.accept()
    await until(lambda: job.id in threads.vendor.orders)
    before = await threads.epochs()
    client = await Client.connect(threads.temporal)
    await client.get_workflow_handle(job.id).terminate("by mistake")
    while await threads.epochs() == before:  # noqa: ASYNC110  rows ring no bell
        await asyncio.sleep(0.02)
    await threads.vendor.finish_all()
    await threads.all_done()
    assert dict(threads.vendor.orders) == {job.id: 1}


async def test_who_does_not_know_the_vendor_leaves_the_job_to_who_does(threads: Crew):
    """Also one that was begun by a worker that is gone."""
    (stranger,) = await threads.hire(knows=["other"])
    (first,) = await threads.hire(knows=["sim"])
    accepted = await threads.accept(number=12)
    await until(lambda: threads.vendor.running == 12)
    await first.stop()
    (second,) = await threads.hire(knows=["sim", "other"])
    await until(lambda: len(second.held) == 12)
    await threads.vendor.finish_all()
    await threads.all_done()
    assert stranger.claims == {}
    assert dict(threads.vendor.orders) == {job.id: 1 for job in accepted}


async def test_workers_with_and_without_temporal_share_a_store(threads: Crew):
    (with_temporal,) = await threads.hire(seats=10)
    accepted = await threads.accept(number=6)
    await until(lambda: threads.vendor.running == 6)
    threads.kind = "postgres"
    (without,) = await threads.hire(seats=10)
    accepted += await threads.accept(number=8)
    await until(lambda: threads.vendor.running == 10)
    assert len(with_temporal.held | without.held) == 10
    await with_temporal.kill()
    await until(lambda: len(without.held) == 10)
    await threads.vendor.finish_all()
    await threads.all_done()
    assert dict(threads.vendor.orders) == {job.id: 1 for job in accepted}
    assert threads.vendor.peak <= 10

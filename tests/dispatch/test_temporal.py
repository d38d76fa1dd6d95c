"""What only Temporal brings: it may be away, lose its data or be told to stop a workflow, and others work beside it."""

import asyncio
from collections.abc import AsyncGenerator, Generator

import pytest
from crew import Crew, gathered, until
from temporal_server import TemporalServer
from temporalio.client import Client


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
async def crew(postgres_store_url: str, temporal_server: TemporalServer) -> AsyncGenerator[Crew]:
    async with gathered("temporal", postgres_store_url, temporal_server.address) as crew:
        yield crew


async def test_while_temporal_is_away_jobs_wait_and_what_runs_goes_on(
    postgres_store_url: str, own_server: TemporalServer
):
    async with gathered("temporal", postgres_store_url, own_server.address) as crew:
        await crew.hire(number=2)
        running = await crew.accept(number=4)
        await until(lambda: crew.vendor.running == 4)
        own_server.stop()
        waiting = await crew.accept(number=3)
        await crew.vendor.finish(running[0].id, running[1].id)
        while await crew.open_of(running) > 2:  # noqa: ASYNC110  rows ring no bell
            await asyncio.sleep(0.02)
        assert len(crew.vendor.orders) == 4
        own_server.start()
        await until(lambda: len(crew.vendor.orders) == 7)
        await crew.vendor.finish_all()
        await crew.all_done()
        assert dict(crew.vendor.orders) == {job.id: 1 for job in (*running, *waiting)}


async def test_a_job_outlives_its_workflow(crew: Crew):
    await crew.hire(number=2)
    (job,) = await crew.accept()
    await until(lambda: job.id in crew.vendor.orders)
    before = await crew.epochs()
    client = await Client.connect(crew.temporal)
    await client.get_workflow_handle(job.id).terminate("by mistake")
    while await crew.epochs() == before:  # noqa: ASYNC110  rows ring no bell
        await asyncio.sleep(0.02)
    await crew.vendor.finish_all()
    await crew.all_done()
    assert dict(crew.vendor.orders) == {job.id: 1}


async def test_who_does_not_know_the_vendor_leaves_the_job_to_who_does(crew: Crew):
    """Also one that was begun by a worker that is gone."""
    (stranger,) = await crew.hire(knows=["other"])
    (first,) = await crew.hire(knows=["sim"])
    accepted = await crew.accept(number=12)
    await until(lambda: crew.vendor.running == 12)
    await first.stop()
    (second,) = await crew.hire(knows=["sim", "other"])
    await until(lambda: len(second.held) == 12)
    await crew.vendor.finish_all()
    await crew.all_done()
    assert stranger.claims == {}
    assert dict(crew.vendor.orders) == {job.id: 1 for job in accepted}


async def test_workers_with_and_without_temporal_share_a_store(crew: Crew):
    (with_temporal,) = await crew.hire(seats=10)
    accepted = await crew.accept(number=6)
    await until(lambda: crew.vendor.running == 6)
    crew.kind = "postgres"
    (without,) = await crew.hire(seats=10)
    accepted += await crew.accept(number=8)
    await until(lambda: crew.vendor.running == 10)
    await until(lambda: len(with_temporal.held | without.held) == 10)
    await with_temporal.kill()
    await until(lambda: len(without.held) == 10)
    await crew.vendor.finish_all()
    await crew.all_done()
    assert dict(crew.vendor.orders) == {job.id: 1 for job in accepted}
    assert crew.vendor.peak <= 10

"""The client for event loops: the same flows by another driver, and the same face."""

import asyncio
import inspect

import pytest
from flaky_front import Cut, Lose

from penstock.client import (
    AsyncBatch,
    AsyncClient,
    AsyncJob,
    AsyncOutput,
    Batch,
    Client,
    Job,
    JobFailed,
    NotFoundError,
    Output,
    WaitTimeout,
)
from penstock.client.async_client import AsyncWebhooks
from penstock.client.sync_client import Webhooks
from penstock.client.waiting import LONGEST_HOLD

MODEL = "sim_image_to_model"
VIDEO = "sim_text_to_video"
QUICK = {"latency": 0.05}


@pytest.mark.parametrize(
    ("plain", "awaited"),
    [(Client, AsyncClient), (Job, AsyncJob), (Output, AsyncOutput), (Batch, AsyncBatch), (Webhooks, AsyncWebhooks)],
)
def test_both_clients_have_the_same_face(plain, awaited):
    def face(kind: type) -> dict[str, list[str]]:
        found = inspect.getmembers(kind, lambda member: inspect.isfunction(member) or isinstance(member, property))
        return {
            name: list(inspect.signature(member).parameters) if inspect.isfunction(member) else []
            for name, member in found
            if not name.startswith("_")
        }

    assert face(plain) == face(awaited)


async def test_a_picture_becomes_a_saved_model(async_client, picture, tmp_path):
    job = await async_client.generate(MODEL, file=picture, script=QUICK)
    events = [event async for event in job.events()]
    done = await job.wait()
    assert events[-1].job.status == "succeeded"
    assert (await done.save(tmp_path / "cat.glb")).read_bytes() == await done.bytes()
    assert [each.id async for each in async_client.jobs(limit=1)] == [job.id]
    assert (await done.rerun()).model == MODEL
    assert (await async_client.price(MODEL, file=picture)).valid


async def test_many_are_waited_for_at_once(async_client, tmp_path):
    jobs = await asyncio.gather(*(async_client.generate(VIDEO, script=QUICK) for _ in range(8)))
    done = await asyncio.gather(*(job.wait(90) for job in jobs))
    assert [job.id for job in done] == [job.id for job in jobs]
    batch = await async_client.batch(VIDEO, [{"script": QUICK}, {"script": QUICK | {"ending": "failed"}}])
    with pytest.raises(JobFailed):
        await batch.wait()
    assert [job.status for job in await batch.wait(check=False)] == ["succeeded", "failed"]
    heard = []

    async def hear(jobs) -> None:
        await asyncio.sleep(0)
        heard.append(jobs)

    batch = await (await async_client.batch(VIDEO, [{"script": QUICK}] * 2)).wait(progress=hear)
    assert [job.done for job in heard[-1]] == [True, True]
    assert len(await batch.save(tmp_path)) == 2


async def test_waiting_for_many_leaves_connections_for_others(stage, key):
    async with AsyncClient(stage.url, key, connections=2) as client:
        jobs = [await client.generate(VIDEO, script={"ending": "never"}) for _ in range(3)]
        waiting = [asyncio.create_task(job.wait(check=False)) for job in jobs]
        await asyncio.sleep(0)
        async with asyncio.timeout(LONGEST_HOLD * 0.8):  # before an answer that is held were let go
            assert await client.models()
        for job in jobs:
            await job.cancel()
        assert [job.status for job in await asyncio.gather(*waiting)] == ["canceled"] * 3


async def test_it_asks_again_resumes_and_gives_up(front, key, tmp_path):
    front.upset("POST /model/v1/generation", Lose())
    front.upset("/assets/", Cut(700))
    front.upset("/events", Cut(1500))
    async with AsyncClient(front.url, key) as client:
        job = await client.generate(VIDEO, client_ref="awaited", script={"latency": 0.3})
        assert [event.sequence async for event in job.events()][:3] == [1, 2, 3]
        await (await job.wait()).save(tmp_path)
        assert [each.id async for each in client.jobs(client_ref="awaited")] == [job.id]
        assert [each.id async for each in client.jobs(search="await")] == [job.id]
        assert front.of("/assets/")[1].headers["range"] == "bytes=700-"
        with pytest.raises(NotFoundError):
            await client.job("job_nothing")


async def test_who_stops_waiting_leaves_nothing_behind(async_client, tmp_path):
    job = await async_client.generate(VIDEO, script={"latency": 30})
    with pytest.raises(WaitTimeout):
        await job.wait(0.1)
    waiting = asyncio.create_task(job.wait())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    async for event in job.events():
        assert event.sequence == 1
        break
    assert (await job.cancel()).status in ("canceling", "canceled")
    done = await (await async_client.generate(VIDEO, script=QUICK)).wait()
    saving = asyncio.create_task(done.save(tmp_path / "boat.mp4"))
    while not list(tmp_path.iterdir()) and not saving.done():  # noqa: ASYNC110  a folder sends no events
        await asyncio.sleep(0)
    saving.cancel()
    await asyncio.wait([saving])
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".part")] == []


async def test_the_rest_is_there_too(async_client, png):
    file = await async_client.upload(png)
    assert await async_client.file(file.file_token) == file
    await async_client.delete_file(file.file_token)
    assert (await async_client.model(VIDEO)).id in [model.id for model in await async_client.models()]
    assert (await async_client.usage()).currency == "USD"
    await async_client.generate(VIDEO, script=QUICK)
    assert "job.queued" in [event.type async for event in async_client.events()]
    hook = await async_client.webhooks.create("https://example.com/")
    assert [each.id async for each in async_client.webhooks.list()] == [hook.id]
    await async_client.webhooks.delete(hook.id)

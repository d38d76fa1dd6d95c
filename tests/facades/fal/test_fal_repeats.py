"""Repeats of runs whose connection was cut: clients send them again, up to ten times, and say nothing of it."""

import asyncio
from typing import Any

import httpx
import pytest
from conftest import Server
from openai_media import end_orders, jobs_of

from penstock.web.facades import holding
from penstock.web.facades.fal import ordering

PATH = "/fal/run/penstock/sim_text_to_video"
LONG: Any = {"prompt": "a boat", "script": {"latency": 3600}}


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take equal requests for repetitions only if an answer was lost, but from the first moment on."""
    monkeypatch.setattr(holding, "PARALLEL_SECONDS", 0.0)
    monkeypatch.setattr(ordering, "EQUAL_SECONDS", 0.0)
    monkeypatch.setattr(ordering, "FRESH_SECONDS", 0.0)


def begin(server: Server) -> asyncio.Task[httpx.Response]:
    return asyncio.create_task(server.client.post(PATH, json=LONG))


async def until_held(server: Server, number: int) -> dict[str, Any]:
    """The newest job, once there are so many and a connection is held for it."""
    while True:
        jobs = await jobs_of(server)
        if len(jobs) == number and server.gateway.database.signals.is_heard(f"held:{jobs[0]['id']}"):
            return jobs[0]
        await asyncio.sleep(0.01)


async def test_a_run_that_was_cut_long_ago_is_found(server: Server) -> None:
    first = begin(server)
    job = await until_held(server, 1)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    while server.gateway.database.signals.is_heard(f"held:{job['id']}"):  # noqa: ASYNC110  nobody rings for it
        await asyncio.sleep(0.01)

    again = begin(server)
    await until_held(server, 1)
    await end_orders(server)
    response = await again

    assert response.headers["x-fal-request-id"] == job["id"]
    assert response.json()["video"]["url"]


async def test_runs_at_once_are_several(server: Server) -> None:
    first = begin(server)
    await until_held(server, 1)
    second = begin(server)
    await until_held(server, 2)
    await end_orders(server)

    ids = {response.headers["x-fal-request-id"] for response in await asyncio.gather(first, second)}
    assert len(ids) == 2


async def test_a_request_of_the_queue_is_no_run(server: Server) -> None:
    queued = await server.client.post("/fal/queue/penstock/sim_text_to_video", json=LONG)
    run = begin(server)
    job = await until_held(server, 2)
    await end_orders(server)

    assert (await run).headers["x-fal-request-id"] == job["id"] != queued.json()["request_id"]

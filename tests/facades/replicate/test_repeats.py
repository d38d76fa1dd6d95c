"""Repeats of held predictions: a client repeats an order whose connection was cut, and says nothing of it."""

import asyncio
from typing import Any

import httpx
import pytest
from conftest import Server
from openai_media import end_orders, jobs_of

from penstock.web.facades import holding

PATH = "/replicate/v1/models/penstock/sim_text_to_video/predictions"
LONG: Any = {"input": {"prompt": "a boat", "script": {"latency": 3600}}}
WAIT = {"prefer": "wait=30"}


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take equal requests for repetitions from the first moment on."""
    monkeypatch.setattr(holding, "PARALLEL_SECONDS", 0.0)


def begin(server: Server, headers: Any = WAIT, body: Any = LONG) -> asyncio.Task[httpx.Response]:
    return asyncio.create_task(server.client.post(PATH, json=body, headers=headers))


async def until_held(server: Server, number: int) -> dict[str, Any]:
    """The newest job, once there are so many and a connection is held for it."""
    while True:
        jobs = await jobs_of(server)
        if len(jobs) == number and server.gateway.database.signals.is_heard(f"held:{jobs[0]['id']}"):
            return jobs[0]
        await asyncio.sleep(0.01)


async def cut(server: Server, task: asyncio.Task[httpx.Response], job: dict[str, Any]) -> None:
    """Close the connection of a held request."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    while server.gateway.database.signals.is_heard(f"held:{job['id']}"):  # noqa: ASYNC110  nobody rings for it
        await asyncio.sleep(0.01)


async def test_the_repetition_of_a_cut_order_finds_its_prediction(server: Server) -> None:
    first = begin(server)
    job = await until_held(server, 1)
    await cut(server, first, job)

    again = begin(server)
    await until_held(server, 1)
    await end_orders(server)
    response = await again

    assert (response.json()["id"], response.json()["status"]) == (job["id"], "succeeded")
    assert response.headers["duplicate-suppressed"] == "true"


async def test_equal_orders_at_once_are_two(server: Server) -> None:
    first = begin(server)
    await until_held(server, 1)
    second = begin(server)
    await until_held(server, 2)
    await end_orders(server)

    assert len({response.json()["id"] for response in await asyncio.gather(first, second)}) == 2


@pytest.mark.parametrize("headers", [{}, {"prefer": "wait=1"}])
async def test_an_order_that_was_answered_is_not_repeated(server: Server, headers: Any) -> None:
    first = await begin(server, headers)
    assert first.json()["status"] == "starting"

    second = await begin(server, headers)

    assert second.json()["id"] != first.json()["id"]


async def test_another_waiting_time_is_another_order(server: Server) -> None:
    first = begin(server)
    await cut(server, first, await until_held(server, 1))

    second = await begin(server, {})

    assert len(await jobs_of(server)) == 2
    assert second.status_code == 201

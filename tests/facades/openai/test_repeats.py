"""A held request that is cut, or not answered in time: its repetition finds the jobs, and nothing is paid twice."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from conftest import Server, Start
from openai_media import IMAGE, connect, draw, jobs_of, script

from penstock.web.facades import holding

PATH = "/v1/images/generations"
LONG: dict[str, Any] = {"model": IMAGE, "prompt": "a fox", **script(latency=3600)}
MARKED = {"x-stainless-retry-count": "1"}


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take equal requests for repetitions from the first moment on, as clients wait a second before they repeat one."""
    monkeypatch.setattr(holding, "PARALLEL_SECONDS", 0.0)


@asynccontextmanager
async def held(server: Server, **body: Any) -> AsyncGenerator[asyncio.Task[httpx.Response]]:
    """Send a request, and go on once its connection is held for one more job. At the end, the connection is closed."""
    before = len(await jobs_of(server))
    task = asyncio.create_task(server.client.post(PATH, json={**LONG, **body}))
    while True:
        jobs = await jobs_of(server)
        if len(jobs) > before and server.gateway.database.signals.is_heard(f"held:{jobs[0]['id']}"):
            break
        await asyncio.sleep(0.01)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(server: Server, job_id: str, *, is_held: bool) -> None:
    """Wait until a connection is held for a job, or none."""
    while True:
        if server.gateway.database.signals.is_heard(f"held:{job_id}") is is_held:
            return
        await asyncio.sleep(0.01)


async def test_a_retry_of_the_client_finds_the_job(server: Server) -> None:
    async with held(server):
        (job,) = await jobs_of(server)
        retry = asyncio.create_task(server.client.post(PATH, json=LONG, headers=MARKED))
        server.age_orders()

        response = await retry

    assert response.status_code == 200, response.text
    assert response.headers["duplicate-suppressed"] == "true"
    assert response.headers["x-penstock-job"] == job["id"]
    assert len(await jobs_of(server)) == 1


async def test_an_idempotency_key_finds_the_job(server: Server) -> None:
    headers = {"idempotency-key": "one"}
    body = {**LONG, **script()}
    first = await server.client.post(PATH, json=body, headers=headers)

    second = await server.client.post(PATH, json=body, headers=headers)
    other = await server.client.post(PATH, json={**body, "prompt": "a bear"}, headers=headers)

    assert second.headers["idempotency-replayed"] == "true"
    assert second.content == first.content
    assert other.status_code == 422


async def test_out_of_time_it_names_the_job_which_a_repetition_finds(
    server: Server, monkeypatch: pytest.MonkeyPatch, patient: None
) -> None:
    monkeypatch.setattr(holding, "HOLD_SECONDS", 0.05)
    late = await server.client.post(PATH, json=LONG)
    (job,) = await jobs_of(server)
    error = late.json()["error"]
    assert (late.status_code, error["code"], error["job_id"]) == (504, "still_running", job["id"])
    assert (error["retryable"], late.headers["x-should-retry"]) == (True, "true")
    again = await server.client.post(PATH, json=LONG)
    assert again.json()["error"]["job_id"] == job["id"]
    server.age_orders()
    await server.finish(job["id"])

    response = await server.client.post(PATH, json=LONG)

    assert response.status_code == 200, "the answer that nobody got"
    assert len(await jobs_of(server)) == 1


async def test_who_left_finds_the_job_that_goes_on(server: Server, patient: None) -> None:
    async with held(server):
        (job,) = await jobs_of(server)
    await until(server, job["id"], is_held=False)
    again = asyncio.create_task(server.client.post(PATH, json=LONG))
    await until(server, job["id"], is_held=True)
    server.age_orders()

    response = await again

    assert response.headers["x-penstock-job"] == job["id"]
    assert (await jobs_of(server))[0]["status"] == "succeeded", "leaving cancels nothing"


async def test_equal_requests_at_once_are_different_jobs(server: Server, patient: None) -> None:
    async with held(server), held(server):
        first, second = await jobs_of(server)
        assert first["id"] != second["id"]


async def test_an_equal_request_after_the_answer_is_a_new_job(server: Server, patient: None) -> None:
    body = {**LONG, **script()}
    for _ in range(2):
        assert (await server.client.post(PATH, json=body)).status_code == 200

    assert len(await jobs_of(server)) == 2


async def test_a_stop_of_the_gateway_cuts_the_wait_and_the_next_one_finds_the_job(start: Start) -> None:
    server = await start()
    async with held(server) as task:
        (job,) = await jobs_of(server)
        server.gateway.drain()
        response = await task
    assert (response.status_code, response.json()["error"]["job_id"]) == (504, job["id"])


async def test_a_form_that_is_sent_again_finds_the_job(server: Server) -> None:
    client = await connect(server)
    one: dict[str, Any] = {"model": IMAGE, "prompt": "a fox", "image": ("a.png", draw()), "extra_body": script()}
    first = await client.images.with_raw_response.edit(**one)

    second = await client.images.with_raw_response.edit(**one, extra_headers=MARKED)

    assert second.headers["x-penstock-job"] == first.headers["x-penstock-job"]
    assert len(await jobs_of(server)) == 1

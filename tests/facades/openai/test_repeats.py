"""A held request that is cut, or not answered in time: its repetition finds the jobs, and nothing is paid twice."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from conftest import Server, Start
from openai_media import IMAGE, VIDEO, connect, draw, end_orders, jobs_of, script

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
        await end_orders(server)

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
    await end_orders(server)
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
    await end_orders(server)

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


@asynccontextmanager
async def cutting(server: Server) -> AsyncGenerator[str]:
    """Relay connections to the server, and cut the first when its answer begins or its connection is held for a job."""
    cut = 0

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal cut
        there, back = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))
        copying = asyncio.ensure_future(_copy(reader, back))
        answer = asyncio.ensure_future(there.read(1))
        if not cut:
            cut += 1
            while True:
                if answer.done() or server.gateway.database.signals.is_heard(await newest(server)):
                    break
                await asyncio.sleep(0.01)
        else:
            writer.write(await answer)
            await _copy(there, writer)
        copying.cancel()
        answer.cancel()
        await asyncio.gather(copying, answer, return_exceptions=True)
        for each in (writer, back):
            each.close()

    listener = await asyncio.start_server(relay, "127.0.0.1", 0)
    async with listener:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    assert cut == 1


async def newest(server: Server) -> str:
    """Return the topic of the newest job's held connection."""
    jobs = await jobs_of(server)
    return f"held:{jobs[0]['id']}" if jobs else ""


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()


@pytest.mark.filterwarnings("ignore:The Sora API:DeprecationWarning")
@pytest.mark.parametrize("what", ["picture", "edit", "stream", "film", "film from a picture"])
async def test_openais_client_itself_finds_the_job_of_a_cut_connection(server: Server, what: str) -> None:
    async with cutting(server) as url:
        client = (await connect(server, retries=2)).with_options(base_url=f"{url}/v1")
        body: dict[str, Any] = {"prompt": "a fox", "extra_body": script(latency=1)}
        match what:
            case "picture":
                assert (await client.images.generate(model=IMAGE, **body)).data
            case "edit":
                assert (await client.images.edit(model=IMAGE, image=("a.png", draw()), **body)).data
            case "stream":
                stream = await client.images.generate(model=IMAGE, stream=True, **body)
                assert [event.type async for event in stream] == ["image_generation.completed"]
            case "film":
                assert (await client.videos.create_and_poll(model=VIDEO, **body)).status == "completed"
            case _:
                film = await client.videos.create(model=VIDEO, input_reference=("a.png", draw()), **body)
                assert (await client.videos.poll(film.id)).status == "completed"

    (job,) = await jobs_of(server)
    assert job["status"] == "succeeded"

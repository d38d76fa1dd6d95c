"""Several servers on one data folder: one runs the jobs, each serves them, and another takes over when it ends."""

import asyncio
import shutil
import sqlite3
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import MODEL, SIMULATOR, VIDEO, Server, running
from doubles.media import Plan, listening
from doubles.replicate import PICTURE, ReplicateDouble
from ports import free_port
from steps import NEVER, body_of, cancel, look, order, until

from penstock.domain.files import StoredFile
from penstock.domain.ids import new_id
from penstock.errors import StoreUnavailable
from penstock.settings.tables import load
from penstock.store.queries.files import file_rows
from penstock.store.tables import nudges

GENERATION = "/model/v1/generation"
SELDOM = '[vendors.sim]\ntype = "sim"\npoll_seconds = 3600\n'
"""A vendor that is asked so seldom that only news make a job move."""

SOON = 50.0
"""Less than any time limit, poll or heartbeat that would bring the news too."""

Join = Callable[..., AbstractAsyncContextManager[Server]]


@pytest.fixture
def news_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits looks again of its own accord, and sends heartbeats, once an hour."""
    monkeypatch.setattr("penstock.web.api.waiting.RECHECK_SECONDS", 3600)
    monkeypatch.setattr("penstock.web.api.events.HEARTBEAT_SECONDS", 3600)


@pytest.fixture
def join(tmp_path: Path, empty_store: Path, weights: Path) -> Join:
    """One more server on the same folder, for as long as a block runs."""
    folder = tmp_path / "data"
    folder.mkdir()
    shutil.copy(empty_store, folder)

    def begin(toml: str = SIMULATOR, port: int = 0) -> AbstractAsyncContextManager[Server]:
        config = tmp_path / "penstock.toml"
        config.write_text(toml)
        return running(load(config, {}, {"data": folder, "weights": weights}), port)

    return begin


@pytest.fixture
async def pair(join: Join) -> AsyncGenerator[tuple[Server, Server]]:
    """The server that runs the jobs, and one beside it."""
    async with join() as leader, join() as other:
        yield leader, other


async def who_runs(server: Server) -> str:
    return (await server.client.get("/readyz")).json()["checks"]["jobs"]


async def eventually(is_so: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(SOON):
        while True:
            if await is_so():
                return
            await asyncio.sleep(0.01)


async def take_over(server: Server) -> None:
    async def leads() -> bool:
        return await who_runs(server) == "run here"

    await eventually(leads)


async def follow(server: Server, job_id: str) -> list[str]:
    """The types of a job's events, from its stream."""
    async with server.client.stream("GET", f"/api/v1/jobs/{job_id}/events") as stream:
        return [line.removeprefix("event: ") async for line in stream.aiter_lines() if line.startswith("event: ")]


def orders(server: Server) -> dict[str, int]:
    return server.gateway.offers.vendors["sim"].upstream.counts()


# -- who does what


async def test_one_runs_the_jobs_and_both_say_so(pair):
    assert [await who_runs(server) for server in pair] == ["run here", "run by another server"]
    assert [server.gateway.upkeep.sweeps for server in pair] == [True, False]


@pytest.mark.usefixtures("news_only")
async def test_a_job_given_to_one_is_run_by_the_other_and_seen_by_both(pair):
    leader, other = pair
    job = await other.submit(script={"latency": 0.3})
    streams = asyncio.gather(follow(other, job["id"]), follow(leader, job["id"]))
    async with asyncio.timeout(SOON):  # the news come by themselves, not with a heartbeat or a time limit
        assert (await look(other.client, job["id"], wait=60))["status"] == "succeeded"
    told, same = await streams
    assert told == same
    assert (told[0], told[-1]) == ("job.queued", "job.succeeded")
    seen = [await look(server.client, job["id"]) for server in pair]
    for output in seen[1]["outputs"]:
        assert (await other.client.get(output["url"].removeprefix(other.url))).status_code == 200
    assert seen[0]["outputs"][0]["id"] == seen[1]["outputs"][0]["id"]


async def test_a_server_that_cannot_use_the_store_leaves_the_jobs_to_another(join, monkeypatch):
    async with AsyncExitStack() as leading:
        leader = await leading.enter_async_context(join())
        async with join() as unable, join() as able:
            tried = asyncio.Event()

            async def refuse(*_: Any, **__: Any) -> None:
                if unable.gateway.leadership.is_held:
                    tried.set()
                raise StoreUnavailable(retry_after=1)

            take = able.gateway.leadership.take
            monkeypatch.setattr(able.gateway.leadership, "take", lambda: tried.is_set() and take())
            monkeypatch.setattr(unable.gateway.database, "write", refuse)
            assert await who_runs(leader) == "run here"
            await leading.aclose()
            await take_over(able)
            assert (await able.generate(script={}))["status"] == "succeeded"


@pytest.mark.usefixtures("news_only")
async def test_the_feed_of_one_has_what_the_other_does(pair):
    leader, other = pair
    async with other.client.stream("GET", "/api/v1/events", headers={"accept": "text/event-stream"}) as stream:
        lines = stream.aiter_lines()
        await anext(lines)
        job = await leader.submit(script={})
        async with asyncio.timeout(SOON):
            async for line in lines:
                if job["id"] in line and "job.succeeded" in line:
                    break


@pytest.mark.usefixtures("news_only")
async def test_a_cancel_reaches_the_server_that_runs_the_job(join):
    async with join(SELDOM), join(SELDOM) as other:
        job = await order(other.client, NEVER)
        await until(other.client, job["id"], phase="generating")
        await cancel(other.client, job["id"])
        async with asyncio.timeout(SOON):
            assert (await look(other.client, job["id"], wait=60))["status"] == "canceled"


async def test_a_place_in_the_queue_is_known_where_the_jobs_are_run(join):
    one_seat = '[vendors.sim]\ntype = "sim"\nmax_concurrent = 1\n'
    async with join(one_seat) as leader, join(one_seat) as other:
        first = await order(other.client, NEVER)
        await until(other.client, first["id"], phase="generating")
        second = await order(other.client, NEVER)

        async def is_placed() -> bool:
            return (await look(leader.client, second["id"]))["queue_position"] is not None

        await eventually(is_placed)
        assert (await look(other.client, second["id"]))["queue_position"] is None


async def test_each_counts_the_open_jobs_of_both(join):
    toml = f"{SIMULATOR}[jobs]\nmax_waiting = 2\n"
    async with join(toml) as leader, join(toml) as other:
        for server in (leader, other):
            await order(server.client, NEVER)

        async def is_full(server: Server) -> bool:
            answer = await server.client.post(GENERATION, json=body_of({"script": NEVER}))
            return answer.status_code == 429 and answer.json()["error"]["code"] == "queue_full"

        await eventually(lambda: is_full(leader))
        await eventually(lambda: is_full(other))


# -- the end of the one that runs the jobs


async def test_when_it_ends_another_takes_over_from_the_rows(join):
    async with AsyncExitStack() as stack:
        other: Server | None = None
        async with join() as leader:
            other = await stack.enter_async_context(join())
            running_job = await other.submit(script={"latency": 3600, "progress": False})
            await until(leader.client, running_job["id"], phase="generating")
            key = other.client
            assert orders(leader)["orders"] == 1
        await take_over(other)
        waiting = await order(key, {}, model=VIDEO)
        other.age_orders()
        assert (await other.finish(running_job["id"]))["status"] == "succeeded"
        assert (await other.finish(waiting["id"]))["status"] == "succeeded"
        assert orders(other) == {"orders": 2, "jobs": 2, "duplicates": 0}
        assert other.gateway.upkeep.sweeps


async def test_one_that_ends_without_the_jobs_leaves_them_alone(join):
    async with join(SELDOM) as leader:
        async with join(SELDOM) as other:
            job = await order(other.client, NEVER)
            running_job = await until(other.client, job["id"], phase="generating")
        assert await who_runs(leader) == "run here"
        assert (await look(leader.client, job["id"]))["attempts"] == running_job["attempts"]
        await cancel(leader.client, job["id"])
        assert (await leader.finish(job["id"]))["status"] == "canceled"


async def test_one_that_drains_does_not_take_over(join):
    async with AsyncExitStack() as stack:
        async with join():
            draining, third = [await stack.enter_async_context(join()) for _ in range(2)]
            draining.gateway.drain()
        await take_over(third)
        assert await who_runs(draining) == "run by another server"


async def test_a_start_removes_the_half_downloads_of_dead_processes_only(join, tmp_path):
    scratch = tmp_path / "data" / "landing"
    async with join():
        [live] = [path for path in scratch.iterdir() if path.is_dir()]
        dead = scratch / "process_dead"
        dead.mkdir()
        for folder in (live, dead):
            (folder / "half").write_bytes(b"x")
        dead.with_suffix(".lock").touch()
        async with join():
            assert (live / "half").exists()
            assert not dead.exists()
    assert list(scratch.iterdir()) == []


# -- at the same moment


async def test_the_same_idempotency_key_at_both_makes_one_job(pair):
    body = body_of({"script": {"latency": 3600}})
    for number in range(10):
        headers = {"idempotency-key": f"key-{number}"}
        sent = [server.client.post(GENERATION, json=body, headers=headers) for server in (*pair, *pair)]
        answers: list[httpx.Response] = await asyncio.gather(*sent)
        made = {answer.json()["id"] for answer in answers if answer.status_code in (200, 202)}
        assert len(made) == 1
        assert {answer.status_code for answer in answers} <= {200, 202, 409}
        fresh = [answer for answer in answers if answer.is_success and "idempotency-replayed" not in answer.headers]
        assert len(fresh) == 1


async def test_many_writes_at_both_all_succeed(pair):
    async def submit(server: Server) -> str:
        return (await server.submit(script={"latency": 3600}))["id"]

    made = await asyncio.gather(*(submit(pair[number % 2]) for number in range(60)))
    assert len(set(made)) == 60


async def test_bytes_are_removed_while_nobody_can_write_a_row_for_them(server):
    """Else a row that another process writes between the two would be left without its bytes."""
    database = server.gateway.database
    file = StoredFile(new_id("file"), "account_x", "0" * 64, 3, "image/png", 30, 30, time.time(), None)
    await database.write(file_rows.add, file)
    locked: list[str] = []

    def remove_bytes(_file: StoredFile) -> None:
        other = sqlite3.connect(server.gateway.settings.data / "penstock.db", timeout=0)
        with pytest.raises(sqlite3.OperationalError) as refusal:
            other.execute("BEGIN IMMEDIATE")
        locked.append(str(refusal.value))
        other.close()

    await database.write(file_rows.remove, file, remove_bytes)
    assert locked == ["database is locked"]


async def test_bytes_that_another_row_holds_stay(pair):
    leader, other = pair
    first = StoredFile(new_id("file"), "account_x", "1" * 64, 3, "image/png", 30, 30, time.time(), None)
    second = StoredFile(new_id("file"), "account_x", "1" * 64, 3, "image/png", 30, 30, time.time(), None)
    await leader.gateway.inputs.store(first, b"abc")
    await other.gateway.inputs.store(second, b"abc")
    await leader.gateway.inputs.remove(first)
    assert await other.gateway.assets.get_file(second) == b"abc"
    await other.gateway.inputs.remove(second)
    assert not list((leader.gateway.settings.data / "assets").rglob("1" * 64))


# -- vendors' calls back


async def test_a_vendors_call_back_to_the_other_server_reaches_the_job(join):
    port = free_port()
    async with listening(ReplicateDouble()) as double:
        entry = f'[[models]]\nid = "my-model"\nkind = "image"\nvendor = "replicate"\nmodel = "{PICTURE}"\n'
        toml = f'[server]\npublic_url = "http://127.0.0.1:{port}"\n{double.settings(poll_seconds=30)}{entry}'
        double.plans.append(Plan(seconds=0))
        async with join(toml), join(toml, port) as other:
            body: dict[str, Any] = {"model": "my-model", "input": [{"params": {"prompt": "a mill"}}]}
            job = (await other.client.post(GENERATION, json=body)).json()
            await until(other.client, job["id"], phase="generating")
            (placed,) = double.orders.values()
            headers, content = double.notice(placed)
            answer = await other.client.post(placed.webhook, headers=headers, content=content)
            assert (answer.status_code, answer.json()) == (200, {"received": True})
            assert (await other.finish(job["id"], seconds=int(SOON)))["status"] == "succeeded"
            rows = await other.gateway.database.read(lambda connection: connection.execute(nudges.select()).all())
            assert [row.job_id for row in rows] == [job["id"]]


async def test_what_was_heard_long_ago_is_forgotten(server):
    gateway = server.gateway

    def add(connection: Any) -> None:
        for age in (3600, 0):
            connection.execute(nudges.insert(), {"job_id": "job_x", "created_at": time.time() - age})

    await gateway.database.write(add)
    await gateway.upkeep.sweep()
    rows = await gateway.database.read(lambda connection: connection.execute(nudges.select()).all())
    assert len(rows) == 1


async def test_outputs_that_one_deletes_are_gone_for_the_other(pair):
    leader, other = pair
    job = await other.generate(MODEL, script={})
    assert (await other.client.delete(f"/api/v1/jobs/{job['id']}")).status_code == 204
    assert (await leader.client.get(f"/api/v1/jobs/{job['id']}")).json()["error"]["code"] == "job_deleted"
    assert not list((leader.gateway.settings.data / "assets").rglob("*.glb"))

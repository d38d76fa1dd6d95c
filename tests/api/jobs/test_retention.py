"""What is removed is gone: by its caller's wish, by its time, or because a process died before it was wanted."""

import asyncio
import base64
import io
import sqlite3
import time
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import httpx
from conftest import MODEL, Server, client_of
from PIL import Image

from penstock.domain.files import StoredFile

FAILS = {"latency": 0, "ending": "failed"}
NEVER = {"ending": "never"}


def picture(colour: str = "red") -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (30, 30), colour).save(buffer, "PNG")
    return buffer.getvalue()


async def upload(server: Server, colour: str = "red") -> str:
    answer = await server.client.post("/api/v1/files", files={"file": ("a.png", picture(colour))})
    assert answer.status_code == 201
    return answer.json()["file_token"]


async def order(server: Server, *scripts: dict[str, Any], headers: dict[str, str] | None = None, **top: Any) -> Any:
    server.gateway.upkeep.sweeps = False  # what is removed here, the test removes
    body = {"model": MODEL, "input": [{"params": {"script": script}} for script in scripts], **top}
    answer = await server.client.post("/model/v1/generation", json=body, headers=headers)
    assert answer.status_code in (200, 202), answer.text
    return answer.json()


def on_disk(server: Server) -> list[str]:
    """Everything kept of callers and jobs."""
    folder = server.gateway.settings.data / "assets"
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def rows(server: Server, table: str) -> list[tuple[Any, ...]]:
    """What the store holds, seen from outside."""
    connection = sqlite3.connect(server.gateway.settings.data / "penstock.db")
    try:
        return connection.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608  a table of ours
    finally:
        connection.close()


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


async def sweep_until_removed(server: Server, count: int) -> None:
    """Sweep until so much was removed: the times are short, but they have to pass."""
    removed = 0
    async with asyncio.timeout(60):
        while removed < count:
            removed += await server.gateway.upkeep.sweep()
            await asyncio.sleep(0.01)
    assert removed == count


async def all_ways(client: httpx.AsyncClient, job_id: str) -> list[tuple[int, str]]:
    """Every way to reach a job."""
    return [
        code(await client.get(f"/api/v1/jobs/{job_id}")),
        code(await client.get(f"/model/v1/generation/{job_id}", params={"wait": 5})),
        code(await client.get(f"/api/v1/jobs/{job_id}/events")),
        code(await client.post(f"/api/v1/jobs/{job_id}/cancel")),
        code(await client.delete(f"/api/v1/jobs/{job_id}")),
    ]


# -- by the caller's wish


async def test_a_deleted_job_leaves_nothing_but_that_it_was(server):
    token = await upload(server)
    secret = "a text nobody may find again"
    params = {"file": {"file_token": token}, "script": {"latency": 0.05}}
    body = {"model": MODEL, "input": [{"params": params}], "client_ref": secret, "metadata": {"note": secret}}
    job = await server.finish((await server.client.post("/model/v1/generation", json=body)).json()["id"])
    assert job["status"] == "succeeded"
    kept = await server.generate(MODEL, script=FAILS)
    assert (await server.client.delete(f"/api/v1/files/{token}")).status_code == 204
    assert len(on_disk(server)) == 3, "the model, its preview and the job's own copy of the picture"
    deleted = await server.client.delete(f"/api/v1/jobs/{job['id']}")
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert await all_ways(server.client, job["id"]) == [(410, "job_deleted")] * 5
    async with client_of(server.url, None) as nobody:
        for output in job["outputs"]:
            assert code(await server.client.get(urlsplit(output["url"]).path)) == (410, "asset_expired")
            assert code(await nobody.get(output["url"])) == (410, "asset_expired")
    assert [path.name for path in (server.gateway.settings.data / "assets").iterdir()] == []
    assert rows(server, "files") == []
    listed = (await server.client.get("/api/v1/jobs")).json()["data"]
    assert [record["id"] for record in listed] == [kept["id"]]
    assert (await server.client.get("/api/v1/jobs", params={"client_ref": secret})).json()["data"] == []
    feed = (await server.client.get("/api/v1/events")).json()["data"]
    assert {event["data"]["id"] for event in feed} == {kept["id"]}
    assert secret not in "".join(str(rows(server, table)) for table in ("jobs", "events", "requests"))
    assert len(rows(server, "jobs")) == 2, "what it cost stays known"
    other = await server.sign_in("other")
    assert await all_ways(other, job["id"]) == [(404, "job_not_found")] * 5


async def test_an_open_job_is_canceled_before_it_is_deleted(server):
    job = await order(server, NEVER)
    path = f"/api/v1/jobs/{job['id']}"
    assert code(await server.client.delete(path)) == (409, "job_not_finished")
    assert not (await server.client.get(path)).json()["done"]
    await server.client.post(f"{path}/cancel")
    await server.finish(job["id"])
    answers = await asyncio.gather(*(server.client.delete(path) for _ in range(4)))
    assert sorted(answer.status_code for answer in answers) == [204, 410, 410, 410]


async def test_an_upload_outlives_a_job_that_was_made_with_it(server):
    token = await upload(server)
    job = await server.finish((await server.submit(MODEL, script=FAILS, file={"file_token": token}))["id"])
    assert (await server.client.delete(f"/api/v1/jobs/{job['id']}")).status_code == 204
    assert len(on_disk(server)) == 1
    again = await server.generate(MODEL, script=FAILS, file={"file_token": token})
    assert again["input"]["file"]["sha256"] == job["input"]["file"]["sha256"]


async def test_a_job_s_own_copy_can_be_named_as_long_as_the_job_is_kept(server):
    uri = f"data:image/png;base64,{base64.b64encode(picture()).decode()}"
    first = await server.generate(MODEL, script=FAILS, file={"url": uri})
    copy = {"file_token": first["input"]["file"]["copy_token"]}
    second = await server.generate(MODEL, script=FAILS, file=copy)
    assert second["input"]["file"]["sha256"] == first["input"]["file"]["sha256"]
    assert code(await server.client.delete(f"/api/v1/files/{copy['file_token']}")) == (404, "file_not_found")
    other = await server.sign_in("other")
    body = {"model": MODEL, "input": [{"params": {"file": copy}}]}
    assert code(await other.post("/model/v1/generation", json=body)) == (404, "file_not_found")
    assert (await server.client.delete(f"/api/v1/jobs/{first['id']}")).status_code == 204
    assert code(await server.client.post("/model/v1/generation", json=body)) == (404, "file_not_found")
    assert len(on_disk(server)) == 1, "the second has a copy of its own"


async def test_an_idempotency_key_is_free_once_all_its_jobs_are_gone(server):
    key = {"idempotency-key": "batch-1"}
    batch = await order(server, FAILS, FAILS, headers=key)
    first, second = [job["id"] for job in batch["jobs"]]
    await server.finish(first)
    await server.finish(second)
    await server.client.delete(f"/api/v1/jobs/{first}")
    again = await order(server, FAILS, FAILS, headers=key)
    assert [job["id"] for job in again["jobs"]] == [second]
    await server.client.delete(f"/api/v1/jobs/{second}")
    assert rows(server, "requests") == []
    new = await order(server, FAILS, headers=key)
    assert new["id"] not in (first, second)
    await server.finish(new["id"])
    await server.client.delete(f"/api/v1/jobs/{new['id']}")
    assert (await order(server, FAILS, headers=key))["id"] != new["id"]


# -- by time


async def test_a_job_past_its_retention_is_removed_and_one_kept_for_ever_is_not(server):
    server.gateway.upkeep.sweeps = False  # only the test sweeps
    short = await order(server, {"latency": 0}, retention=0.05)
    ever = await order(server, FAILS, retention="forever")
    usual = await order(server, FAILS)
    done = await server.finish(short["id"])
    assert datetime.fromisoformat(done["expires_at"]) - datetime.fromisoformat(done["finished_at"]) == timedelta(
        milliseconds=50
    )
    assert (await server.finish(ever["id"]))["expires_at"] is None
    await server.finish(usual["id"])
    await sweep_until_removed(server, 1)
    assert await all_ways(server.client, short["id"]) == [(410, "job_expired")] * 5
    path = urlsplit(done["outputs"][0]["url"]).path
    assert code(await server.client.get(path)) == (410, "asset_expired")
    assert on_disk(server) == []
    listed = (await server.client.get("/api/v1/jobs")).json()["data"]
    assert [record["id"] for record in listed] == [usual["id"], ever["id"]]
    feed = (await server.client.get("/api/v1/events")).json()["data"]
    assert short["id"] not in {event["data"]["id"] for event in feed}
    assert await server.gateway.upkeep.sweep() == 0


async def test_past_its_retention_a_job_is_gone_everywhere_before_it_is_removed(server):
    key = {"idempotency-key": "short"}
    done = await server.finish((await order(server, {"latency": 0}, headers=key, retention=1))["id"])
    async with asyncio.timeout(60):
        while (await server.client.get(f"/api/v1/jobs/{done['id']}")).status_code != 410:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    path = urlsplit(done["outputs"][0]["url"]).path
    assert code(await server.client.get(path)) == (410, "asset_expired")
    assert (await server.client.get("/api/v1/jobs")).json()["data"] == []
    again = await order(server, {"latency": 0}, headers=key, retention=1)
    assert again["id"] != done["id"]
    assert (await server.finish(again["id"]))["status"] == "succeeded"


async def test_the_operators_retention_holds_for_who_says_nothing(start):
    server = await start(overrides={"jobs.retention": 0.05})
    server.gateway.upkeep.sweeps = False  # only the test sweeps
    job = await order(server, FAILS)
    kept = await order(server, FAILS, retention=600)
    open_job = await order(server, NEVER)
    await server.finish(job["id"])
    await server.finish(kept["id"])
    await sweep_until_removed(server, 1)
    assert (await all_ways(server.client, job["id"]))[0] == (410, "job_expired")
    assert (await server.client.get(f"/api/v1/jobs/{kept['id']}")).status_code == 200
    assert (await server.client.get(f"/api/v1/jobs/{open_job['id']}")).status_code == 200


async def test_sweeping_and_deleting_at_once_do_not_disturb_each_other(server):
    batch = await order(server, *[FAILS] * 16, retention=0.01)
    jobs = [job["id"] for job in batch["jobs"]]
    for job_id in jobs:
        answer = await server.client.get(f"/api/v1/jobs/{job_id}", params={"wait": 30})
        assert answer.status_code in (200, 410), answer.text
    answers = await asyncio.gather(
        server.gateway.upkeep.sweep(),
        *(server.client.delete(f"/api/v1/jobs/{job_id}") for job_id in jobs),
        server.gateway.upkeep.sweep(),
    )
    assert {answer.status_code for answer in answers[1:-1]} <= {204, 410}
    assert (await server.client.get("/api/v1/jobs")).json()["data"] == []


async def test_uploads_end_with_their_time_but_not_under_a_job(start):
    server = await start(overrides={"jobs.file_retention": 1})
    server.gateway.upkeep.sweeps = False  # only the test sweeps
    used, unused = await upload(server), await upload(server, "blue")
    job = await server.submit(MODEL, script=NEVER, file={"file_token": used})
    async with asyncio.timeout(60):
        while (answer := await server.client.get(f"/api/v1/files/{unused}")).status_code == 200:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert code(answer) == (404, "file_not_found")
    await sweep_until_removed(server, 2)
    assert on_disk(server) == [f"files/{rows(server, 'files')[0][1]}/{job['input']['file']['sha256']}"]
    late = {"model": MODEL, "input": [{"params": {"file": {"file_token": used}}}]}
    assert code(await server.client.post("/model/v1/generation", json=late)) == (404, "file_not_found")
    await server.client.post(f"/api/v1/jobs/{job['id']}/cancel")
    await server.finish(job["id"])
    await server.client.delete(f"/api/v1/jobs/{job['id']}")
    assert on_disk(server) == []


async def test_uploads_may_stay_for_ever(start):
    server = await start(overrides={"jobs.file_retention": "forever"})
    token = await upload(server)
    assert (await server.client.get(f"/api/v1/files/{token}")).json()["expires_at"] is None
    assert await server.gateway.upkeep.sweep() == 0


# -- left over by a process that died


def snapshot(job_id: str, age: float) -> StoredFile:
    sha256 = job_id[-1] * 64
    moment = time.time() - age
    return StoredFile("file_" + job_id, "account_x", sha256, 3, "image/png", 30, 30, moment, None, job_id)


async def test_snapshots_of_jobs_that_never_came_to_be_are_removed(server):
    old, young = snapshot("job_a", age=7200), snapshot("job_b", age=60)
    for file in (old, young):
        await server.gateway.inputs.store(file, b"abc")
    async with asyncio.timeout(60):
        while len(on_disk(server)) == 2:  # the server's own first sweep may be at it, too
            await server.gateway.upkeep.sweep()
    assert on_disk(server) == [f"files/account_x/{young.sha256}"]

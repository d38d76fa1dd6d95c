"""A request that is sent again makes no second job: by its Idempotency-Key, or recognised as a client's retry."""

import asyncio
import base64
import io
import json
import sqlite3
from typing import Any

import httpx
from conftest import MODEL, VIDEO, Server, running
from PIL import Image

from penstock.settings.tables import load

GENERATION = "/model/v1/generation"
IDLE = '[vendors.sim]\ntype = "sim"\nscript = {ending = "never"}\n'
FAILS = {"script": {"latency": 0, "ending": "failed"}}
RETRY = {"x-stainless-retry-count": "1"}


def body_of(*params: dict[str, Any], model: str = VIDEO, **top: Any) -> dict[str, Any]:
    return {"model": model, "input": [{"params": each} for each in params or ({},)], **top}


async def post(client: httpx.AsyncClient, body: Any, key: str | None = None, **headers: str) -> httpx.Response:
    if key is not None:
        headers["idempotency-key"] = key
    return await client.post(GENERATION, json=body, headers=headers)


def accepted(response: httpx.Response) -> str:
    """The id of a new job."""
    assert response.status_code == 202, response.text
    assert not {"idempotency-replayed", "duplicate-suppressed"} & set(response.headers)
    return response.json()["id"]


def replayed(response: httpx.Response, header: str = "idempotency-replayed") -> str:
    """The id of a job that an earlier request made."""
    assert response.status_code in (200, 202), response.text
    assert response.headers[header] == "true"
    return response.json()["id"]


def refused(response: httpx.Response, status: int, code: str) -> None:
    assert (response.status_code, response.json()["error"]["code"]) == (status, code), response.text
    assert response.headers["x-should-retry"] == str(response.json()["error"]["retryable"]).lower()


async def list_ids(client: httpx.AsyncClient) -> list[str]:
    return [job["id"] for job in (await client.get("/api/v1/jobs", params={"limit": 100})).json()["data"]]


async def delete(server: Server, job_id: str) -> None:
    await server.finish(job_id)
    assert (await server.client.delete(f"/api/v1/jobs/{job_id}")).status_code == 204


def picture() -> bytes:
    buffer = io.BytesIO()
    Image.effect_noise((600, 600), 80).save(buffer, "png")
    return buffer.getvalue()


# -- the same key


async def test_the_same_key_and_body_is_the_same_job(start):
    server = await start(IDLE)
    body = body_of({"prompt": "a", "durationSeconds": 2}, client_ref="x", metadata={"a": "b"})
    first = await post(server.client, body, "k")
    again = await post(server.client, body, "k")
    assert replayed(again) == accepted(first)
    assert again.json()["request_id"] == first.json()["request_id"] == first.headers["x-request-id"]
    assert await list_ids(server.client) == [first.json()["id"]]


async def test_how_the_json_is_spelled_does_not_matter(start):
    server = await start(IDLE)
    body = body_of({"prompt": "é😀", "durationSeconds": 2}, client_ref="x")
    first = accepted(await post(server.client, body, "k"))
    backwards = {name: body[name] for name in reversed(body)} | {
        "input": [{"params": {"durationSeconds": 2, "prompt": "é😀"}}]
    }
    for text in (
        json.dumps(backwards),
        json.dumps(body, indent=4),
        json.dumps(body, ensure_ascii=False),
        " \r\n\t" + json.dumps(body, separators=(",", ":")) + "\n",
    ):
        headers = {"idempotency-key": "k", "content-type": "application/json"}
        assert replayed(await server.client.post(GENERATION, content=text.encode(), headers=headers)) == first
    other_path = await server.client.post(f"/api/v1/{VIDEO}/generate", json=body, headers={"idempotency-key": "k"})
    assert replayed(other_path) == first


async def test_another_body_under_the_same_key_is_refused(start):
    server = await start(IDLE)
    accepted(await post(server.client, body_of({"prompt": "a"}), "k"))
    for other in (
        body_of({"prompt": "b"}),
        body_of({"prompt": "a"}, client_ref="x"),
        body_of({"prompt": "a"}, {"prompt": "a"}),
        body_of(model=MODEL),
    ):
        refused(await post(server.client, other, "k"), 422, "idempotency_key_mismatch")
    assert len(await list_ids(server.client)) == 1


async def test_other_keys_and_no_key_make_new_jobs(start):
    server = await start(IDLE)
    made = {accepted(await post(server.client, body_of(), key)) for key in ("k", "K", "k2", None, None)}
    assert len(made) == 5


async def test_a_finished_job_is_replayed_as_it_is_now(server):
    first = accepted(await post(server.client, body_of(FAILS), "k"))
    await server.finish(first)
    again = await post(server.client, body_of(FAILS), "k")
    assert (again.status_code, replayed(again), again.json()["status"]) == (200, first, "failed")
    waited = await post(server.client, body_of(FAILS), "k", prefer="wait=5")
    assert (waited.status_code, replayed(waited)) == (200, first)


async def test_fifty_requests_at_once_make_one_job(server):
    uri = f"data:image/png;base64,{base64.b64encode(picture()).decode()}"
    body = body_of({"file": {"url": uri}, "script": {"ending": "never"}}, model=MODEL)
    responses = await asyncio.gather(*(post(server.client, body, "k") for _ in range(50)))
    busy = [response for response in responses if response.status_code == 409]
    done = [response for response in responses if response.status_code != 409]
    assert busy, "none met another in flight"
    for response in busy:
        refused(response, 409, "idempotency_in_progress")
        assert int(response.headers["retry-after"]) >= 1
    assert sum("idempotency-replayed" not in response.headers for response in done) == 1
    assert {response.json()["id"] for response in done} == set(await list_ids(server.client))
    assert len(await list_ids(server.client)) == 1
    assert replayed(await post(server.client, body, "k")) == done[0].json()["id"]


async def test_a_refused_request_does_not_use_its_key_up(start):
    server = await start(IDLE, {"jobs.max_waiting": 3})
    refused(await post(server.client, body_of({"prompt": 5}), "k"), 400, "invalid_params")
    refused(await post(server.client, body_of(model="nope"), "k"), 404, "model_not_found")
    refused(await post(server.client, body_of(*[{}] * 4), "k"), 429, "queue_full")
    refused(await server.client.post(GENERATION, content=b"{", headers={"idempotency-key": "k"}), 400, "invalid_json")
    assert (await post(server.client, body_of(dry_run=True), "k")).status_code == 200
    accepted(await post(server.client, body_of({"prompt": "good"}), "k"))


async def test_a_key_is_of_its_account(start):
    server = await start(IDLE)
    colleague, stranger = await server.sign_in(), await server.sign_in("other")
    first = accepted(await post(server.client, body_of(), "k"))
    assert replayed(await post(colleague, body_of(), "k")) == first
    theirs = accepted(await post(stranger, body_of({"prompt": "other"}), "k"))
    assert await list_ids(stranger) == [theirs]
    assert await list_ids(server.client) == [first]


async def test_a_key_is_visible_ascii(server):
    for key in (b"", b"a b", b"a\tb", b"x" * 256, "é".encode(), "é".encode("latin-1")):
        headers: Any = {"idempotency-key": key}
        response = await server.client.post(GENERATION, json=body_of(), headers=headers)
        refused(response, 400, "invalid_params")
        assert response.json()["error"]["param"] == "Idempotency-Key"
    for key in ("x", "~" * 255, "!\"#$%&'()*+,-./:;<=>?@[]^_`{|}"):
        accepted(await post(server.client, body_of({"script": {"ending": "never"}}), key))


# -- as long as the job lives


async def test_deleting_the_job_frees_its_key(server):
    first = accepted(await post(server.client, body_of(FAILS), "k"))
    await delete(server, first)
    other = accepted(await post(server.client, body_of(FAILS, client_ref="other"), "k"))
    assert other != first


async def test_a_batch_is_replayed_as_a_whole(start):
    server = await start(IDLE)
    body = body_of({"prompt": "a"}, {"prompt": "b"}, {"prompt": "c"})
    first, again = await post(server.client, body, "k"), await post(server.client, body, "k")
    assert replayed(again) == accepted(first)
    assert again.json()["object"] == "generation.batch"
    assert [job["id"] for job in again.json()["jobs"]] == [job["id"] for job in first.json()["jobs"]]
    assert len(await list_ids(server.client)) == 3


async def test_a_batch_lives_as_long_as_any_of_its_jobs(server):
    body = body_of(FAILS, FAILS)
    first = (await post(server.client, body, "k")).json()
    one, other = (job["id"] for job in first["jobs"])
    await delete(server, one)
    again = await post(server.client, body, "k")
    assert replayed(again) == first["id"]
    assert [job["id"] for job in again.json()["jobs"]] == [other]
    refused(await post(server.client, body_of(FAILS), "k"), 422, "idempotency_key_mismatch")
    await delete(server, other)
    fresh = accepted(await post(server.client, body_of(FAILS), "k"))
    assert replayed(await post(server.client, body_of(FAILS), "k")) == fresh


async def test_a_replay_needs_its_upload_no_longer(start):
    server = await start(IDLE)
    upload = await server.client.post("/api/v1/files", files={"file": ("a.png", picture())})
    token = upload.json()["file_token"]
    body = body_of({"file": {"file_token": token}}, model=MODEL)
    first = accepted(await post(server.client, body, "k"))
    assert (await server.client.delete(f"/api/v1/files/{token}")).status_code == 204
    assert replayed(await post(server.client, body, "k")) == first
    assert replayed(await post(server.client, body, **RETRY), "duplicate-suppressed") == first
    refused(await post(server.client, body, "k2"), 404, "file_not_found")


async def test_keys_outlive_the_process(tmp_path):
    settings = load(None, {}, {"data": tmp_path})
    body = body_of({"script": {"ending": "never"}})
    async with running(settings) as server:
        first = accepted(await post(server.client, body, "k"))
        authorization = server.client.headers["authorization"]
    async with running(settings) as server:
        assert replayed(await post(server.client, body, "k")) == first
        retry = await post(server.client, body, authorization=authorization, **RETRY)
        assert replayed(retry, "duplicate-suppressed") == first


async def test_nothing_is_accepted_while_shutting_down(server):
    server.gateway.drain()
    response = await post(server.client, body_of(), "k")
    refused(response, 503, "overloaded")
    assert int(response.headers["retry-after"]) >= 1


# -- a client's retry without a key


async def test_a_retry_of_the_same_body_is_recognised(start):
    server = await start(IDLE)
    first = accepted(await post(server.client, body_of({"prompt": "a"})))
    for count in ("1", "2", "99"):
        response = await post(server.client, body_of({"prompt": "a"}), **{"x-stainless-retry-count": count})
        assert replayed(response, "duplicate-suppressed") == first
        assert "idempotency-replayed" not in response.headers
    assert await list_ids(server.client) == [first]


async def test_what_is_no_retry_makes_a_new_job(start):
    server = await start(IDLE)
    colleague = await server.sign_in()
    made = [accepted(await post(server.client, body_of({"prompt": "never sent before"}), **RETRY))]
    body = body_of({"prompt": "a"})
    made.append(accepted(await post(server.client, body)))
    for count in ("0", "", "x", "-1", "1.5", "999999999"):
        response = await post(server.client, body, **{"x-stainless-retry-count": count})
        made.append(accepted(response))
    made.append(accepted(await post(colleague, body, **RETRY)))
    made.append(accepted(await post(server.client, body_of({"prompt": "b"}), **RETRY)))
    made.append(accepted(await post(server.client, body, "its-own-key", **RETRY)))
    assert sorted(made) == sorted(await list_ids(server.client))


async def test_a_retry_is_recognised_for_ten_minutes(start):
    server = await start(IDLE)
    first = accepted(await post(server.client, body_of()))
    set_back(server, 590)
    assert replayed(await post(server.client, body_of(), **RETRY), "duplicate-suppressed") == first
    set_back(server, 20)
    accepted(await post(server.client, body_of(), **RETRY))


def set_back(server: Server, seconds: int) -> None:
    """Let every request have been accepted that much earlier."""
    store = sqlite3.connect(server.gateway.settings.data / "penstock.db")
    with store:
        store.execute("UPDATE requests SET created_at = created_at - ?", (seconds,))
    store.close()


async def test_fifty_retries_at_once_make_one_job(start):
    server = await start(IDLE)
    responses = await asyncio.gather(*(post(server.client, body_of(), **RETRY) for _ in range(50)))
    assert len({response.json()["id"] for response in responses}) == len(await list_ids(server.client)) == 1
    assert sum("duplicate-suppressed" not in response.headers for response in responses) == 1


async def test_a_retried_batch_is_recognised(start):
    server = await start(IDLE)
    body = body_of({"prompt": "a"}, {"prompt": "b"})
    first = await post(server.client, body)
    again = await post(server.client, body, **RETRY)
    assert replayed(again, "duplicate-suppressed") == accepted(first)
    assert len(await list_ids(server.client)) == 2


async def test_a_retry_of_a_deleted_job_makes_a_new_one(server):
    first = accepted(await post(server.client, body_of(FAILS)))
    await delete(server, first)
    assert accepted(await post(server.client, body_of(FAILS), **RETRY)) != first

"""Exact reuse: an equal request gets the kept result of its own account, and is not charged; all others make a job."""

import asyncio
import base64
from typing import Any

import httpx
import pytest
import small_media
from conftest import MODEL, VIDEO, Server
from sqlalchemy import Connection, select
from steps import FAILS, GENERATION, body_of, count_jobs, refused
from test_budgets import PRICED, payer_of, standing
from test_files import LOOPBACK, Pictures, picture, serving
from test_live_settings import reload

from penstock.offers.offer import Offer
from penstock.store.queries.billing.ledger_audit import check
from penstock.store.tables import results

QUICK = {"latency": 0.02}
TWO = '[vendors.{0}]\ntype = "sim"\n[[models]]\nid = "{1}"\nroutes = [{{vendor = "{0}", model = "{2}"}}]\n'


async def ask(client: httpx.AsyncClient, *, model: str = MODEL, headers: Any = None, top: Any = None, **params: Any):
    body = body_of({"script": QUICK, **params}, model=model, **{"reuse": "exact", **(top or {})})
    return await client.post(GENERATION, json=body, headers=headers)


def reused(answer: httpx.Response, job_id: str) -> dict[str, Any]:
    assert (answer.status_code, answer.headers.get("reused")) == (200, "true"), answer.text
    record = answer.json()
    assert (record["id"], record["status"], record["done"]) == (job_id, "succeeded", True)
    return record


def made(answer: httpx.Response) -> str:
    """The id of a new job."""
    assert answer.status_code == 202, answer.text
    assert "reused" not in answer.headers
    return answer.json()["id"]


async def finish_new(server: Server, answer: httpx.Response, status: str = "succeeded") -> str:
    job = await server.finish(made(answer))
    assert job["status"] == status
    return job["id"]


def marks(connection: Connection) -> list[str]:
    return list(connection.execute(select(results.c.job_id)).scalars())


def inline(data: bytes) -> dict[str, str]:
    return {"data": base64.b64encode(data).decode()}


# -- found


def without_links(record: dict[str, Any]) -> dict[str, Any]:
    """Leave out the links, which are signed anew each time that a record is read."""
    outputs = [{name: value for name, value in each.items() if "url" not in name} for each in record["outputs"]]
    return record | {"outputs": outputs}


async def test_an_equal_request_gets_the_result_that_there_is(server):
    plain = body_of({"script": QUICK, "face_limit": 48}, model=MODEL)
    first = await server.finish((await server.client.post(GENERATION, json=plain)).json()["id"])
    answer = await ask(server.client, face_limit=48.0)
    record = reused(answer, first["id"])
    assert [each["sha256"] for each in record["outputs"]] == [each["sha256"] for each in first["outputs"]]
    assert (await server.client.get(record["outputs"][0]["url"])).status_code == 200
    assert await count_jobs(server) == 1
    events = (await server.client.get(f"/api/v1/jobs/{first['id']}")).json()
    assert without_links(events) == without_links(first)
    assert made(await server.client.post(GENERATION, json=plain)) != first["id"], "only who asks for it"


async def test_without_a_seed_any_fits_and_with_one_only_that(server):
    first = await finish_new(server, await ask(server.client, face_limit=48, model_seed=7))
    reused(await ask(server.client, face_limit=48), first)
    reused(await ask(server.client, face_limit=48, model_seed=7), first)
    second = await finish_new(server, await ask(server.client, face_limit=48, model_seed=8))
    reused(await ask(server.client, face_limit=48, model_seed=8), second)
    reused(await ask(server.client, face_limit=48), first)
    drawn = await server.finish(made(await ask(server.client, face_limit=50)))
    reused(await ask(server.client, face_limit=50, model_seed=drawn["seed"]), drawn["id"])


async def test_equal_bytes_are_equal_however_they_come(server):
    first = await finish_new(server, await ask(server.client, model=VIDEO, input_references=[inline(picture())]))
    upload = await server.client.post("/api/v1/files", files={"file": ("a.png", picture())})
    for again in (inline(picture()), {"file_token": upload.json()["file_token"]}):
        reused(await ask(server.client, model=VIDEO, input_references=again), first)
    other = inline(small_media.picture(colour="blue"))
    for params in (
        {"input_references": [other]},
        {"input_references": [inline(picture()), other]},
        {"frame_images": [inline(picture())]},
    ):
        made(await ask(server.client, model=VIDEO, **params))


async def test_the_bytes_at_a_url_are_not_known_beforehand(start):
    server = await start('[vendors.sim]\ntype = "sim"\n' + LOOPBACK)
    async with serving(Pictures()) as host:
        url = {"url": f"{host}/cat"}
        first = await finish_new(server, await ask(server.client, file=url))
        made(await ask(server.client, file=url))
        reused(await ask(server.client, file=inline(picture())), first)


# -- not found


async def test_other_params_models_and_accounts_find_nothing(server):
    await finish_new(server, await ask(server.client, face_limit=48))
    made(await ask(server.client, face_limit=49))
    made(await ask(server.client, face_limit=48, texture=False))
    made(await ask(server.client, model=VIDEO))
    stranger = await server.sign_in("mill")
    made(await ask(stranger, face_limit=48))
    own = await server.sign_in()
    assert (await ask(own, face_limit=48)).headers["reused"] == "true", "keys of one account share results"


async def test_what_did_not_succeed_is_not_reused(server):
    failing = {"script": {**QUICK, **FAILS}}
    await finish_new(server, await ask(server.client, **failing), "failed")
    await finish_new(server, await ask(server.client, **failing), "failed")
    endless = {"script": {"ending": "never"}}
    first = made(await ask(server.client, **endless))
    assert made(await ask(server.client, **endless)) != first, "a job that is not done is no result"


async def test_a_deleted_result_is_not_found_and_the_next_one_is(server):
    first = await finish_new(server, await ask(server.client))
    body = body_of({"script": QUICK}, model=MODEL)
    second = await server.finish((await server.client.post(GENERATION, json=body)).json()["id"])
    reused(await ask(server.client), first)
    assert (await server.client.delete(f"/api/v1/jobs/{first}")).status_code == 204
    reused(await ask(server.client), second["id"])
    assert (await server.client.delete(f"/api/v1/jobs/{second['id']}")).status_code == 204
    assert await server.gateway.database.read(marks) == [], "a digest may confirm a guess of what was deleted"
    made(await ask(server.client))


async def test_an_expired_result_is_not_found_before_it_is_swept(server):
    server.gateway.upkeep.sweeps = False
    first = await finish_new(server, await ask(server.client, top={"retention": 0.001}))
    async with asyncio.timeout(60):
        while (await server.client.get(f"/api/v1/jobs/{first}")).status_code == 200:
            pass
    made(await ask(server.client))


async def test_a_result_of_a_route_that_is_gone_is_not_found(start):
    server = await start(TWO.format("first", MODEL, "one"))
    first = await finish_new(server, await ask(server.client))
    reused(await ask(server.client), first)
    for vendor, model in (("first", "two"), ("second", "one")):
        await reload(server, TWO.format(vendor, MODEL, model))
        await finish_new(server, await ask(server.client))
    await reload(server, TWO.format("first", MODEL, "one"))
    reused(await ask(server.client), first)


# -- money, keys and fields


async def test_a_reused_result_costs_nothing_and_holds_nothing(start):
    server = await start(PRICED)
    client = await server.sign_in(budgets={"total": "0.40"})
    payer = await payer_of(server, client)
    first = await finish_new(server, await ask(client))
    for _ in range(3):
        assert reused(await ask(client), first)["cost"]["final"] == "0.30"
    assert await standing(server, payer) == (300_000_000, 0)
    refused(await ask(client, face_limit=48), 402, "insufficient_budget")
    usage = (await client.get("/api/v1/usage")).json()
    assert usage["total"]["jobs"] == 1, usage
    assert await server.gateway.database.read(check) == []


async def test_an_idempotency_key_comes_first(server):
    first = await finish_new(server, await ask(server.client, headers={"idempotency-key": "a"}))
    replayed = await ask(server.client, headers={"idempotency-key": "a"})
    assert (replayed.json()["id"], replayed.headers["idempotency-replayed"]) == (first, "true")
    assert "reused" not in replayed.headers
    refused(await ask(server.client, texture=True, headers={"idempotency-key": "a"}), 422, "idempotency_key_mismatch")
    for _ in range(2):
        reused(await ask(server.client, headers={"idempotency-key": "b"}), first)


async def test_the_fields_that_the_earlier_job_does_not_follow_are_named(server):
    own = {"client_ref": "mine", "metadata": {"a": "b"}, "retention": 3600}
    first = await finish_new(server, await ask(server.client, top=own))
    same = await ask(server.client, top=own)
    reused(same, first)
    assert "reused-ignored" not in same.headers
    webhook = {"url": "https://example.com/hook"}
    other = await ask(server.client, top={**own, "client_ref": "other", "retention": "forever", "webhook": webhook})
    assert reused(other, first)["client_ref"] == "mine"
    assert other.headers["reused-ignored"] == "client_ref, retention, webhook"


@pytest.mark.parametrize("value", ["near", True, 1])
async def test_only_exact_is_allowed(server, value):
    error = refused(await ask(server.client, top={"reuse": value}), 400, "invalid_params")
    assert (error["param"], "exact" in error["message"]) == ("reuse", True)


async def test_a_batch_is_refused(server):
    body = body_of({}, {}, model=MODEL, reuse="exact")
    error = refused(await server.client.post(GENERATION, json=body), 400, "invalid_params")
    assert (error["param"], "single input, got 2" in error["message"]) == ("reuse", True)
    assert await count_jobs(server) == 0


# -- defaults of keys


async def test_the_default_of_a_key_holds_until_a_request_says_otherwise(server):
    client = await server.sign_in(reuse="exact")
    first = await finish_new(server, await ask(client, top={"reuse": None}))
    reused(await ask(client, top={"reuse": None}), first)
    made(await ask(client, top={"reuse": "off"}))
    made(await ask(server.client, top={"reuse": None}))
    made(await ask(client, top={"reuse": None, "webhook": {"url": "https://example.com/hook"}}))
    reused(await ask(client, top={"webhook": {"url": "https://example.com/hook"}}), first)
    batch = await client.post(GENERATION, json=body_of({"script": QUICK}, {"script": QUICK}, model=MODEL))
    assert (batch.status_code, len({job["id"] for job in batch.json()["jobs"]} | {first})) == (202, 3)


async def test_administrators_set_the_default_of_a_key(start):
    server = await start(
        '[server]\nadmin_key = "' + (admin := "psa_" + "abcdefgh" * 5) + '"\n[vendors.sim]\ntype = "sim"\n'
    )
    headers = {"authorization": f"Bearer {admin}"}

    async def change(path: str, method: str = "POST", **body: Any) -> dict[str, Any]:
        answer = await server.client.request(method, f"/admin/v1/keys{path}", json=body, headers=headers)
        assert answer.status_code in (200, 201), answer.text
        return answer.json()

    issued = await change("", account="default", reuse="exact")
    assert issued["reuse"] == "exact"
    key = {"authorization": f"Bearer {issued['key']}"}
    first = await finish_new(server, await ask(server.client, headers=key, top={"reuse": None}))
    reused(await ask(server.client, headers=key, top={"reuse": None}), first)
    rotated = await change(f"/{issued['public_id']}/rotate")
    assert rotated["reuse"] == "exact"
    assert (await change(f"/{rotated['public_id']}", "PATCH", name="b"))["reuse"] == "exact"
    assert (await change(f"/{rotated['public_id']}", "PATCH", reuse=None))["reuse"] is None
    bad = {"account": "default", "reuse": "near"}
    error = refused(await server.client.post("/admin/v1/keys", json=bad, headers=headers), 400, "invalid_params")
    assert (error["param"], "exact" in error["message"]) == ("reuse", True)


# -- a reused result needs no room


async def test_a_reused_result_needs_no_room_for_a_job(start):
    server = await start('[vendors.sim]\ntype = "sim"\n[jobs]\nmax_waiting = 1\n')
    first = await finish_new(server, await ask(server.client))
    async with asyncio.timeout(60):  # until the end of the first one is counted
        while (await ask(server.client, script={"ending": "never"})).status_code == 429:
            pass
    refused(await ask(server.client, face_limit=48), 429, "queue_full")
    reused(await ask(server.client), first)
    full = await server.sign_in(concurrent_jobs=1, reuse="exact")
    made(await ask(await server.sign_in("mill"), face_limit=48))
    reused(await ask(full, top={"reuse": None}), first)


async def test_a_result_without_a_price_is_reused_by_a_key_with_a_budget(server, monkeypatch):
    first = await finish_new(server, await ask(server.client))
    monkeypatch.setattr(Offer, "is_priced", lambda *_: False)
    careful = await server.sign_in(budgets={"total": "1"})
    reused(await ask(careful), first)
    refused(await ask(careful, face_limit=48), 403, "model_not_allowed")

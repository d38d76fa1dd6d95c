"""Webhooks over HTTP: made and kept by their account, and told what happens, signed as the standard says."""

import asyncio
from collections.abc import AsyncGenerator

import httpx
import pytest
from conftest import MODEL, Server
from hook_receiver import LOOPBACK, Receiver, create, deliveries, is_signed, receiving, secret_of, settled
from plain import NO_TLS
from steps import FAILS, NEVER, cancel, order, refused

ALL = ["job.queued", "job.started", "job.progress", "job.succeeded", "job.failed", "job.canceled", "job.expired"]
PRICED = f'{LOOPBACK}[[models]]\nid = "{MODEL}"\nvendor = "sim"\nprice = {{per_job = "0.30"}}\n'
WRONG = (
    ({}, "missing_required_parameter", "url"),
    ({"url": "ftp://example.com/"}, "url_not_allowed", "url"),
    ({"url": "https://example.com/", "events": []}, "invalid_params", "events"),
    ({"url": "https://example.com/", "events": ["job.done"]}, "invalid_params", "events.0"),
    ({"url": "https://example.com/", "secret": "x"}, "unknown_param", "secret"),
    ({"url": 5}, "invalid_params", "url"),
)
HIDDEN = ("secret", "former_secret")


@pytest.fixture
async def receiver() -> AsyncGenerator[Receiver]:
    async with receiving() as receiver:
        yield receiver


@pytest.fixture
async def server(start) -> Server:
    return await start(LOOPBACK)


# -- telling


async def test_the_end_of_a_job_is_told_once_as_every_other_way_tells_it(server, receiver):
    hook = await create(server.client, receiver.url("/a?b=c"))
    job = await server.generate(MODEL, script={})
    (message,) = await receiver.wait(1)
    assert is_signed(message, hook["secret"])
    assert not is_signed(message, await secret_of(server))
    assert message.path == "/a?b=c"
    assert message.headers["content-type"] == "application/json"
    feed = (await server.client.get("/api/v1/events")).json()["data"]
    assert message.id == feed[-1]["id"]
    body = message.body
    output = body["data"].pop("outputs")[0]
    assert body == {**feed[-1], "data": {key: value for key, value in feed[-1]["data"].items() if key != "outputs"}}
    async with httpx.AsyncClient(trust_env=False, verify=NO_TLS) as anyone:
        assert len((await anyone.get(output["url"])).content) == output["bytes"]
    assert body["data"]["urls"]["self"] == f"{server.url}/api/v1/jobs/{job['id']}"
    (delivery,) = await settled(server.client, status="delivered")
    assert (delivery["webhook_id"], delivery["event_id"], delivery["job_id"]) == (hook["id"], message.id, job["id"])
    assert delivery["attempts"][0]["status_code"] == 200
    assert delivery["attempts"][0]["response"] == "answered 200"
    assert len(receiver.messages) == 1


async def test_all_events_of_many_jobs_come_once_and_in_order(server, receiver):
    hook = await create(server.client, receiver.url(), events=ALL)
    jobs = (await order(server.client, *([{"latency": 0.3}] * 12), FAILS, NEVER))["jobs"]
    await asyncio.sleep(0)
    await cancel(server.client, jobs[-1]["id"])
    for job in jobs:
        await server.finish(job["id"])
    feed = (await server.client.get("/api/v1/events", params={"limit": 100})).json()["data"]
    messages = await receiver.wait(len(feed))
    assert sorted(message.id for message in messages) == [event["id"] for event in feed]
    assert all(is_signed(message, hook["secret"]) for message in messages)
    for job in jobs:
        told = [message.told for message in messages if message.body["data"]["id"] == job["id"]]
        assert told == [(event["type"], event["sequence"]) for event in feed if event["data"]["id"] == job["id"]]
    assert {"job.failed", "job.canceled", "job.succeeded"} <= {message.told[0] for message in messages}


async def test_only_what_was_asked_for_is_told(server, receiver):
    async with receiving() as other:
        await create(server.client, receiver.url(), events=["job.started", "job.failed"])
        await create(server.client, other.url())
        done = await server.generate(MODEL, script={})
        failed = await server.generate(MODEL, script=FAILS)
        told = {(message.body["data"]["id"], message.told[0]) for message in await receiver.wait(3)}
        assert told == {(done["id"], "job.started"), (failed["id"], "job.started"), (failed["id"], "job.failed")}
        usual = {message.told[0] for message in await other.wait(2)}
        assert usual == {"job.succeeded", "job.failed"}


async def test_a_budget_that_runs_low_is_told(start, receiver):
    server = await start(PRICED)
    client = await server.sign_in("thrifty", budgets={"total": "0.50"})
    hook = await create(client, receiver.url(), events=["budget.threshold"])
    await order(client, {})
    (message,) = await receiver.wait(1)
    assert is_signed(message, hook["secret"])
    assert message.told == ("budget.threshold", 1)
    assert (message.body["data"]["cap"], message.body["data"]["share"]) == ("0.50", 50)
    (delivery,) = await settled(client)
    assert (delivery["job_id"], delivery["type"]) == (None, "budget.threshold")


async def test_a_jobs_own_webhook_is_told_and_signed_with_the_accounts_secret(server, receiver):
    secret = await secret_of(server)
    wanted = {"url": receiver.url("/own"), "events": ["job.queued", "job.succeeded"]}
    job = await order(server.client, {}, webhook=wanted)
    assert job["warnings"] == []
    messages = await receiver.wait(2)
    assert [message.told[0] for message in messages] == ["job.queued", "job.succeeded"]
    assert all(is_signed(message, secret) for message in messages)
    assert messages[1].body["data"]["outputs"][0]["url"].startswith(server.url)
    found = await settled(server.client, count=2, job_id=job["id"])
    assert {(each["webhook_id"], each["url"]) for each in found} == {(None, receiver.url("/own"))}
    usual = await order(server.client, {}, webhook={"url": receiver.url()})
    assert (await receiver.wait(3))[2].told[0] == "job.succeeded"
    assert (await receiver.wait(3))[2].body["data"]["id"] == usual["id"]
    assert (await server.client.get("/api/v1/webhooks")).json()["data"] == []


async def test_links_lead_to_the_public_address_where_there_is_one(start, receiver):
    server = await start(LOOPBACK + '[server]\npublic_url = "https://gate.example"\n')
    await create(server.client, receiver.url())
    await server.generate(MODEL, script={})
    (message,) = await receiver.wait(1)
    assert message.body["data"]["outputs"][0]["url"].startswith("https://gate.example/api/v1/assets/")


# -- secrets


async def test_a_rotated_secret_and_the_former_one_both_verify(server, receiver):
    hook = await create(server.client, receiver.url())
    path = f"/api/v1/webhooks/{hook['id']}"
    rotated = (await server.client.post(f"{path}/rotate")).json()
    assert rotated["secret"] != hook["secret"]
    assert rotated["former_secret_until"] is not None
    await server.client.post(f"{path}/ping")
    (message,) = receiver.messages
    assert is_signed(message, hook["secret"])
    assert is_signed(message, rotated["secret"])
    assert len(message.headers["webhook-signature"].split(" ")) == 2
    again = (await server.client.post(f"{path}/rotate")).json()
    await server.client.post(f"{path}/ping")
    assert [is_signed(receiver.messages[1], each["secret"]) for each in (hook, rotated, again)] == [True, True, True]
    tomorrow = server.gateway.clock() + 86_401
    server.gateway.clock = lambda: tomorrow
    assert (await server.client.get(path)).json()["former_secret_until"] is None


async def test_the_secret_of_jobs_own_webhooks_is_rotated_too(server, receiver):
    former = await secret_of(server)
    rotated = (await server.client.post("/api/v1/webhooks/secret/rotate")).json()
    assert rotated["object"] == "webhook.secret"
    assert rotated["former_secret_until"] is not None
    assert await secret_of(server) == rotated["secret"] != former
    await order(server.client, {}, webhook={"url": receiver.url()})
    (message,) = await receiver.wait(1)
    assert is_signed(message, former)
    assert is_signed(message, rotated["secret"])


async def test_of_secrets_that_are_rotated_at_once_none_is_void(server, receiver):
    """Those who answered too late, or asked at two gateways, have a secret that was promised to count."""
    answers = await asyncio.gather(*(server.client.post("/api/v1/webhooks/secret/rotate") for _ in range(3)))
    await order(server.client, {}, webhook={"url": receiver.url()})
    (message,) = await receiver.wait(1)
    assert all(is_signed(message, answer.json()["secret"]) for answer in answers)


async def test_a_secret_is_shown_once_and_never_logged(server, receiver, caplog):
    hook = await create(server.client, receiver.url())
    assert hook["secret"].startswith("whsec_")
    await server.client.post(f"/api/v1/webhooks/{hook['id']}/ping")
    shown = await server.client.get("/api/v1/webhooks")
    assert not set(HIDDEN) & set(shown.json()["data"][0])
    for path in ("", "/deliveries"):
        assert hook["secret"] not in (await server.client.get(f"/api/v1/webhooks/{hook['id']}{path}")).text
    assert hook["secret"] not in caplog.text
    assert (await server.client.get("/metrics")).text.count('penstock_webhook_deliveries_total{outcome="delivered"}')


# -- keeping


async def test_webhooks_are_listed_changed_and_removed(server, receiver):
    hooks = [await create(server.client, receiver.url(f"/{number}"), description=str(number)) for number in range(3)]
    first = (await server.client.get("/api/v1/webhooks", params={"limit": 2})).json()
    rest = (await server.client.get("/api/v1/webhooks", params={"cursor": first["next_cursor"]})).json()
    assert [each["url"] for each in first["data"] + rest["data"]] == [hook["url"] for hook in reversed(hooks)]
    assert (first["has_more"], rest["has_more"], rest["next_cursor"]) == (True, False, None)
    path = f"/api/v1/webhooks/{hooks[0]['id']}"
    changed = await server.client.patch(path, json={"url": receiver.url("/new"), "events": ["job.queued"]})
    assert changed.json() == {
        **{name: value for name, value in hooks[0].items() if name != "secret"},
        "url": receiver.url("/new"),
        "events": ["job.queued"],
    }
    assert (await server.client.get(path)).json() == changed.json()
    assert (await server.client.delete(path)).status_code == 204
    refused(await server.client.get(path), 404, "webhook_not_found")
    refused(await server.client.delete(path), 404, "webhook_not_found")


async def test_a_disabled_webhook_is_told_nothing_until_it_is_enabled(server, receiver):
    hook = await create(server.client, receiver.url())
    path = f"/api/v1/webhooks/{hook['id']}"
    off = (await server.client.patch(path, json={"disabled": True})).json()
    assert (off["disabled"], off["disabled_reason"]) == (True, "asked")
    await server.generate(MODEL, script={})
    assert (await server.client.post(f"{path}/ping")).json()["status"] == "delivered"
    assert (await server.client.patch(path, json={"disabled": False})).json()["disabled_at"] is None
    job = await server.generate(MODEL, script={})
    assert [message.body["data"].get("id") for message in await receiver.wait(2)] == [None, job["id"]]


async def test_an_account_has_so_many_webhooks_and_no_more(server, receiver):
    for number in range(20):
        await create(server.client, receiver.url(f"/{number}"))
    refused(await server.client.post("/api/v1/webhooks", json={"url": receiver.url()}), 409, "too_many_webhooks")
    await create(await server.sign_in("other"), receiver.url())


async def test_another_accounts_webhooks_are_not_found_and_not_told(server, receiver):
    hook = await create(server.client, receiver.url())
    (delivery,) = [(await server.client.post(f"/api/v1/webhooks/{hook['id']}/ping")).json()]
    other = await server.sign_in("other")
    for method, path in (
        *(("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/ping"), ("POST", "/rotate"), ("GET", "/deliveries")),
    ):
        response = await other.request(
            method, f"/api/v1/webhooks/{hook['id']}{path}", json={} if method == "PATCH" else None
        )
        refused(response, 404, "webhook_not_found")
    place = f"/api/v1/webhooks/deliveries/{delivery['id']}"
    refused(await other.get(place), 404, "delivery_not_found")
    refused(await other.post(f"{place}/redeliver"), 404, "delivery_not_found")
    assert (await other.get("/api/v1/webhooks")).json()["data"] == []
    assert await deliveries(other) == []
    await order(other, {})
    assert await secret_of(server) != (await other.get("/api/v1/webhooks/secret")).json()["secret"]
    assert len(receiver.messages) == 1


async def test_a_key_that_may_only_read_changes_nothing(server, receiver):
    hook = await create(server.client, receiver.url())
    reader = await server.sign_in(scopes=frozenset({"read"}))
    assert (await reader.get(f"/api/v1/webhooks/{hook['id']}")).status_code == 200
    for path in ("/secret", ""):
        method = reader.get if path else reader.post
        response = await method(f"/api/v1/webhooks{path}", **({} if path else {"json": {"url": receiver.url()}}))
        refused(response, 403, "scope_not_allowed")


async def test_what_is_wrong_with_a_new_webhook_is_told(server):
    for body, code, param in WRONG:
        error = refused(await server.client.post("/api/v1/webhooks", json=body), 400, code)
        assert error["param"].startswith(param)


async def test_what_is_no_id_is_not_found(server):
    for path in ("deliveries/dlv_x", "deliveries/evt_0000000000001", "hook_x", "own_acct_1"):
        assert (await server.client.get(f"/api/v1/webhooks/{path}")).status_code == 404
    refused(await server.client.get("/api/v1/webhooks/deliveries?cursor=dlv_zzzzzzzzzzzzz"), 400, "invalid_params")

"""Webhooks that fail, hang, lead astray or want to be left alone: tried again by plan, and never at others' cost."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from admin_steps import ADMIN_KEY, administer, changes
from aiohttp import web
from conftest import MODEL, Server
from hook_receiver import LOOPBACK, Receiver, create, deliveries, is_signed, receiving, settled
from sqlalchemy import Connection, update
from steps import body_of, order, refused

from penstock.settings.tables import load
from penstock.store.database import RUNG
from penstock.store.signals import DELIVERIES
from penstock.store.tables import deliveries as delivery_table
from penstock.store.tables import webhooks as webhook_table

PLAN = (5, 60, 300, 1800, 7200, 18_000, 36_000)
DAY = 86_400.0
LATE = 30
"""Seconds that a busy machine may take from an attempt's beginning to its end."""
ASKED = ((429, "900", 900), (503, "9000000", DAY), (503, "soon", 5), (429, "1", 5), (500, "900", 5))
"""What is answered with which `Retry-After`, and how long is waited then."""
FORBIDDEN = (
    *("http://127.0.0.1/", "http://localhost/", "http://[::1]/", "http://10.0.0.1/", "http://169.254.169.254/"),
    *("http://2130706433/", "http://[::ffff:127.0.0.1]/", "https://user:secret@example.com/", "file:///etc/passwd"),
    *("http://example.com:22/", "http://gate.internal/"),
)


@pytest.fixture
async def receiver() -> AsyncGenerator[Receiver]:
    async with receiving() as receiver:
        yield receiver


@pytest.fixture
async def server(start) -> Server:
    return await start(f'{LOOPBACK}[server]\nadmin_key = "{ADMIN_KEY}"\n')


async def hasten(server: Server) -> None:
    """The time has come for everything that waits to be tried again."""

    def make_due(connection: Connection) -> None:
        waiting = (delivery_table.c.status == "pending") & delivery_table.c.lease.is_(None)
        connection.execute(update(delivery_table).where(waiting).values(due_at=time.time()))
        connection.info[RUNG].add(DELIVERIES)

    await server.gateway.database.write(make_due)


async def exhaust(server: Server, attempts: int = 8) -> dict[str, Any]:
    """The one delivery once it was tried so often."""
    for number in range(1, attempts):
        await settled(server.client, attempts=number)
        await hasten(server)
    (delivery,) = await settled(server.client, attempts=attempts)
    return delivery


def pause_of(delivery: dict[str, Any]) -> float:
    """How long the next attempt is waited for."""
    due, last = delivery["next_attempt_at"], delivery["attempts"][-1]["at"]
    return (datetime.fromisoformat(due) - datetime.fromisoformat(last)).total_seconds()


async def later(_: web.BaseRequest) -> web.Response:
    """Not now, and not soon by itself either."""
    return web.Response(status=503, headers={"Retry-After": "900"})


async def tell(server: Server, **script: Any) -> str:
    """Have a job end that webhooks are told of; its id."""
    return (await server.generate(MODEL, script=script))["id"]


# -- trying again


async def test_failures_are_tried_again_by_plan_under_the_same_id_and_then_given_up(server, receiver):
    receiver.reply = 500
    hook = await create(server.client, receiver.url())
    await tell(server)
    for number, pause in enumerate(PLAN, start=1):
        (delivery,) = await settled(server.client, attempts=number)
        assert delivery["status"] == "pending"
        assert pause <= pause_of(delivery) <= pause * 1.2 + LATE
        await hasten(server)
    (delivery,) = await settled(server.client, attempts=8)
    assert (delivery["status"], delivery["next_attempt_at"]) == ("failed", None)
    assert {attempt["status_code"] for attempt in delivery["attempts"]} == {500}
    assert len({message.id for message in receiver.messages}) == 1
    assert all(is_signed(message, hook["secret"]) for message in receiver.messages)
    await hasten(server)
    assert len(await receiver.wait(8)) == 8
    record = (await server.client.get(f"/api/v1/webhooks/{hook['id']}")).json()
    assert record["failing_since"] is not None
    assert not record["disabled"], "one event that is not taken is no reason"


async def test_it_is_over_with_the_first_success(server, receiver):
    receiver.replies = [500, 404, 204]
    hook = await create(server.client, receiver.url())
    await tell(server)
    delivery = await exhaust(server, 3)
    assert delivery["status"] == "delivered"
    assert [attempt["status_code"] for attempt in delivery["attempts"]] == [500, 404, 204]
    assert (await server.client.get(f"/api/v1/webhooks/{hook['id']}")).json()["failing_since"] is None
    assert await deliveries(server.client, status="failed") == []


async def test_a_receiver_may_ask_for_time(server, receiver):
    await create(server.client, receiver.url())
    for status, told, pause in ASKED:

        async def ask(_: web.BaseRequest, status: int = status, told: str = told) -> web.Response:
            return web.Response(status=status, headers={"Retry-After": told})

        receiver.reply = ask
        job_id = await tell(server)
        (delivery,) = await settled(server.client, job_id=job_id)
        assert pause <= pause_of(delivery) <= pause * 1.2 + LATE, told


async def test_an_event_that_waits_does_not_hold_up_the_next(server, receiver):
    receiver.replies = [later]
    await create(server.client, receiver.url(), events=["job.queued", "job.succeeded"])
    await tell(server)
    messages = await receiver.wait(2)
    assert [message.told[0] for message in messages] == ["job.queued", "job.succeeded"]
    await settled(server.client, count=2)
    await hasten(server)
    assert (await receiver.wait(3))[2].told == ("job.queued", 1)


# -- what is no success


async def test_a_redirect_is_a_failure_and_nobody_follows_it(server, receiver):
    async with receiving() as elsewhere:

        async def lead_away(_: web.BaseRequest) -> web.Response:
            return web.Response(status=307, headers={"Location": elsewhere.url()})

        receiver.reply = lead_away
        await create(server.client, receiver.url())
        await tell(server)
        (delivery,) = await settled(server.client)
        assert (delivery["status"], delivery["attempts"][0]["status_code"]) == ("pending", 307)
        assert elsewhere.messages == []


async def test_a_receiver_that_does_not_answer_is_given_so_much_time(server, receiver, monkeypatch):
    monkeypatch.setattr("penstock.webhooks.delivery.ATTEMPT_SECONDS", 0.3)
    receiver.reply = receiver.hang
    await create(server.client, receiver.url())
    await tell(server)
    (delivery,) = await settled(server.client)
    assert delivery["attempts"][0]["status_code"] is None
    assert "0.3 seconds" in delivery["attempts"][0]["error"]
    assert 250 <= delivery["attempts"][0]["latency_ms"] < 14_000


async def test_a_receiver_that_is_not_there_is_told_of_without_its_address(server):
    async with receiving() as receiver:
        url = receiver.url(host="localhost")
        await create(server.client, url)
    await tell(server)
    (delivery,) = await settled(server.client)
    (attempt,) = delivery["attempts"]
    assert attempt["status_code"] is None
    assert "no connection could be made" in attempt["error"]
    assert "127.0.0.1" not in attempt["error"]


async def test_of_a_long_or_slow_answer_only_the_beginning_is_read(server, receiver, monkeypatch):
    monkeypatch.setattr("penstock.safe_fetch.fetcher.ANSWER_SECONDS", 0.2)

    async def endless(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"\x00\xff" + b"a" * 100_000)
        return response

    async def dripping(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(status=202)
        await response.prepare(request)
        await response.write(b"thanks")
        return await receiver.hang(request)

    receiver.replies = [endless, dripping]
    hook = await create(server.client, receiver.url())
    answers = [(await server.client.post(f"/api/v1/webhooks/{hook['id']}/ping")).json() for _ in range(2)]
    assert [answer["status"] for answer in answers] == ["delivered", "delivered"]
    assert answers[0]["attempts"][0]["response"] == "��" + "a" * 1022
    assert answers[1]["attempts"][0]["response"] == "thanks"


async def test_a_ping_tells_how_it_went_and_is_tried_once(server, receiver):
    hook = await create(server.client, receiver.url())
    ping = f"/api/v1/webhooks/{hook['id']}/ping"
    good = (await server.client.post(ping)).json()
    assert (good["type"], good["status"], good["job_id"]) == ("webhook.ping", "delivered", None)
    (message,) = receiver.messages
    assert is_signed(message, hook["secret"])
    assert (message.body["type"], message.body["data"]) == ("webhook.ping", {"webhook_id": hook["id"]})
    assert message.id == good["event_id"]
    receiver.reply = 500
    bad = (await server.client.post(ping)).json()
    assert (bad["status"], bad["attempts"][0]["status_code"]) == ("failed", 500)
    assert message.id not in [event["id"] for event in (await server.client.get("/api/v1/events")).json()["data"]]


async def test_pings_count_against_the_limits_of_the_key(server, receiver):
    client = await server.sign_in("limited", requests_per_minute=2)
    hook = await create(client, receiver.url())
    ping = f"/api/v1/webhooks/{hook['id']}/ping"
    first = await client.post(ping)
    assert (first.status_code, first.headers["x-ratelimit-limit-requests"]) == (200, "2")
    await client.post(ping)
    late = await client.post(ping)
    if late.status_code == 200:  # a busy machine: the bucket has filled again meanwhile
        late = await client.post(ping)
    error = refused(late, 429, "rate_limited")
    assert error["retryable"]
    assert int(late.headers["retry-after"]) >= 1


async def test_an_account_has_few_pings_under_way(server, receiver, monkeypatch):
    monkeypatch.setattr("penstock.webhooks.delivery.ATTEMPT_SECONDS", 100)
    receiver.reply = receiver.hang
    hook = await create(server.client, receiver.url())
    path = f"/api/v1/webhooks/{hook['id']}/ping"
    waiting = [asyncio.create_task(server.client.post(path)) for _ in range(4)]
    async with asyncio.timeout(60):
        while len(await deliveries(server.client, status="pending")) < 4:  # noqa: ASYNC110  the list is all there is
            await asyncio.sleep(0.02)
    full = await server.client.post(path)
    error = refused(full, 429, "too_many_pings")
    assert (error["type"], error["retryable"], full.headers["retry-after"]) == ("rate_limit_error", True, "5")
    assert "4 pings" in error["message"]
    other = await server.sign_in("other")
    async with receiving() as elsewhere:
        theirs = await create(other, elsewhere.url())
        assert (await other.post(f"/api/v1/webhooks/{theirs['id']}/ping")).json()["status"] == "delivered"
    receiver.reply = 200
    receiver.closing.set()
    assert {response.json()["status"] for response in await asyncio.gather(*waiting)} == {"delivered"}
    assert (await server.client.post(path)).json()["status"] == "delivered"


# -- disabling


async def test_410_disables_the_webhook_at_once(server, receiver):
    receiver.replies = [later, 410]
    hook = await create(server.client, receiver.url())
    await tell(server)
    await settled(server.client)
    await tell(server)
    found = await settled(server.client, count=2)
    assert {(each["status"], each["attempts"][-1]["status_code"]) for each in found} == {
        ("failed", 503),
        ("failed", 410),
    }
    record = (await server.client.get(f"/api/v1/webhooks/{hook['id']}")).json()
    assert (record["disabled"], record["disabled_reason"]) == (True, "gone")
    (entry,) = await changes(await administer(server), action="webhook.disabled")
    assert (entry["subject"], entry["actor"], entry["detail"]) == (hook["id"], "server", {"reason": "gone"})
    await tell(server)
    assert len(receiver.messages) == 2
    assert (await server.client.patch(f"/api/v1/webhooks/{hook['id']}", json={"disabled": False})).status_code == 200
    await tell(server)
    assert len(await receiver.wait(3)) == 3


async def test_410_to_a_jobs_own_webhook_ends_that_delivery_only(server, receiver):
    receiver.replies = [410]
    first = await order(server.client, {}, webhook={"url": receiver.url()})
    (delivery,) = await settled(server.client, job_id=first["id"])
    assert delivery["status"] == "failed"
    await order(server.client, {}, webhook={"url": receiver.url()})
    await receiver.wait(2)


async def test_a_webhook_that_fails_for_days_is_disabled(server, receiver):
    receiver.reply = 500
    hook = await create(server.client, receiver.url())
    await tell(server)
    await exhaust(server, 7)

    def go_back(connection: Connection) -> None:
        connection.execute(update(webhook_table).values(failing_since=time.time() - 5 * DAY - 1))

    await server.gateway.database.write(go_back)
    await hasten(server)
    await settled(server.client, attempts=8)
    record = (await server.client.get(f"/api/v1/webhooks/{hook['id']}")).json()
    assert (record["disabled"], record["disabled_reason"]) == (True, "failing")
    (entry,) = await changes(await administer(server), action="webhook.disabled")
    assert entry["detail"] == {"reason": "failing"}
    back = (await server.client.patch(f"/api/v1/webhooks/{hook['id']}", json={"disabled": False})).json()
    assert (back["disabled"], back["failing_since"]) == (False, None)


# -- the message itself


async def test_the_message_of_a_delivery_can_be_read(server, receiver):
    hook = await create(server.client, receiver.url())
    await tell(server)
    (delivery,) = await settled(server.client)
    path = f"/api/v1/webhooks/deliveries/{delivery['id']}/message"
    found = (await server.client.get(path)).json()
    sent = receiver.messages[0]
    assert found["url"] == hook["url"]
    assert found["headers"]["webhook-id"] == sent.id
    assert json.loads(found["body"])["type"] == delivery["type"]
    assert is_signed(replace(sent, headers=found["headers"], raw=found["body"].encode()), hook["secret"])
    refused(await (await server.sign_in("another")).get(path), 404, "delivery_not_found")


async def test_a_key_that_may_only_read_gets_no_signature(server, receiver):
    await create(server.client, receiver.url())
    await tell(server)
    (delivery,) = await settled(server.client)
    reader = await server.sign_in("default", scopes=["read"])
    found = (await reader.get(f"/api/v1/webhooks/deliveries/{delivery['id']}/message")).json()
    assert found["headers"]["webhook-signature"] == "v1,…"


async def test_the_message_of_a_deleted_job_is_gone(server, receiver):
    await create(server.client, receiver.url())
    await tell(server)
    (delivery,) = await settled(server.client)
    await server.client.delete(f"/api/v1/jobs/{delivery['job_id']}")
    answer = await server.client.get(f"/api/v1/webhooks/deliveries/{delivery['id']}/message")
    refused(answer, 404, "delivery_not_found")


# -- sending again


async def test_anything_can_be_sent_again_under_its_id(server, receiver):
    receiver.replies = [200, 500, 200]
    hook = await create(server.client, receiver.url())
    await tell(server)
    (delivery,) = await settled(server.client)
    path = f"/api/v1/webhooks/deliveries/{delivery['id']}"
    assert (await server.client.post(f"{path}/redeliver")).status_code == 202
    (failed,) = await settled(server.client, attempts=2)
    assert (failed["status"], failed["finished_at"]) == ("pending", None)
    assert 5 <= pause_of(failed) <= 6 + LATE, "as of a new one"
    again = await server.client.post(f"{path}/redeliver")
    assert again.json()["id"] == delivery["id"]
    (last,) = await settled(server.client, attempts=3)
    assert (await server.client.get(path)).json() == last
    assert last["status"] == "delivered"
    assert len({message.id for message in receiver.messages}) == 1
    assert all(is_signed(message, hook["secret"]) for message in receiver.messages)


async def test_what_went_to_a_disabled_webhook_is_sent_again_once_it_is_enabled(server, receiver):
    receiver.replies = [410, 200]
    hook = await create(server.client, receiver.url())
    await tell(server)
    (failed,) = await settled(server.client)
    path = f"/api/v1/webhooks/deliveries/{failed['id']}/redeliver"
    refusal = await server.client.post(path)
    assert (refusal.status_code, refusal.json()["error"]["code"]) == (409, "webhook_disabled")
    await server.client.patch(f"/api/v1/webhooks/{hook['id']}", json={"disabled": False})
    assert (await server.client.post(path)).status_code == 202
    (delivered,) = await settled(server.client, attempts=2)
    assert delivered["status"] == "delivered"


async def test_what_is_being_sent_is_not_sent_twice(server, receiver):
    release = asyncio.Event()

    async def wait(_: web.BaseRequest) -> web.Response:
        await release.wait()
        return web.Response()

    receiver.reply = wait
    await create(server.client, receiver.url())
    await tell(server)
    await receiver.wait(1)
    (delivery,) = await deliveries(server.client)
    answer = await server.client.post(f"/api/v1/webhooks/deliveries/{delivery['id']}/redeliver")
    assert (answer.status_code, answer.json()["status"]) == (202, "pending")
    release.set()
    (delivered,) = await settled(server.client)
    assert delivered["status"] == "delivered"
    assert len(receiver.messages) == 1


async def test_deliveries_are_listed_in_pages_and_go_with_their_job(server, receiver):
    hook = await create(server.client, receiver.url())
    jobs = [await tell(server) for _ in range(3)]
    found = await settled(server.client, count=3)
    assert [each["job_id"] for each in found] == jobs[::-1]
    first = (await server.client.get(f"/api/v1/webhooks/{hook['id']}/deliveries", params={"limit": 2})).json()
    assert first["has_more"]
    rest = await deliveries(server.client, f"{hook['id']}/deliveries", cursor=first["next_cursor"])
    assert first["data"] + rest == found
    assert await deliveries(server.client, job_id=jobs[1]) == [found[1]]
    assert await deliveries(server.client, status="pending") == []
    await server.client.delete(f"/api/v1/jobs/{jobs[1]}")
    assert [each["job_id"] for each in await deliveries(server.client)] == [jobs[2], jobs[0]]
    await server.client.delete(f"/api/v1/webhooks/{hook['id']}")
    assert await deliveries(server.client) == []


# -- one at others' cost


async def test_a_receiver_that_hangs_holds_up_nobody_else(server, receiver, monkeypatch):
    monkeypatch.setattr("penstock.webhooks.delivery.ATTEMPT_SECONDS", 100)  # longer than we wait for the others
    async with receiving() as stuck:
        stuck.reply = stuck.hang
        slow = await create(server.client, stuck.url())
        await create(server.client, receiver.url())
        other = await server.sign_in("other")
        await create(other, receiver.url("/other"))
        await order(server.client, *[{}] * 16)
        await order(server.client, *[{}] * 16)
        await order(other, {})
        messages = await receiver.wait(33)
        assert len([message for message in messages if message.path == "/other"]) == 1
        assert len(stuck.messages) <= 8
        waiting = await deliveries(server.client, f"{slow['id']}/deliveries", status="pending", limit=100)
        assert len(waiting) == 32


async def test_a_receiver_that_hangs_does_not_delay_its_neighbour_on_the_host(server, receiver, monkeypatch):
    monkeypatch.setattr("penstock.webhooks.delivery.ATTEMPT_SECONDS", 100)

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return await receiver.hang(request) if request.path == "/hang" else web.Response()

    receiver.reply = answer
    for path in ("/hang", "/works"):
        await create(server.client, receiver.url(path), events=["job.queued"])
    for _ in range(3):
        await order(server.client, *[{}] * 16)
    await arrived(receiver, "/works", 48)
    assert len(paths(receiver, "/hang")) == 1, "it has yet to answer for the first time"


async def test_accounts_whose_receivers_all_hang_delay_no_other(server, receiver, monkeypatch):
    monkeypatch.setattr("penstock.webhooks.delivery.ATTEMPT_SECONDS", 100)
    async with receiving() as stuck:
        stuck.reply = stuck.hang
        for account in ("one", "two"):
            client = await server.sign_in(account)
            for number in range(20):
                await create(client, stuck.url(f"/{account}/{number}"), events=["job.queued"])
            await order(client, *[{}] * 4)
        await stuck.wait(40)
        await create(server.client, receiver.url(), events=["job.queued"])
        await order(server.client, *[{}] * 8)
        await receiver.wait(8)
        assert len(stuck.messages) == 40, "one for each"


async def test_receivers_of_an_account_that_hang_delay_none_of_its_others(server, receiver, monkeypatch):
    monkeypatch.setattr("penstock.webhooks.delivery.ATTEMPT_SECONDS", 100)
    async with receiving() as stuck:
        stuck.reply = stuck.hang
        for number in range(19):
            await create(server.client, stuck.url(f"/{number}"), events=["job.queued"])
        for number in range(31):
            own = {"url": stuck.url(f"/own/{number}"), "events": ["job.queued"]}
            await order(server.client, {}, webhook=own)
        await create(server.client, receiver.url(), events=["job.queued"])
        await order(server.client, *[{}] * 8)
        await receiver.wait(8)
        assert not stuck.closing.is_set(), "they hang on"


async def test_a_slow_endpoint_is_tried_again_by_one_attempt_at_a_time_until_it_takes_a_message(
    server, receiver, monkeypatch
):
    monkeypatch.setattr("penstock.webhooks.delivery.ATTEMPT_SECONDS", 1)  # longer than an attempt may be quick
    receiver.reply = receiver.hang
    await create(server.client, receiver.url(), events=["job.queued"])
    await order(server.client, {})
    await settled(server.client)
    monkeypatch.setattr("penstock.webhooks.delivery.ATTEMPT_SECONDS", 100)
    await hasten(server)
    await order(server.client, *[{}] * 16)
    await receiver.wait(2)
    other = await create(server.client, receiver.url("/other"), events=["job.queued"])
    ping = asyncio.create_task(server.client.post(f"/api/v1/webhooks/{other['id']}/ping"))
    await arrived(receiver, "/other", 1)
    assert len(paths(receiver, "/hook")) == 2, "many are due, and one is under way"
    receiver.reply = 200
    receiver.closing.set()
    assert (await ping).json()["status"] == "delivered"
    await settled(server.client, count=18)


def paths(receiver: Receiver, path: str) -> list[str]:
    return [message.path for message in receiver.messages if message.path == path]


async def arrived(receiver: Receiver, path: str, number: int) -> None:
    """Wait until so many messages have come under this path."""
    async with asyncio.timeout(60):
        while len(paths(receiver, path)) < number:
            receiver.news.clear()
            await receiver.news.wait()


async def test_what_is_being_sent_when_a_server_stops_is_sent_by_the_next(start, receiver):
    receiver.replies = [receiver.hang]
    server = await start(LOOPBACK)
    hook = await create(server.client, receiver.url())
    await tell(server)
    await receiver.wait(1)
    await server.gateway.delivery.stop()
    await server.gateway.delivery.start()
    messages = await receiver.wait(2)
    assert messages[0].id == messages[1].id
    assert all(is_signed(message, hook["secret"]) for message in messages)
    (delivery,) = await settled(server.client)
    assert delivery["status"] == "delivered"


async def test_what_one_server_accepts_another_tells(start, receiver):
    await start(LOOPBACK)
    beside = await start(LOOPBACK)
    hook = await create(beside.client, receiver.url(), events=["job.queued"])
    job = await order(beside.client, {})
    (message,) = await receiver.wait(1)
    assert (message.told[0], message.body["data"]["id"]) == ("job.queued", job["id"])
    assert is_signed(message, hook["secret"])
    assert (await beside.client.post(f"/api/v1/webhooks/{hook['id']}/ping")).json()["status"] == "delivered"
    assert len(receiver.messages) == 2


# -- where webhooks may lead


async def test_by_default_webhooks_lead_into_the_public_internet_only(start):
    server = await start()
    for url in FORBIDDEN:
        error = refused(await server.client.post("/api/v1/webhooks", json={"url": url}), 400, "url_not_allowed")
        assert error["param"] == "url", url
        own = await server.client.post("/model/v1/generation", json=body_of({}, webhook={"url": url}))
        assert refused(own, 400, "url_not_allowed")["param"] == "webhook.url", url


async def test_a_name_that_leads_to_a_forbidden_address_is_refused_when_it_is_made_and_when_it_is_told(
    start, receiver, tmp_path
):
    server = await start(LOOPBACK)
    hook = await create(server.client, receiver.url(host="localhost"))
    path = f"/api/v1/webhooks/{hook['id']}"
    assert (await server.client.post(f"{path}/ping")).json()["status"] == "delivered"
    config = tmp_path / "strict.toml"
    config.write_text(LOOPBACK.replace("127.0.0.0/8", "10.0.0.0/8"))
    kept = server.gateway.settings
    await server.gateway.reload(load(config, {}, {"data": kept.data, "weights": kept.weights}))
    again = {"url": receiver.url(host="localhost")}
    refused(await server.client.post("/api/v1/webhooks", json=again), 400, "url_not_allowed")
    refused(await server.client.patch(path, json=again), 400, "url_not_allowed")
    told = (await server.client.post(f"{path}/ping")).json()
    assert told["status"] == "failed"
    assert "not public" in told["attempts"][0]["error"]
    await order(server.client, {}, webhook=again)
    found = await settled(server.client, count=4)
    assert [each["attempts"][0]["status_code"] for each in found] == [None, None, None, 200]
    assert len(receiver.messages) == 1


async def test_no_proxy_of_the_environment_is_asked(start, receiver, monkeypatch):
    async with receiving() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url(""))
        server = await start(LOOPBACK)
        hook = await create(server.client, receiver.url())
        await server.client.post(f"/api/v1/webhooks/{hook['id']}/ping")
        assert (len(receiver.messages), len(proxy.messages)) == (1, 0)

"""One account's backlog delays another's job by about one job, and limits on open jobs hold exactly."""

import asyncio
from typing import Any

import httpx
from admin_steps import WITH_ADMIN, administer, call, make_account, make_key
from conftest import Server, client_of
from steps import FAILS, GENERATION, IDLE, NEVER, ONE_SEAT, body_of, cancel, look, order, refused, until

BATCH = 16


async def order_many(client: httpx.AsyncClient, number: int, script: dict[str, Any]) -> list[str]:
    """Ids of so many jobs, in the order in which they were accepted."""
    ids: list[str] = []
    while len(ids) < number:
        told = await order(client, *[script] * min(BATCH, number - len(ids)))
        ids += [job["id"] for job in told.get("jobs", [told])]
    return ids


async def ask_for(client: httpx.AsyncClient, number: int = 1, **headers: str) -> httpx.Response:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return await client.post(GENERATION, json=body_of(*[{"script": NEVER}] * number), headers=names)


async def count_open(client: httpx.AsyncClient) -> int:
    jobs = (await client.get("/api/v1/jobs", params={"limit": 100})).json()["data"]
    return sum(not job["done"] for job in jobs)


async def until_refused(client: httpx.AsyncClient, code: str) -> httpx.Response:
    """Ask for jobs until there are too many: open ones are counted once a second."""
    async with asyncio.timeout(60):
        while (response := await ask_for(client)).status_code == 202:  # noqa: ASYNC110  asking is what is waited for
            await asyncio.sleep(0.02)
    refused(response, 429, code)
    return response


# -- who is next


async def test_a_job_waits_for_one_of_each_other_account_and_says_so(start):
    server = await start(ONE_SEAT)
    other = await server.sign_in("other")
    (running,) = await order_many(server.client, 1, NEVER)
    await until(server.client, running, phase="generating")
    mine = await order_many(server.client, 40, {})
    theirs = await order_many(other, 2, {})
    await until(other, theirs[1], queue_position=3)
    told = [(await look(server.client, job_id))["queue_position"] for job_id in mine]
    assert told == [0, 2, *range(4, 42)]
    assert (await look(other, theirs[0]))["queue_position"] == 1
    await cancel(server.client, running)
    ended = [await look(other, job_id, wait=20) for job_id in theirs]
    begun = [(await look(server.client, job_id))["started_at"] for job_id in mine]
    assert begun[0] < ended[0]["started_at"] < begun[1] < ended[1]["started_at"]
    assert not any(moment and moment < ended[1]["started_at"] for moment in begun[2:])


async def test_a_backlog_leaves_room_for_accounts_that_have_little(start):
    """Of 20 places that a process has, 18 go to the backlog of one account and 2 to those that have few."""
    server = await start(ONE_SEAT, {"jobs.max_held": 20})
    clients = [await server.sign_in(name) for name in ("second", "third", "fourth")]
    (running,) = await order_many(server.client, 1, NEVER)
    await until(server.client, running, phase="generating")
    backlog = await order_many(server.client, 30, NEVER)
    await until(server.client, backlog[16], queue_position=16)
    second, third = [(await order_many(client, 1, {}))[0] for client in clients[:2]]
    await until(clients[0], second, queue_position=1)
    await until(clients[1], third, queue_position=2)
    (fourth,) = await order_many(clients[2], 1, NEVER)
    assert (await look(clients[2], fourth))["queue_position"] is None
    assert (await look(server.client, backlog[17]))["queue_position"] is None
    await cancel(clients[1], third)  # a place is free: it goes to who has none
    await until(clients[2], fourth, queue_position=2)
    await cancel(server.client, running)
    await until(server.client, backlog[0], phase="generating")
    assert (await look(server.client, backlog[17]))["queue_position"] is None
    await cancel(server.client, backlog[0])
    assert (await look(clients[0], second, wait=20))["status"] == "succeeded"
    await until(clients[2], fourth, phase="generating")
    await cancel(server.client, backlog[1])
    await until(server.client, backlog[17], phase="throttled")  # all that wait are few enough again


async def test_what_nobody_has_taken_up_yet_is_ended_all_the_same(start):
    server = await start(ONE_SEAT, {"jobs.max_held": 20})
    await order_many(server.client, 18, NEVER)
    canceled, late = await order(server.client, NEVER), await order(server.client, NEVER, start_timeout=0.2)
    await cancel(server.client, canceled["id"])
    assert (await look(server.client, canceled["id"], wait=20))["status"] == "canceled"
    assert (await look(server.client, late["id"], wait=20))["status"] == "expired"


# -- how many may be open


async def test_a_key_has_no_more_jobs_open_than_it_may(start):
    server = await start(IDLE)
    client, colleague = await server.sign_in(concurrent_jobs=2), await server.sign_in()
    first = await ask_for(client)
    assert (first.status_code, limits(first)) == (202, ("2", "1"))
    assert limits(await ask_for(client)) == ("2", "0")
    error = refused(response := await ask_for(client), 429, "concurrency_limited")
    assert error["message"] == "This API key may have 2 jobs open at once: 2 are, and this request asks for 1 more."
    assert (error["retryable"], limits(response)) == (True, ("2", "0"))
    assert int(response.headers["retry-after"]) >= 1
    assert (await ask_for(colleague)).status_code == 202
    await cancel(client, first.json()["id"])
    await until(client, first.json()["id"], status="canceled")
    assert (await ask_for(client)).status_code == 202
    refused(await ask_for(client), 429, "concurrency_limited")


def limits(response: httpx.Response) -> tuple[str | None, str | None]:
    return response.headers.get("x-ratelimit-limit-jobs"), response.headers.get("x-ratelimit-remaining-jobs")


async def test_a_batch_that_does_not_fit_is_refused_whole(start):
    server = await start(IDLE)
    client = await server.sign_in("other", concurrent_jobs=5)
    assert limits(await ask_for(client, 3)) == ("5", "2")
    error = refused(response := await ask_for(client, 3), 429, "concurrency_limited")
    assert (limits(response), error["retryable"]) == (("5", "2"), True)
    assert await count_open(client) == 3
    never = refused(await ask_for(client, 6), 429, "concurrency_limited")
    assert (never["retryable"], "5" in never["suggestion"]) == (False, True)
    assert limits(await ask_for(client, 2)) == ("5", "0")


async def test_jobs_that_end_by_themselves_make_room(server):
    client = await server.sign_in("other", concurrent_jobs=1)
    for ending in ({}, FAILS, {}):
        job = await order(client, ending)
        assert (await look(client, job["id"], wait=20))["done"]


async def test_many_at_once_do_not_slip_through(start):
    server = await start(IDLE)
    client = await server.sign_in("other", concurrent_jobs=7)
    answers = await asyncio.gather(*(ask_for(client, 1 + number % 2) for number in range(30)))
    assert {response.status_code for response in answers} == {202, 429}
    assert sum(len(response.json().get("jobs", [1])) for response in answers if response.status_code == 202) == 7
    assert await count_open(client) == 7


async def test_a_repeated_request_finds_its_job_whatever_is_open(start):
    server = await start(IDLE)
    client = await server.sign_in(concurrent_jobs=1)
    first = await ask_for(client, idempotency_key="k")
    again = await ask_for(client, idempotency_key="k")
    assert again.headers["idempotency-replayed"] == "true"
    assert again.json()["id"] == first.json()["id"]
    retried = await ask_for(client, x_stainless_retry_count="1")
    assert retried.headers["duplicate-suppressed"] == "true"
    refused(await ask_for(client, idempotency_key="l"), 429, "concurrency_limited")


async def test_keys_that_replaced_each_other_share_one_limit(start):
    server = await start(WITH_ADMIN)
    admin = await administer(server)
    await make_account(admin)
    old = await make_key(admin, limits={"concurrent_jobs": 2})
    new = await call(admin, "POST", f"/keys/{old['public_id']}/rotate", {"overlap_seconds": 60}, 201)
    before, after = await sign_in(server, old["key"]), await sign_in(server, new["key"])
    assert [(await ask_for(client)).status_code for client in (before, after)] == [202, 202]
    for client in (before, after):
        refused(await ask_for(client), 429, "concurrency_limited")


async def sign_in(server: Server, key: str) -> httpx.AsyncClient:
    return await server.clients.enter_async_context(client_of(server.url, key))


async def test_all_keys_of_an_account_share_its_limit(start):
    server = await start(WITH_ADMIN)
    admin = await administer(server)
    await make_account(admin, limits={"concurrent_jobs": 3})
    one = await sign_in(server, (await make_key(admin, limits={"concurrent_jobs": 2}))["key"])
    two = await sign_in(server, (await make_key(admin))["key"])
    assert limits(await ask_for(one)) == ("2", "1")
    assert limits(await ask_for(two)) == ("3", "1")
    assert limits(await ask_for(one)) in {("2", "0"), ("3", "0")}
    assert "This API key may have 2" in refused(await ask_for(one), 429, "concurrency_limited")["message"]
    response = await ask_for(two)
    assert "Your account may have 3" in refused(response, 429, "concurrency_limited")["message"]
    assert limits(response) == ("3", "0")
    assert (await ask_for(server.client)).status_code == 202  # of another account


# -- how many may wait


async def test_an_account_that_fills_its_own_queue_fills_no_others(start):
    server = await start(IDLE, {"jobs.max_waiting": 3})
    other = await server.sign_in("other")
    refused(await ask_for(server.client, 4), 429, "queue_full")
    response = await until_refused(server.client, "queue_full")
    assert "at most 3" in response.json()["error"]["message"]
    assert int(response.headers["retry-after"]) >= 1
    assert (await ask_for(other, 3)).status_code == 202
    assert await count_open(server.client) >= 3


async def test_all_accounts_together_have_an_end_too(start):
    server = await start(IDLE, {"jobs.max_waiting_total": 4})
    other = await server.sign_in("other")
    assert (await ask_for(other, 3)).status_code == 202
    response = await until_refused(server.client, "queue_full")
    assert "The gateway" in response.json()["error"]["message"]
    assert not any(letter.isdigit() for letter in response.json()["error"]["message"])  # how many is nobody's business
    refused(await ask_for(other), 429, "queue_full")

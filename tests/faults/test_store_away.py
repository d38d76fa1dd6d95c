"""The database goes away under a gateway: for a moment nobody notices, for longer all are told to come again."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from conftest import Start
from fault_steps import PATIENCE_SECONDS, Site, check_away, site_of, timed, until
from openai_replies import GREETING, PROMPT_TOKENS, pieces_of
from postgres import PostgresServer
from test_events import Listener, shown

from penstock.store.queries.billing import balance_rows, completion_rows

OUTAGE_SECONDS = float(os.environ.get("PENSTOCK_TEST_OUTAGE", "12"))
"""Longer than three leases of workers; 60 to see an outage that is longer than those of money, too."""
WAIT_SECONDS = 50
ANSWER = (PROMPT_TOKENS + len(pieces_of(GREETING))) * 1_000_000
CAP = 4 * ANSWER


@pytest.fixture
async def site(postgres_store_url: str, start: Start, tmp_path: Path, postgres_server: PostgresServer):
    async with site_of(start, tmp_path, postgres_server, postgres_store_url) as site:
        yield site


@asynccontextmanager
async def outage(store: PostgresServer, how: signal.Signals = signal.SIGINT) -> AsyncGenerator[None]:
    """Until the block ends there is no database."""
    store.stop(how)
    try:
        yield
    finally:
        store.start()


async def test_an_outage_of_a_second_is_not_noticed(site: Site):
    client = await site.server.sign_in("spender", budgets={"total": "10"})
    begun = (await site.order(0.5)).json()
    await site.until_ordered(1)
    over = asyncio.Event()
    answers: list[httpx.Response] = []
    cut: list[httpx.Response] = []

    async def call(ask: Any) -> None:
        while not over.is_set():
            key = {"idempotency-key": uuid4().hex}
            while (response := await ask(key)).status_code == 503:
                cut.append(response)  # a commit that a crash cuts in two: nobody knows, so the caller asks again
            answers.append(response)
            await asyncio.sleep(0.05)

    calls = [
        asyncio.create_task(call(ask))
        for ask in (
            lambda _: site.client.get(f"/api/v1/jobs/{begun['id']}"),
            lambda key: site.order(0.05, **key),
            lambda _: site.ask(client),
        )
    ]
    for how in (signal.SIGINT, signal.SIGQUIT):  # in good order, and as by a crash
        gone = time.monotonic()
        async with outage(site.store, how):
            await asyncio.sleep(1 if how is signal.SIGINT else 0)
        await site.back()
        is_short = time.monotonic() - gone < PATIENCE_SECONDS - 1  # a busy machine may take longer to start it
        assert len(cut) <= (0 if how is signal.SIGINT else 2) or not is_short, cut
        cut.clear()
    over.set()
    await asyncio.gather(*calls)
    assert {response.status_code for response in answers} <= {200, 202}
    accepted = [response.json()["id"] for response in answers if response.status_code == 202]
    for job_id in (begun["id"], *accepted):
        assert (await site.server.finish(job_id))["status"] == "succeeded"
    await site.check_books(1 + len(accepted))


async def test_a_long_outage_is_told_and_nothing_is_lost_by_it(site: Site):
    """Jobs, streams, waits and chat are under way when it begins; all of them end well when it is over."""
    spender = await site.server.sign_in("spender", budgets={"total": f"{CAP / 1e9:.9f}"})
    stranger = await site.server.sign_in("stranger")  # whose key this process has never looked up
    assert (await site.ask(spender)).status_code == 200
    jobs = [(await site.order(latency)).json()["id"] for latency in (2, 2, OUTAGE_SECONDS + 3)]
    await site.until_ordered(3)
    held = asyncio.create_task(site.client.get(f"/api/v1/jobs/{jobs[0]}", params={"wait": WAIT_SECONDS}))
    posted = asyncio.create_task(site.order(2, prefer=f"wait={WAIT_SECONDS}"))
    await site.until_ordered(4)
    opened = asyncio.Event()
    streamed = asyncio.create_task(hear_all(site, jobs[1], opened))
    await opened.wait()
    speech = asyncio.create_task(site.ask(spender, "slow:0.4", stream=True))
    await until(lambda: len(site.upstream.requests) == 2)
    async with outage(site.store):
        gone = time.monotonic()
        rush = asyncio.gather(*(site.ask(spender) for _ in range(20)))
        await check_everyone_is_told(site, jobs[0], spender, stranger)
        await check_rush(await rush)
        assert (await speech).text.rstrip().endswith("data: [DONE]")
        await asyncio.sleep(max(0.0, OUTAGE_SECONDS - (time.monotonic() - gone)))
    assert await site.back() < 20
    assert (await site.back(stranger)) < 20
    waited = [(await answer).json() for answer in (held, posted)]
    assert {job["status"] for job in waited} == {"succeeded" if OUTAGE_SECONDS < WAIT_SECONDS else "running"}
    for job_id in (*jobs, waited[1]["id"]):
        assert (await site.server.finish(job_id))["status"] == "succeeded"
    events = await streamed
    assert [sequence for _, sequence in shown(events)] == list(range(1, len(events) + 1))
    assert events[-1]["type"] == "job.succeeded"
    await check_spending(site, spender)
    await site.check_books(4)


async def hear_all(site: Site, job_id: str, opened: asyncio.Event) -> list[dict[str, Any]]:
    """Every event of a job; whoever loses the line goes on from the last one."""
    heard: list[dict[str, Any]] = []
    while not heard or not heard[-1]["data"]["done"]:
        headers = {"last-event-id": heard[-1]["id"]} if heard else {}
        async with site.client.stream("GET", f"/api/v1/jobs/{job_id}/events", headers=headers) as response:
            assert response.status_code in {200, 503}
            listener = Listener(response, seconds=20)
            with suppress(TimeoutError):
                while response.status_code == 200 and (event := await listener.next()) is not None:
                    heard.append(event)
                    opened.set()
    return heard


async def check_everyone_is_told(
    site: Site, job_id: str, spender: httpx.AsyncClient, stranger: httpx.AsyncClient
) -> None:
    await asyncio.sleep(1)  # from now on what is known of a key no longer counts
    answers = await asyncio.gather(
        timed(site.client.get(f"/api/v1/jobs/{job_id}")),
        timed(site.client.get("/api/v1/jobs/job_00000000000000000000000000")),
        timed(stranger.get("/api/v1/jobs")),
        timed(site.order(1)),
        timed(site.order(1, stranger)),
        timed(site.ask(spender)),
        timed(site.ask(stranger)),
        timed(site.client.get("/api/v1/events")),
        timed(site.client.get("/api/v1/usage")),
        timed(site.client.get("/api/v1/webhooks")),
    )
    for response, seconds in answers:
        check_away(response, seconds)
    assert (await site.client.get("/healthz")).status_code == 200
    ready = await site.client.get("/readyz")
    assert (ready.status_code, ready.json()["status"]) == (200, "degraded"), "chat is still served"
    assert ready.json()["checks"]["store"] == "does not answer"
    for header in ("Bearer psk_made_up", "Basic abc"):  # what needs no store to be told is told
        assert (await site.client.get("/api/v1/jobs", headers={"authorization": header})).status_code == 401


async def check_rush(answers: list[httpx.Response]) -> None:
    """In the moment when a key is still known: who is let in is let in by what the process has leased, no further."""
    let_in = [response for response in answers if response.status_code == 200]
    assert len(let_in) * ANSWER <= CAP
    assert {response.status_code for response in answers} <= {200, 402, 503}


async def check_spending(site: Site, spender: httpx.AsyncClient) -> None:
    """Every answer is recorded once, and the cap holds."""
    gateway = site.server.gateway
    await gateway.usage_writer.flush()
    payer = (await gateway.keyring.check(spender.headers["authorization"])).payer
    records = await gateway.database.read(completion_rows.of_account, payer.account_id)
    assert len([record for record in records if record.usage.completion]) == len(site.upstream.requests)
    (budget,) = await gateway.database.read(balance_rows.standings, payer, time.time())
    assert budget.spent == len(site.upstream.requests) * ANSWER <= CAP

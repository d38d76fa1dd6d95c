"""Chat goes on while the store is away: known keys, what is leased and the journal suffice, for a bounded time."""

import asyncio
import signal
import sqlite3
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from chat_steps import HELLO, settings_of
from conftest import Server, Start, client_of
from fault_steps import CHAT, PRICE, Site, check_away, site_of, timed, until, until_answered
from openai_double import OpenAIDouble
from openai_replies import GREETING, PROMPT_TOKENS, pieces_of
from postgres import PostgresServer

from penstock.accounts.administration import revoke_key
from penstock.domain.accounts import Actor
from penstock.store.connect import open_database
from penstock.store.queries.billing import balance_rows, completion_rows
from penstock.store.queries.billing.ledger_audit import check

ANSWER = (PROMPT_TOKENS + len(pieces_of(GREETING))) * 1_000_000
ROUNDS = 15
BOUND_SECONDS = 4


@pytest.fixture
async def site(
    postgres_store_url: str, start: Start, tmp_path: Path, postgres_server: PostgresServer
) -> AsyncGenerator[Site]:
    async with site_of(start, tmp_path, postgres_server, postgres_store_url) as site:
        yield site


@pytest.fixture
async def short_site(
    postgres_store_url: str, start: Start, tmp_path: Path, postgres_server: PostgresServer
) -> AsyncGenerator[Site]:
    more = f"[chat]\noutage_seconds = {BOUND_SECONDS}\n"
    async with site_of(start, tmp_path, postgres_server, postgres_store_url, more) as site:
        yield site


@contextmanager
def outage(store: PostgresServer, how: str) -> Generator[None]:
    """Until the block ends the store is frozen or killed."""
    if how == "frozen":
        with store.frozen():
            yield
    else:
        store.stop(signal.SIGQUIT)
        try:
            yield
        finally:
            store.start()


async def warm_up(site: Site, *clients: httpx.AsyncClient, seconds: float = 2.0) -> int:
    """Use keys steadily for a while. Return the number of answers."""
    answers, begun = 0, time.monotonic()
    while time.monotonic() - begun < seconds:
        for client in clients:
            assert (await site.ask(client)).status_code == 200
            answers += 1
        await asyncio.sleep(0.05)
    return answers


async def spent_by(site: Site, client: httpx.AsyncClient) -> tuple[int, int]:
    """What is charged to a key's budget, and how many answers are recorded."""
    gateway = site.server.gateway
    await gateway.usage_writer.flush()
    payer = (await gateway.keyring.check(client.headers["authorization"])).payer
    records = await gateway.database.read(completion_rows.of_account, payer.account_id, 10_000)
    [budget] = await gateway.database.read(balance_rows.standings, payer, time.time())
    return budget.spent, len([record for record in records if record.usage.completion])


@pytest.mark.parametrize("how", ["frozen", "killed"])
async def test_known_keys_chat_on_while_the_store_is_away(site: Site, how: str):
    free = await site.server.sign_in("free")
    spender = await site.server.sign_in("spender", budgets={"total": "1000"})
    stranger = await site.server.sign_in("stranger")  # whose key this process has never looked up
    asked = await warm_up(site, free, spender)
    with outage(site.store, how):
        begun = time.monotonic()
        for number in range(ROUNDS):
            for client in (free, spender):
                answer = await site.ask(client, stream=number % 2 == 1)
                assert answer.status_code == 200, answer.text
                asked += 1
            await asyncio.sleep(0.1)
        models = await free.get("/llm/models")
        assert models.status_code == 200
        ready = await site.client.get("/readyz")
        assert (ready.status_code, ready.json()["status"]) == (200, "degraded")
        told = ready.json()["outage"]
        assert told["seconds"] > 0 < told["seconds_left"] < 60
        assert "penstock_store_away_seconds 0.0" not in (await site.client.get("/metrics")).text
        waiting = [asyncio.create_task(timed(each)) for each in (site.ask(stranger), site.order(1))]
        if how == "killed":
            for task in waiting:
                check_away(*await task)
        assert time.monotonic() - begun < 60, "the bound must not have passed"
    if how == "frozen":  # who waited is answered when it is back
        assert [(await task)[0].status_code for task in waiting] == [200, 202]
        asked += 1
    await until_answered(site.client, "/api/v1/jobs", 200)
    assert len(site.upstream.requests) == asked
    spent, recorded = await spent_by(site, spender)
    assert spent == recorded * ANSWER
    assert await site.server.gateway.database.read(check) == []
    assert (await until_answered(site.client, "/readyz", 200)).json()["status"] == "ready"
    assert "penstock_store_away_seconds 0.0" in (await site.client.get("/metrics")).text


async def test_chat_ends_with_the_bound_and_comes_back_by_itself(short_site: Site):
    site = short_site
    free = await site.server.sign_in("free")
    await warm_up(site, free, seconds=0.5)
    with outage(site.store, "killed"):
        assert (await site.ask(free)).status_code == 200
        await until_answered(site.client, "/readyz", 503)
        ready = (await site.client.get("/readyz")).json()
        assert (ready["status"], ready["outage"]["seconds_left"]) == ("unavailable", 0)
        check_away(*await timed(site.ask(free)))
    assert (await until_answered(site.client, "/readyz", 200)).json()["status"] == "ready"
    assert (await site.ask(free)).status_code == 200


async def test_no_more_is_spent_than_was_leased(site: Site):
    """A crowd wants the whole of a small budget: whoever is let in is let in by the lease, all others wait."""
    cap = 30 * ANSWER
    spender = await site.server.sign_in("spender", budgets={"total": f"{cap / 1e9:.9f}"})
    await warm_up(site, spender, seconds=0.5)
    gateway = site.server.gateway
    payer = (await gateway.keyring.check(spender.headers["authorization"])).payer
    [budget] = await gateway.database.read(balance_rows.standings, payer, time.time())
    before = len(site.upstream.requests)
    with outage(site.store, "killed"):
        answers = await asyncio.gather(*(site.ask(spender) for _ in range(60)))
        let_in = len(site.upstream.requests) - before
        assert {answer.status_code for answer in answers} <= {200, 503}
        assert let_in * ANSWER <= cap - budget.spent
        assert sum(answer.status_code == 200 for answer in answers) == let_in
    await site.back()
    spent, recorded = await spent_by(site, spender)
    assert spent == recorded * ANSWER == len(site.upstream.requests) * ANSWER <= cap
    assert await gateway.database.read(check) == []


async def test_a_revocation_counts_when_the_store_is_back_to_say_so(site: Site, postgres_store_url: str):
    """One gateway is cut off, the store is not: another process revokes a key there."""
    cut_off = await site.server.sign_in("cut off")
    await warm_up(site, cut_off, seconds=0.5)
    gateway = site.server.gateway
    key = await gateway.keyring.check(cut_off.headers["authorization"])
    other = open_database(postgres_store_url)
    look, line = gateway.database.look, asyncio.Event()

    async def be_cut_off(*args: Any, **options: Any) -> Any:
        await line.wait()
        return await look(*args, **options)

    gateway.database.look = be_cut_off  # type: ignore[method-assign]
    try:
        await until(lambda: gateway.contact.is_away)
        await other.write(revoke_key, Actor.CLI, key.public_id, time.time())
        assert (await site.ask(cut_off)).status_code == 200, "nobody here can know"
        line.set()
        await until(lambda: not gateway.contact.is_away)
        assert (await site.ask(cut_off)).json()["error"]["code"] == "revoked_api_key"
    finally:
        line.set()
        await other.close()


# -- SQLite, locked by another process


async def test_a_locked_file_stops_no_chat_that_has_leased_what_it_needs(start: Start, tmp_path: Path):
    async with OpenAIDouble() as upstream:
        server = await start(settings_of(upstream, ("plain",), price=PRICE))
        free, spender = await server.sign_in("free"), await server.sign_in("spender", budgets={"total": "1000"})
        assert {(await ask(each)).status_code for each in (free, spender)} == {200}
        for _ in range(20):
            assert (await ask(spender)).status_code == 200
        with closing(sqlite3.connect(path_of(server), isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            for _ in range(10):
                assert {(await ask(each)).status_code for each in (free, spender)} == {200}
            other.execute("ROLLBACK")
        await server.gateway.usage_writer.flush()
        assert await server.gateway.database.read(check) == []
        async with client_of(server.url, None) as nobody:
            assert (await nobody.get("/readyz")).json()["status"] == "ready"


async def ask(client: httpx.AsyncClient) -> httpx.Response:
    return await client.post(CHAT, json={"model": "plain", "messages": HELLO, "max_tokens": 20})


def path_of(server: Server) -> Path:
    return Path(server.gateway.settings.database_url.removeprefix("sqlite:///"))

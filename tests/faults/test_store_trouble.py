"""A database that is there and does not serve: it hangs, is full of others, is locked, or only lets read."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from conftest import Start
from fault_steps import Site, check_away, site_of, timed
from postgres import PostgresServer

HANG_SECONDS = 17.0
"""How long the answer of a server that hangs is waited for: patience, and the longest that a statement may take."""
LOCK_SECONDS = 8.0


@pytest.fixture
async def site(
    postgres_store_url: str, start: Start, tmp_path: Path, postgres_server: PostgresServer
) -> AsyncGenerator[Site]:
    async with site_of(start, tmp_path, postgres_server, postgres_store_url) as site:
        yield site


async def settle(site: Site, jobs: int) -> None:
    """It serves again by itself, and what was under way has ended well."""
    assert await site.back() < 30
    assert (await site.order(0.05)).status_code == 202
    for job in (await site.client.get("/api/v1/jobs")).json()["data"]:
        assert (await site.server.finish(job["id"]))["status"] == "succeeded"
    await site.check_books(jobs + 1)


@pytest.mark.long
async def test_a_database_that_hangs_is_told_in_bounded_time(site: Site):
    job = (await site.order(1)).json()
    await site.until_ordered(1)
    with site.store.frozen():
        await asyncio.sleep(1)
        assert (await site.ask(site.client)).status_code == 200, "a known key chats on"
        answers = await asyncio.gather(
            timed(site.client.get(f"/api/v1/jobs/{job['id']}")),
            timed(site.order(1)),
        )
        for answer in answers:
            check_away(*answer, most=HANG_SECONDS)
        assert (await site.client.get("/healthz")).status_code == 200
    await settle(site, 1)


@contextmanager
def crowd(url: str) -> Generator[int]:
    """Others take every connection that the server has; how many they are."""
    with ExitStack() as stack:
        connections: list[psycopg.Connection] = []
        with suppress(psycopg.OperationalError):
            while True:
                connections.append(stack.enter_context(psycopg.connect(url, application_name="others")))
        yield len(connections)
        for connection in connections:
            connection.close()


async def test_without_a_free_connection_all_are_told_and_it_passes(site: Site, postgres_store_url: str):
    job = (await site.order(1)).json()
    await site.until_ordered(1)
    name = postgres_store_url.rpartition("/")[2]
    site.store.cut("penstock", name)
    with crowd(postgres_store_url) as others:
        assert others > 100
        await asyncio.sleep(1)
        assert (await site.ask(site.client)).status_code == 200, "a known key chats on"
        for answer in await asyncio.gather(timed(site.client.get(f"/api/v1/jobs/{job['id']}")), timed(site.order(1))):
            check_away(*answer)
    await settle(site, 1)


@pytest.mark.long
async def test_behind_a_lock_nobody_waits_for_ever(site: Site, postgres_store_url: str):
    job = (await site.order(1)).json()
    await site.until_ordered(1)
    with psycopg.connect(postgres_store_url) as other:
        other.execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
        answers = await asyncio.gather(
            *(timed(site.client.get(f"/api/v1/jobs/{job['id']}")) for _ in range(5)),
            *(timed(site.order(1)) for _ in range(5)),
        )
        for answer in answers:
            check_away(*answer, most=LOCK_SECONDS + 5)
        other.rollback()
    await settle(site, 1)


async def test_a_database_that_only_lets_read_is_read(site: Site):
    """As a standby is, until a failover has made it the one to write to."""
    job = (await site.order(1)).json()
    await site.until_ordered(1)
    spender = await site.server.sign_in("spender", budgets={"total": "1"})
    site.store.demote()
    try:
        assert await site.back() < 30
        for answer in await asyncio.gather(timed(site.order(1)), timed(site.ask(spender))):
            check_away(*answer)
        assert (await site.client.get(f"/api/v1/jobs/{job['id']}")).status_code == 200
    finally:
        site.store.promote()
    assert (await site.ask(spender)).status_code == 200
    await settle(site, 1)

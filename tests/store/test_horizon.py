"""Up to which position the event log on PostgreSQL is complete, while transactions are under way."""

import asyncio
from collections.abc import AsyncGenerator, Generator

import psycopg
import pytest

from penstock.errors import StoreUnavailable
from penstock.store.database import Database
from penstock.store.opening import open_database

APPEND = (
    "INSERT INTO events (account_id, job_id, sequence, type, created_at, document) "
    "VALUES ('acct_1', %s, 1, 'job.queued', 1, '{}') RETURNING position"
)


@pytest.fixture
async def store(postgres_store_url: str) -> AsyncGenerator[Database]:
    database = open_database(postgres_store_url)
    yield database
    await database.close()


@pytest.fixture
def writer(postgres_store_url: str) -> Generator[psycopg.Connection]:
    with psycopg.connect(postgres_store_url) as connection:
        yield connection


def append(writer: psycopg.Connection, job_id: str) -> int:
    row = writer.execute(APPEND, (job_id,)).fetchone()
    assert row is not None
    return row[0]


async def test_what_is_committed_is_complete(store: Database, writer: psycopg.Connection):
    assert await store.settled() == 0
    position = append(writer, "job_1")
    writer.commit()
    assert await store.settled() == position


async def test_the_newest_transaction_is_waited_for_though_no_snapshot_lists_it(
    store: Database, writer: psycopg.Connection
):
    """One that began after the last that ended is not in a snapshot's list."""
    position = append(writer, "job_1")
    finding = asyncio.create_task(store.settled())
    await asyncio.wait((finding,), timeout=0.3)
    assert not finding.done()
    writer.commit()
    assert await finding == position


async def test_an_older_one_that_goes_on_keeps_newer_ones_back(
    store: Database, writer: psycopg.Connection, postgres_store_url: str
):
    first = append(writer, "job_1")
    with psycopg.connect(postgres_store_url) as other:
        second = append(other, "job_2")
    assert first < second
    assert await store.settled() == 0
    writer.commit()
    assert await store.settled() == second


async def test_those_who_come_later_are_not_waited_for(
    store: Database, writer: psycopg.Connection, postgres_store_url: str
):
    position = append(writer, "job_1")
    finding = asyncio.create_task(store.settled())
    await asyncio.wait((finding,), timeout=0.2)
    with psycopg.connect(postgres_store_url) as later:
        append(later, "job_2")
        writer.commit()
        assert await finding == position


async def test_a_store_that_is_away_is_told_so(store: Database, postgres_server):
    postgres_server.stop()
    try:
        with pytest.raises(StoreUnavailable):
            await store.settled()
    finally:
        postgres_server.start()

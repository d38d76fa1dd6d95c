"""PostgreSQL is cut off, restarted, killed and frozen: callers wait a little or are told, and nothing is lost."""

import asyncio
import signal
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from postgres import PostgresServer
from sqlalchemy import Connection, text
from store.fleet import at_once, count, line_to, processes, rows, until
from store.sample_jobs import NOW, make_job

from penstock.errors import InvalidRequest, JobNotFound, StoreUnavailable
from penstock.store.postgres import database as postgresql
from penstock.store.postgres import listener
from penstock.store.postgres.database import PostgresDatabase
from penstock.store.queries.jobs import job_rows


@pytest.fixture
async def database(postgres_store_url: str) -> AsyncGenerator[PostgresDatabase]:
    async with processes(postgres_store_url, 1) as (database,):
        yield database


async def accept(database: PostgresDatabase) -> Any:
    return await database.write(job_rows.insert_all, [make_job()], NOW)


class Load:
    """Jobs that are accepted and read without a pause, until it is stopped."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._stopping = asyncio.Event()
        self._workers = [asyncio.create_task(self._work()) for _ in range(4)]
        self.accepted: set[str] = set()
        self.errors: list[BaseException] = []

    async def _work(self) -> None:
        while not self._stopping.is_set():
            try:
                ((job),) = await accept(self._database)
                await self._database.read(job_rows.get, job.account_id, job.id)
            except StoreUnavailable as error:
                self.errors.append(error)
            else:
                self.accepted.add(job.id)

    async def more(self, number: int = 5) -> None:
        """Until so many more are accepted."""
        wanted = len(self.accepted) + number

        async def enough() -> bool:
            return len(self.accepted) >= wanted

        await until(enough, 30)

    async def stop(self) -> None:
        self._stopping.set()
        await asyncio.gather(*self._workers)


async def test_a_write_whose_connection_is_cut_before_the_commit_is_done_once(database, postgres_server):
    tries: list[int] = []

    def write(connection: Connection) -> None:
        job_rows.insert_all(connection, [make_job()], NOW)
        tries.append(connection.execute(text("SELECT pg_backend_pid()")).scalar_one())
        if len(tries) < 3:
            postgres_server.execute(f"SELECT pg_terminate_backend({tries[-1]}, 5000)")
        connection.execute(text("SELECT 1"))

    await database.write(write)
    assert len(set(tries)) == 3
    assert await count(database, "jobs") == await count(database, "events") == 1


async def test_a_commit_of_which_nobody_knows_is_told_as_such(database, postgres_server):
    """It may be done or not: trying again by ourselves could do it twice."""

    def write(connection: Connection) -> None:
        job_rows.insert_all(connection, [make_job()], NOW)
        pid = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
        postgres_server.execute(f"SELECT pg_terminate_backend({pid}, 5000)")

    with pytest.raises(StoreUnavailable):
        await database.write(write)
    assert await count(database, "jobs") == 0
    await accept(database)


async def test_connections_that_were_cut_while_idle_are_not_noticed(database, postgres_server):
    await at_once(*(accept(database) for _ in range(8)), *(count(database, "jobs") for _ in range(8)))
    assert postgres_server.cut() >= 2
    told = await at_once(*(accept(database) for _ in range(8)), *(count(database, "jobs") for _ in range(8)))
    assert not [each for each in told if isinstance(each, Exception)]
    assert await count(database, "jobs") == 16


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
async def test_a_restart_under_load_is_not_noticed(database, postgres_server, how):
    """But by those whose commit was under way."""
    load = Load(database)
    await load.more()
    await asyncio.to_thread(postgres_server.stop, how)
    await asyncio.sleep(1)
    await asyncio.to_thread(postgres_server.start)
    await load.more()
    await load.stop()
    assert len(load.errors) <= 4
    assert all(error.__cause__ is not None for error in load.errors)
    stored = {job_id for (job_id,) in await database.read(rows, "SELECT id FROM jobs")}
    assert stored >= load.accepted


async def test_a_server_that_stays_away_is_told_soon_and_found_again(database, postgres_server):
    await accept(database)
    database.patience = 1.0
    postgres_server.stop()
    try:
        begun = asyncio.get_running_loop().time()
        told = await at_once(accept(database), count(database, "jobs"), database.settled())
        assert [type(each) for each in told] == [StoreUnavailable] * 3
        assert asyncio.get_running_loop().time() - begun < 20
    finally:
        postgres_server.start()
    database.patience = 60
    await accept(database)
    assert await count(database, "jobs") == 2


async def test_a_server_that_hangs_keeps_nobody_and_no_thread(database, postgres_server: PostgresServer, monkeypatch):
    await asyncio.gather(*(accept(database) for _ in range(8)))
    monkeypatch.setattr(postgresql, "STUCK_SECONDS", 1.0)
    database.patience = 1.0
    with postgres_server.frozen():
        begun = asyncio.get_running_loop().time()
        told = await at_once(*(accept(database) for _ in range(12)), *(count(database, "jobs") for _ in range(12)))
        assert {type(each) for each in told} == {StoreUnavailable}
        assert asyncio.get_running_loop().time() - begun < 30
    database.patience = 60
    await accept(database)
    assert await count(database, "jobs") >= 9


async def test_connections_that_died_without_a_word_are_given_up(postgres_store_url, monkeypatch):
    """By whoever reads, writes, looks how far the log goes, and listens."""
    for module in (postgresql, listener):
        monkeypatch.setattr(module, "STUCK_SECONDS", 1.0)
    async with line_to(postgres_store_url) as line, processes(line.url, 1) as (ours,):
        ours.patience = 0.5
        await ours.watch()
        await at_once(*(accept(ours) for _ in range(4)), *(count(ours, "jobs") for _ in range(4)), ours.settled())
        line.die()
        told = await at_once(accept(ours), count(ours, "jobs"), ours.settled())
        assert {type(each) for each in told} == {StoreUnavailable}
        ours.patience = 60
        told = await at_once(accept(ours), count(ours, "jobs"), ours.settled())
        assert not [each for each in told if isinstance(each, Exception)]
        async with processes(postgres_store_url, 1) as (theirs,):
            job = make_job()
            with ours.signals.listen(job.id) as subscription:
                await theirs.write(job_rows.insert_all, [job], NOW)
                assert await subscription.wait(60)


async def test_after_one_is_given_up_no_old_connection_is_trusted(postgres_store_url, monkeypatch):
    """Whichever is asked for: some wait in the pool, and nobody has noticed yet that they are dead, too."""
    monkeypatch.setattr(postgresql, "STUCK_SECONDS", 0.5)
    async with line_to(postgres_store_url) as line, processes(line.url, 1) as (ours,):
        await at_once(*(ours.write(rows, "SELECT pg_sleep(0.1)") for _ in range(4)))
        line.die()
        ours.patience = 0.5
        with pytest.raises(StoreUnavailable):
            await accept(ours)
        ours.patience = 60
        told = await at_once(*(accept(ours) for _ in range(4)))
        assert not [each for each in told if isinstance(each, Exception)]


@pytest.mark.long
async def test_who_stops_while_the_server_hangs_ends_all_the_same(postgres_store_url, postgres_server, monkeypatch):
    monkeypatch.setattr(listener, "STUCK_SECONDS", 2.0)
    monkeypatch.setattr(listener, "CATCH_UP_SECONDS", 0.1)
    async with asyncio.timeout(40), processes(postgres_store_url, 1) as (ours,):
        ours.patience = 0.5
        await ours.watch()
        await count(ours, "jobs")
        with postgres_server.frozen():
            await asyncio.sleep(0.5)
            reading = asyncio.create_task(count(ours, "jobs"))
            await asyncio.sleep(0.1)
            reading.cancel()
            await ours.close()


async def test_a_statement_that_takes_too_long_is_ended(postgres_store_url):
    session = postgresql.SESSION.replace("statement_timeout=10000", "statement_timeout=200")
    engine = postgresql.make_pool(postgres_store_url, session)
    with engine.connect() as connection, pytest.raises(Exception, match="statement timeout"):
        connection.execute(text("SELECT pg_sleep(5)"))
    engine.dispose()


async def test_a_key_that_is_there_already_is_an_error_in_the_end(database):
    job = make_job()
    await database.write(job_rows.insert_all, [job], NOW)
    with pytest.raises(StoreUnavailable) as refusal:
        await database.write(job_rows.insert_all, [job], NOW)
    assert "duplicate key" in str(refusal.value.__cause__)


async def test_what_cannot_be_stored_is_the_askers_fault(database):
    with pytest.raises(InvalidRequest, match="too large"):
        await database.write(job_rows.insert_all, [make_job(estimated=1 << 70)], NOW)
    assert await count(database, "jobs") == 0


async def test_nothing_is_found_by_a_text_that_no_row_can_have(database):
    await accept(database)
    with pytest.raises(JobNotFound):
        await database.read(job_rows.get, "acct_one", "job_\0")
    assert await database.read(job_rows.page, "acct_one", {"client_ref": "\0"}, None, 10) == []


async def test_what_is_in_a_document_may_be_any_text(database):
    job = make_job(metadata={"a": "\0"}, params={"prompt": "\0\u2028"})
    await database.write(job_rows.insert_all, [job], NOW)
    assert (await database.read(job_rows.get, job.account_id, job.id)).params == job.params


async def test_words_stand_in_the_order_of_their_bytes(database):
    """As in SQLite, whatever the server's language is."""
    found = await database.read(
        rows,
        "SELECT table_name, column_name FROM information_schema.columns WHERE data_type = 'character varying' "
        "AND table_schema = 'public' AND collation_name IS DISTINCT FROM 'C' AND table_name != 'alembic_version'",
    )
    assert found == []

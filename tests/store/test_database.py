"""The store's engine: waiting writes share a commit, each fails alone, and no failure outlives its cause."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncGenerator, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection
from sqlalchemy import text as sql

from penstock.errors import StoreUnavailable
from penstock.observability.metrics import REGISTRY
from penstock.store.connect import open_database
from penstock.store.database import RUNG, Database
from penstock.store.sqlite.database import MAX_BATCH, MAX_QUEUED_WRITES, SqliteDatabase

INSERT = sql("INSERT INTO notes VALUES (:words)")


def create(connection: Connection) -> None:
    connection.exec_driver_sql("CREATE TABLE notes (text TEXT PRIMARY KEY)")


def note(connection: Connection, text: str, topic: str | None = None) -> str:
    connection.execute(INSERT, {"words": text})
    if topic is not None:
        connection.info[RUNG].add(topic)
    return text


def note_and_fail(connection: Connection, text: str, topic: str) -> None:
    note(connection, text, topic)
    raise LookupError(text)


def notes(connection: Connection) -> list[str]:
    return list(connection.exec_driver_sql("SELECT text FROM notes ORDER BY text").scalars())


def commits() -> float:
    return REGISTRY.get_sample_value("penstock_store_write_batch_size_count") or 0


@pytest.fixture
async def database(tmp_path: Path) -> AsyncGenerator[Database]:
    database = SqliteDatabase(tmp_path / "notes.db")
    await database.write(create)
    yield database
    await database.close()


@pytest.fixture
async def either(empty_url: str) -> AsyncGenerator[Database]:
    """A store of either kind."""
    database = open_database(empty_url)
    await database.write(create)
    yield database
    await database.close()


class Gate:
    """Holds the writer inside a transaction, so that what comes meanwhile waits for the next."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.opened = threading.Event()

    def hold(self, _connection: Connection) -> None:
        self.entered.set()
        assert self.opened.wait(60)


@pytest.fixture
async def gate(database: Database) -> AsyncGenerator[Gate]:
    gate = Gate()
    held = asyncio.create_task(database.write(gate.hold))
    await asyncio.to_thread(gate.entered.wait, 60)
    yield gate
    gate.opened.set()
    await held


async def queue_up(*writes: Coroutine[Any, Any, Any]) -> list[asyncio.Task]:
    tasks = [asyncio.create_task(write) for write in writes]
    await asyncio.sleep(0)  # each has put its work into the queue
    return tasks


@contextmanager
def locked(database: Database) -> Iterator[None]:
    """Another process holds the write lock."""
    other = sqlite3.connect(database.engine.url.database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.close()


# -- one commit for many


async def test_waiting_writes_share_commits(database, gate):
    before = commits()
    tasks = await queue_up(*(database.write(note, f"{number:03}") for number in range(200)))
    gate.opened.set()
    assert await asyncio.gather(*tasks) == [f"{number:03}" for number in range(200)]
    assert commits() - before == 1 + -(-200 // MAX_BATCH)
    assert await database.read(notes) == [f"{number:03}" for number in range(200)]


async def test_a_failing_write_undoes_only_itself_and_tells_its_own_caller(database, gate):
    tasks = await queue_up(
        database.write(note, "first"),
        database.write(note_and_fail, "second", "topic"),
        database.write(note, "first"),
        database.write(note, "third"),
    )
    gate.opened.set()
    first, second, twice, third = await asyncio.gather(*tasks, return_exceptions=True)
    assert (first, third) == ("first", "third")
    assert isinstance(second, LookupError)
    assert str(second) == "second"
    assert isinstance(twice, StoreUnavailable)
    assert twice.retry_after
    assert await database.read(notes) == ["first", "third"]


async def test_a_write_that_returns_is_there_for_everyone(either, empty_url):
    await either.write(note, "kept")
    other = open_database(empty_url)
    assert await other.read(notes) == ["kept"]
    await other.close()


async def test_a_write_that_fails_undoes_only_itself(either):
    writes = (either.write(note, "a"), either.write(note_and_fail, "b", "topic"), either.write(note, "c"))
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [str, LookupError, str]
    with pytest.raises(StoreUnavailable):
        await either.write(note, "a")
    assert await either.read(notes) == ["a", "c"]


async def test_a_caller_that_goes_away_takes_nothing_with_it(database, gate):
    tasks = await queue_up(*(database.write(note, text) for text in ("a", "b", "c")))
    tasks[1].cancel()
    gate.opened.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [outcomes[0], outcomes[2]] == ["a", "c"]
    assert isinstance(outcomes[1], asyncio.CancelledError)
    assert await database.read(notes) == ["a", "b", "c"]  # it was under way: a cancel does not undo


async def test_the_event_loop_runs_while_the_writer_works(database, gate):
    async with asyncio.timeout(300):
        assert await database.read(notes) == []
    gate.opened.set()


# -- the bell


async def test_the_bell_rings_after_the_commit(database, gate):
    with database.signals.listen("topic") as subscription:
        (task,) = await queue_up(database.write(note, "news", "topic"))
        assert not await subscription.wait(0.02)
        gate.opened.set()
        assert await subscription.wait(60)
        assert await database.read(notes) == ["news"]
        await task


async def test_the_bell_is_silent_for_what_was_undone(either):
    with either.signals.listen("topic") as subscription, either.signals.listen("other") as other:
        with pytest.raises(LookupError):
            await either.write(note_and_fail, "undone", "topic")
        await either.write(note, "done", "other")
        assert await other.wait(60)
        assert not await subscription.wait(0)


async def test_the_bell_is_silent_for_a_batch_that_was_lost(database, gate):
    def lose_transaction(connection: Connection) -> None:
        connection.exec_driver_sql("ROLLBACK")  # as SQLite does by itself on a full disk or an input/output error

    with database.signals.listen("topic") as subscription:
        tasks = await queue_up(
            database.write(note, "a", "topic"), database.write(lose_transaction), database.write(note, "b", "topic")
        )
        gate.opened.set()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [StoreUnavailable] * 3
        assert not await subscription.wait(0)
    assert await database.read(notes) == []
    assert await database.write(note, "later") == "later"


# -- trouble


async def test_a_full_queue_is_told_at_once(database, gate):
    tasks = await queue_up(*(database.write(note, str(number)) for number in range(MAX_QUEUED_WRITES)))
    with pytest.raises(StoreUnavailable) as refusal:
        await database.write(note, "too many")
    assert refusal.value.retry_after
    gate.opened.set()
    await asyncio.gather(*tasks)
    assert await database.write(note, "again") == "again"
    assert len(await database.read(notes)) == MAX_QUEUED_WRITES + 1


async def test_a_locked_store_is_unavailable_until_it_is_free(database):
    database.patience = 0.03
    with database.signals.listen("topic") as subscription:
        with locked(database):
            with pytest.raises(StoreUnavailable) as refusal:
                await database.write(note, "refused", "topic")
            assert "locked" in str(refusal.value.__cause__)
            assert await database.read(notes) == []  # readers do not wait for writers
        assert not await subscription.wait(0)
    assert await database.write(note, "again") == "again"
    assert await database.read(notes) == ["again"]


async def test_a_full_disk_is_unavailable_until_there_is_room(database):
    def leave_room(connection: Connection, pages: int) -> None:
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")

    await database.write(leave_room, 1)  # SQLite makes it the present size
    with pytest.raises(StoreUnavailable) as refusal:
        await database.write(note, "x" * 100_000)
    assert "full" in str(refusal.value.__cause__)
    assert await database.read(notes) == []
    await database.write(leave_room, 1 << 30)
    assert await database.write(note, "again") == "again"


async def test_reading_what_is_not_there_is_unavailable_and_passes(either):
    def ask_for_nothing(connection: Connection) -> None:
        connection.exec_driver_sql("SELECT * FROM nothing")

    with pytest.raises(StoreUnavailable):
        await either.read(ask_for_nothing)
    assert await either.read(notes) == []


async def test_an_error_of_the_question_itself_reaches_the_asker(either):
    def fail(_connection: Connection) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        await either.read(fail)


async def test_a_read_sees_one_moment_and_writes_nothing(database):
    between = threading.Event()
    looked = threading.Event()

    def look_twice(connection: Connection) -> tuple[list[str], list[str]]:
        first = notes(connection)
        looked.set()
        assert between.wait(20)
        return first, notes(connection)

    looking = asyncio.create_task(database.read(look_twice))
    await asyncio.to_thread(looked.wait, 20)
    await database.write(note, "meanwhile")
    between.set()
    assert await looking == ([], [])
    await database.read(note, "smuggled")
    assert await database.read(notes) == ["meanwhile"]


# -- the end


async def test_closing_finishes_what_waits(tmp_path):
    database = SqliteDatabase(tmp_path / "notes.db")
    await database.write(create)
    tasks = await queue_up(*(database.write(note, str(number)) for number in range(500)))
    await database.close()
    assert await asyncio.gather(*tasks) == [str(number) for number in range(500)]
    other = sqlite3.connect(tmp_path / "notes.db")
    assert other.execute("SELECT count(*) FROM notes").fetchone() == (500,)
    other.close()


async def test_a_closed_store_says_so_instead_of_hanging(empty_url):
    database = open_database(empty_url)
    await database.write(create)
    await database.close()
    async with asyncio.timeout(300):
        with pytest.raises(StoreUnavailable):
            await database.write(note, "late")
        with pytest.raises(StoreUnavailable):
            await database.read(notes)
        await database.close()


async def test_writes_that_arrive_while_closing_are_answered_one_way_or_the_other(empty_url):
    database = open_database(empty_url)
    await database.write(create)
    closing = asyncio.create_task(database.close())
    outcomes: list[str | BaseException] = []
    async with asyncio.timeout(300):
        for number in range(300):
            outcomes += await asyncio.gather(database.write(note, str(number)), return_exceptions=True)
        await closing
    assert {type(outcome) for outcome in outcomes} <= {str, StoreUnavailable}
    assert isinstance(outcomes[-1], StoreUnavailable)
    other = open_database(empty_url)
    stored = len(await other.read(notes))
    await other.close()
    assert stored == sum(isinstance(outcome, str) for outcome in outcomes)


async def test_a_store_that_cannot_be_opened_is_unavailable(tmp_path):
    database = SqliteDatabase(tmp_path / "no" / "such" / "folder" / "notes.db")
    async with asyncio.timeout(300):
        with pytest.raises(StoreUnavailable):
            await database.write(create)
        with pytest.raises(StoreUnavailable):
            await database.read(notes)
        await database.close()

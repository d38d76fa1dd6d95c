"""Two processes on one store, played by two databases: each hears of what the other writes, and of that only."""

import asyncio
import fcntl
import os
import threading
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from sample_jobs import make_job
from sqlalchemy import Connection

from penstock.domain import jobs
from penstock.store.connect import open_database
from penstock.store.database import Database
from penstock.store.queries.jobs import job_rows, wakeup_rows
from penstock.store.signals import QUEUE, Subscription, nudge
from penstock.store.sqlite.change_watcher import BATCH_ROWS

Pair = tuple[Database, Database]
on_sqlite = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)


@pytest.fixture
async def pair(store_url: str) -> AsyncGenerator[Pair]:
    """This process and another one."""
    ours, theirs = open_database(store_url), open_database(store_url)
    await ours.watch()
    await theirs.watch()
    yield ours, theirs
    await ours.close()
    await theirs.close()


async def heard(subscription: Subscription) -> bool:
    return await subscription.wait(60)


async def catch_up(ours: Database, theirs: Database) -> None:
    """Once this returns, all that was written before has been heard of here."""
    with ours.signals.listen(nudge("the end")) as subscription:
        await theirs.write(wakeup_rows.add, "the end", 0.0)
        assert await heard(subscription)


async def test_what_another_process_does_is_heard_by_all_whom_it_concerns(pair):
    ours, theirs = pair
    job = make_job()
    signals = ours.signals
    with (
        signals.listen(job.id) as of_job,
        signals.listen(job.account_id) as of_account,
        signals.listen(QUEUE) as queue,
        signals.listen(nudge(job.id)) as runner,
        signals.listen("job_other") as nobody,
    ):
        await theirs.write(job_rows.insert_all, [job], 0.0)
        for subscription in (of_job, of_account, queue):
            assert await heard(subscription)
        await theirs.write(job_rows.amend_own, job.account_id, job.id, lambda job: jobs.request_cancel(job, 0.0), 0.0)
        assert await heard(runner), "who runs it has to know at once"
        assert not await nobody.wait(0)


async def test_a_call_back_is_heard_by_who_works_on_the_job_and_nobody_else(pair):
    ours, theirs = pair
    with ours.signals.listen(nudge("job_a")) as runner, ours.signals.listen("job_a") as of_job:
        await theirs.write(wakeup_rows.add, "job_a", 0.0)
        assert await heard(runner)
        assert not await of_job.wait(0)


@on_sqlite
async def test_what_we_write_ourselves_is_rung_once(pair):
    ours, theirs = pair
    job = make_job()
    with ours.signals.listen(job.id) as subscription:
        await ours.write(job_rows.insert_all, [job], 0.0)
        assert await heard(subscription)
        await catch_up(ours, theirs)
        assert not await subscription.wait(0)


async def test_what_came_between_our_own_writes_is_heard(pair):
    ours, theirs = pair
    for _ in range(20):
        job = make_job()
        with ours.signals.listen(job.id) as subscription:
            await asyncio.gather(
                ours.write(job_rows.insert_all, [make_job()], 0.0),
                theirs.write(job_rows.insert_all, [job], 0.0),
                ours.write(job_rows.insert_all, [make_job()], 0.0),
            )
            assert await heard(subscription)


async def test_more_than_is_read_at_once_is_heard_to_the_end(pair):
    ours, theirs = pair
    many = [make_job() for _ in range(BATCH_ROWS + BATCH_ROWS // 2)]
    with ours.signals.listen(many[0].id) as first, ours.signals.listen(many[-1].id) as last:
        await theirs.write(job_rows.insert_all, many, 0.0)
        assert await heard(first)
        assert await heard(last)


@on_sqlite
async def test_a_place_in_the_log_that_we_gave_up_and_another_took_is_heard(pair):
    """SQLite counts on from what was committed: what we undo, others use."""
    ours, theirs = pair
    job = make_job()

    def write_and_lose(connection: Connection) -> None:
        job_rows.insert_all(connection, [make_job()], 0.0)
        connection.exec_driver_sql("ROLLBACK")  # as SQLite does by itself on a full disk

    with pytest.raises(Exception, match="store"):
        await ours.write(write_and_lose)
    with ours.signals.listen(job.id) as subscription:
        await theirs.write(job_rows.insert_all, [job], 0.0)
        assert await heard(subscription)


# -- in turn


@on_sqlite
async def test_who_has_just_written_does_not_overtake_one_who_waits(pair, tmp_path):
    ours, theirs = pair
    entered, opened = threading.Event(), threading.Event()
    turns: list[str] = []

    def hold(_connection: Connection) -> None:
        entered.set()
        assert opened.wait(20)
        turns.append("ours")

    def note(_connection: Connection, name: str) -> None:
        turns.append(name)

    holding = asyncio.create_task(ours.write(hold))
    await asyncio.to_thread(entered.wait, 20)
    waiting = asyncio.create_task(theirs.write(note, "theirs"))
    await asyncio.to_thread(stands_in_line, tmp_path / "store.db-turn")
    again = asyncio.create_task(ours.write(note, "ours again"))
    await asyncio.sleep(0)
    opened.set()
    await asyncio.gather(holding, waiting, again)
    assert turns == ["ours", "theirs", "ours again"]


def stands_in_line(path: Path) -> None:
    """Wait until somebody holds the turnstile."""
    file = os.open(path, os.O_RDWR)
    try:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            fcntl.flock(file, fcntl.LOCK_UN)
    finally:
        os.close(file)


@on_sqlite
async def test_a_frozen_process_in_line_stops_nobody(pair, tmp_path):
    ours, _ = pair
    file = os.open(tmp_path / "store.db-turn", os.O_RDWR)
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        ours.patience = 0.05
        await ours.write(job_rows.insert_all, [make_job()], 0.0)
    finally:
        os.close(file)

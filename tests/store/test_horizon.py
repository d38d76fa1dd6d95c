"""The event log of many writers: whoever reads on misses none and sees none twice, though commits come in any order."""

import asyncio
import random
from collections.abc import AsyncGenerator

import psycopg
import pytest
from sqlalchemy import Connection, text
from store.fleet import Fleet, at_once, processes, until
from store.sample_jobs import NOW, make_job

from penstock.store.postgres import listener
from penstock.store.postgres.database import PostgresDatabase
from penstock.store.queries.jobs import event_rows, job_rows, wakeup_rows
from penstock.store.signals import QUEUE, nudge

ACCOUNT = "acct_one"
EVENT = (
    "INSERT INTO events (account_id, job_id, sequence, type, created_at, document) "
    "SELECT account_id, 'job_held', 1, type, created_at, document FROM events LIMIT 1 RETURNING position"
)


@pytest.fixture
async def fleet(postgres_store_url: str) -> AsyncGenerator[Fleet]:
    async with processes(postgres_store_url, 3) as databases:
        yield databases


async def accept(database: PostgresDatabase, account_id: str = ACCOUNT) -> None:
    await database.write(job_rows.insert_all, [make_job(account_id=account_id)], NOW)


async def read_on(database: PostgresDatabase, after: int) -> list[int]:
    """As the account's feed does."""
    events = await database.read(event_rows.of_account, ACCOUNT, after, 100, await database.settled())
    return [event.position for event in events]


# -- the horizon


async def test_what_may_be_overtaken_is_not_told_before_it_is_clear(fleet, postgres_store_url, monkeypatch):
    monkeypatch.setattr("penstock.store.postgres.event_horizon.MAX_WAIT_SECONDS", 0.05)
    await accept(fleet[0])
    (first,) = await read_on(fleet[0], 0)
    async with await psycopg.AsyncConnection.connect(postgres_store_url) as slow:
        ((held,),) = await (await slow.execute(EVENT)).fetchall()
        await accept(fleet[1])
        for database in fleet:
            assert await read_on(database, first) == []
        await slow.commit()
    for database in fleet:
        assert await read_on(database, first) == [held, held + 1]


async def test_a_position_that_was_given_up_holds_up_nobody(fleet, postgres_store_url, monkeypatch):
    monkeypatch.setattr("penstock.store.postgres.event_horizon.MAX_WAIT_SECONDS", 60)
    await accept(fleet[0])
    async with await psycopg.AsyncConnection.connect(postgres_store_url) as slow:
        ((held,),) = await (await slow.execute(EVENT)).fetchall()
        await accept(fleet[1])
        reading = asyncio.create_task(read_on(fleet[0], 0))
        await asyncio.wait((reading,), timeout=0.05)
        assert not reading.done()
        await slow.rollback()
        assert await reading == [held - 1, held + 1]


async def test_transactions_that_write_no_events_hold_up_nobody(fleet, postgres_store_url, postgres_server):
    """Neither in the same database nor in another of the server."""
    await accept(fleet[0])
    for url in (postgres_store_url, postgres_server.url()):
        async with await psycopg.AsyncConnection.connect(url) as other:
            await other.execute("CREATE TABLE others (number int)")
            assert len(await read_on(fleet[1], 0)) == 1
            await other.rollback()


async def test_who_reads_on_under_load_misses_none_and_sees_none_twice(fleet):
    chance, told = random.Random(7), list[int]()  # noqa: S311  nothing is secret here
    pauses = {number: chance.choice((0, 0, 0.01, 0.03)) for number in range(90)}

    def accept_slowly(connection: Connection, pause: float, undo: bool) -> None:
        job_rows.insert_all(connection, [make_job()], NOW)
        connection.execute(text("SELECT pg_sleep(:pause)"), {"pause": pause})
        if undo:
            raise LookupError

    writes = [fleet[number % 3].write(accept_slowly, pause, number % 7 == 0) for number, pause in pauses.items()]
    writing = asyncio.create_task(at_once(*writes))
    is_over = False
    while not is_over:
        is_over = writing.done()
        told += await read_on(fleet[0], told[-1] if told else 0)
    kept = sum(outcome is None for outcome in await writing)
    assert told == sorted(set(told))
    assert len(told) == kept == sum(number % 7 != 0 for number in pauses)


async def test_those_who_ask_together_look_once(fleet):
    await accept(fleet[0])
    found = await asyncio.gather(*(fleet[0].settled() for _ in range(50)))
    assert len(set(found)) == 1


# -- the listener


async def test_news_are_heard_elsewhere_at_once(fleet, monkeypatch):
    monkeypatch.setattr(listener, "CATCH_UP_SECONDS", 100)  # they come by themselves, not with the next look
    for database in fleet:
        await database.watch()
    job = make_job()
    with fleet[1].signals.listen(job.id) as of_job, fleet[2].signals.listen(QUEUE) as queue:
        await fleet[0].write(job_rows.insert_all, [job], NOW)
        assert await of_job.wait(60)
        assert await queue.wait(60)


async def test_what_was_written_while_nobody_could_tell_is_found(fleet, postgres_server):
    ours, theirs, _ = fleet
    await ours.watch()
    job = make_job()
    with ours.signals.listen(job.id) as subscription, ours.signals.listen(QUEUE) as queue:
        assert postgres_server.cut("penstock listener") == 1
        await theirs.write(job_rows.insert_all, [job], NOW)
        assert await subscription.wait(60)
        assert await queue.wait(60)
    again = make_job()
    with ours.signals.listen(again.id) as subscription:
        await theirs.write(job_rows.insert_all, [again], NOW)
        assert await subscription.wait(60)


async def test_no_ring_is_missed_while_the_listener_is_cut_again_and_again(fleet, postgres_server):
    ours, theirs, _ = fleet
    await ours.watch()
    accepted = [make_job() for _ in range(40)]
    heard = {job.id: asyncio.create_task(hear(ours, job.id)) for job in accepted}
    await asyncio.sleep(0)
    for number, job in enumerate(accepted):
        if number % 10 == 5:
            await asyncio.to_thread(postgres_server.cut, "penstock listener")
        await theirs.write(job_rows.insert_all, [job], NOW)
    assert all(await asyncio.gather(*heard.values()))


async def hear(database: PostgresDatabase, topic: str) -> bool:
    with database.signals.listen(topic) as subscription:
        return await subscription.wait(60)


async def test_an_event_that_was_committed_late_is_found_behind_later_ones(fleet, postgres_store_url, postgres_server):
    """Its position is below what the listener has seen when it comes."""
    ours, theirs, _ = fleet
    await ours.watch()
    await accept(theirs)
    async with await psycopg.AsyncConnection.connect(postgres_store_url) as slow:
        await slow.execute(EVENT)
        later = make_job()
        with ours.signals.listen(later.id) as subscription:
            await theirs.write(job_rows.insert_all, [later], NOW)
            assert await subscription.wait(60)
        with ours.signals.listen("job_held") as subscription:
            assert not await subscription.wait(1.2)
            await slow.commit()
            assert await subscription.wait(60)


async def test_a_listener_outlives_a_restart(fleet, postgres_server):
    ours, theirs, _ = fleet
    await ours.watch()
    await asyncio.to_thread(postgres_server.restart)
    job = make_job()
    with ours.signals.listen(job.id) as subscription:
        await theirs.write(job_rows.insert_all, [job], NOW)
        assert await subscription.wait(60)

    async def listens() -> bool:
        words = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'penstock listener'"
        return postgres_server.execute(words) == [(1,)]

    await until(listens)


async def test_a_store_that_is_away_at_the_start_is_listened_to_later(postgres_store_url, postgres_server):
    postgres_server.stop()
    try:
        async with processes(postgres_store_url, 2) as (ours, theirs):
            await ours.watch()
            postgres_server.start()
            with ours.signals.listen(nudge("job_a")) as subscription:

                async def is_heard() -> bool:
                    await theirs.write(wakeup_rows.add, "job_a", NOW)
                    return await subscription.wait(0.2)

                await until(is_heard)
    finally:
        postgres_server.restart()


async def test_what_a_caller_left_behind_is_told_too(fleet):
    """The write goes on without its caller: so do its news."""
    ours, theirs, _ = fleet
    await ours.watch()
    job = make_job()
    with ours.signals.listen(job.id) as subscription, theirs.signals.listen(job.id) as own:
        writing = asyncio.create_task(theirs.write(job_rows.insert_all, [job], NOW))
        await asyncio.sleep(0)
        writing.cancel()
        await asyncio.wait((writing,))
        assert writing.cancelled()
        assert await own.wait(60)
        assert await subscription.wait(60)

"""Who watches jobs hears everything, and a thousand who ask at once cost a few looks at the store."""

import asyncio
from dataclasses import replace

import pytest
from store.sample_jobs import NOW, make_job

from penstock.domain import jobs
from penstock.domain.jobs import Job
from penstock.errors import StoreUnavailable
from penstock.store.database import Database
from penstock.store.event_reader import EventReader
from penstock.store.queries.jobs import job_rows, open_job_rows


@pytest.fixture
def looks(database: Database, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many questions each look at the store answered."""
    counts: list[int] = []
    look = database.look

    async def counted(function, asked, most):
        counts.append(len(asked))
        return await look(function, asked, most)

    monkeypatch.setattr(database, "look", counted)
    return counts


async def accept(database: Database, count: int) -> list[Job]:
    return await database.write(job_rows.insert_all, [make_job() for _ in range(count)], NOW)


async def move(database: Database, times: int) -> Job:
    """A job that has got on so often."""
    await accept(database, 1)
    ((claim, _),) = await database.write(open_job_rows.claim, "one", 1)
    job = await database.write(job_rows.amend, claim, lambda job: jobs.start(job, NOW), NOW)
    for number in range(times):
        part = (number + 1) / (times + 1)
        job = await database.write(job_rows.amend, claim, lambda job, part=part: replace(job, progress=part), NOW)
    return job


async def test_everyone_hears_of_their_own_job_only(database, looks):
    accepted = await accept(database, 300)
    room = EventReader(database)
    found = await asyncio.gather(*(room.of_job(job.id, 0) for job in accepted for _ in range(2)))
    assert [[event.job.id for event in each.events] for each in found] == [[job.id] for job in accepted for _ in "12"]
    assert all(each.is_all for each in found)
    assert sum(looks) == 300, "two who ask the same are one question"
    assert len(looks) == 2


async def test_only_what_comes_after_is_told(database):
    job = await move(database, 3)
    room = EventReader(database)
    everything = (await room.of_job(job.id, 0)).events
    assert [event.sequence for event in everything] == [1, 2, 3, 4, 5]
    middle, last = everything[2].position, everything[-1].position
    first, second, nothing = await asyncio.gather(
        room.of_job(job.id, 0), room.of_job(job.id, middle), room.of_job(job.id, last)
    )
    assert first.events == everything
    assert second.events == everything[3:]
    assert list(nothing.events) == []


async def test_a_long_story_comes_in_parts(database, monkeypatch):
    monkeypatch.setattr("penstock.store.event_reader.MAX_EVENTS", 4)
    job = await move(database, 7)
    room, after, told = EventReader(database), 0, list[int]()
    while True:
        events, is_all = await room.of_job(job.id, after)
        told += [event.sequence for event in events]
        if is_all:
            break
        after = events[-1].position
    assert told == list(range(1, 10))


async def test_a_store_that_is_away_is_told_to_all_and_asked_again(database, monkeypatch):
    (job,) = await accept(database, 1)
    room, look = EventReader(database), database.look

    async def fail(*_: object):
        raise StoreUnavailable

    monkeypatch.setattr(database, "look", fail)
    found = await asyncio.gather(room.of_job(job.id, 0), room.of_job(job.id, 1), return_exceptions=True)
    assert [type(each) for each in found] == [StoreUnavailable] * 2
    monkeypatch.setattr(database, "look", look)
    assert len((await room.of_job(job.id, 0)).events) == 1


async def test_who_leaves_leaves_alone(database):
    (job,) = await accept(database, 1)
    room = EventReader(database)
    leaving, staying = (asyncio.create_task(room.of_job(job.id, 0)) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()
    assert len((await staying).events) == 1
    with pytest.raises(asyncio.CancelledError):
        await leaving


async def test_a_reader_that_stops_leaves_no_query_under_way(database, monkeypatch):
    """One watcher has left, one still waits, and one asks while the store hangs."""
    asked = asyncio.Event()

    async def hang(*_: object):
        asked.set()
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(database, "look", hang)
    before = asyncio.all_tasks()
    room = EventReader(database)
    gone, waiting = (asyncio.create_task(room.of_job(name, 0)) for name in ("job_gone", "job_waiting"))
    await asked.wait()
    late = asyncio.create_task(room.of_job("job_late", 0))
    gone.cancel()
    await asyncio.sleep(0)
    await room.stop()
    async with asyncio.timeout(300):
        await asyncio.wait((gone, waiting, late))
    assert all(task.cancelled() for task in (gone, waiting, late))
    assert asyncio.all_tasks() == before

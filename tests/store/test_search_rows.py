"""Search: finds jobs by their words whether or not they are indexed yet, and leaves no word of a removed job."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection, func, select
from store.sample_jobs import NOW, make_job

from penstock.domain import jobs
from penstock.domain.files import StoredFile
from penstock.domain.ids import new_id
from penstock.domain.jobs import Job
from penstock.domain.searching.query import read_query
from penstock.store.database import Database
from penstock.store.queries.jobs import job_rows, open_job_rows, search_rows
from penstock.store.search_indexer import SearchIndexer
from penstock.store.tables import events, search_jobs, search_words

PICTURE = StoredFile("file_1", "acct_one", "0" * 64, 10, "image/png", 20, 20, NOW, None, None, "Blue_Vase-03.png")


async def accept(database: Database, *prompts: str, **fields: Any) -> list[Job]:
    accepted = [make_job(params={"prompt": prompt}, **fields) for prompt in prompts]
    return await database.write(job_rows.insert_all, accepted, NOW)


async def find(database: Database, text: str, account_id: str = "acct_one", **filters: Any) -> list[str]:
    """Return the ids of all jobs that are found, page by page."""
    query, found, before = read_query(text), list[str](), None
    assert query is not None
    while True:
        page = await database.read(search_rows.search, account_id, query, filters, before, 3)
        found += [job.id for job in page.jobs]
        before = page.next_before
        if before is None:
            return found


def count(connection: Connection) -> tuple[int, ...]:
    return tuple(
        connection.execute(select(func.count()).select_from(table)).scalar_one()
        for table in (search_jobs, search_words)
    )


@pytest.fixture(params=["before it is indexed", "once it is indexed"])
def settle(request: pytest.FixtureRequest, database: Database) -> Callable[[], Any]:
    """Do nothing, or index what was accepted: a search finds the same."""

    async def settle() -> None:
        if request.param == "once it is indexed":
            await SearchIndexer(database).catch_up()

    return settle


async def test_words_are_found_in_any_case_and_order_newest_first(database, settle):
    boat, car, both = await accept(database, "A paper boat in the rain", "A red car", "Red boat, red car")
    await settle()
    assert await find(database, "BOAT") == [both.id, boat.id]
    assert await find(database, "car red") == [both.id, car.id]
    assert await find(database, "boat car") == [both.id]
    assert await find(database, "bicycle") == []


async def test_the_last_word_may_be_a_beginning_and_the_others_not(database, settle):
    (job,) = await accept(database, "A lighthouse at night")
    await settle()
    assert await find(database, "at light") == [job.id]
    assert await find(database, "light at") == []
    assert await find(database, "light ") == []  # a space ends the word


async def test_names_refs_and_ids_are_found(database, settle):
    first = make_job(params={"file": {"file_token": "file_0"}}, file=PICTURE, client_ref="order-4711/b")
    second = make_job(params={"file": {"url": "https://example.com/a/Old%20Tower.webp?size=2"}})
    third = make_job(params={"prompt": "x", "file": {"object": {"bucket": "b", "key": "in/statue.jpg"}}})
    await database.write(job_rows.insert_all, [first, second, third], NOW)
    await settle()
    assert await find(database, "blue vase") == await find(database, "Blue_Vase-03.png") == [first.id]
    assert await find(database, "order-4711/b") == [first.id]
    assert await find(database, "old tower") == [second.id]
    assert await find(database, "statue") == [third.id]
    assert await find(database, second.id) == await find(database, second.id.upper()) == [second.id]
    assert await find(database, second.id.removeprefix("job_")) == [second.id]
    assert await find(database, third.id[:-1]) == [third.id]


@pytest.mark.parametrize(
    ("prompt", "asked"),
    [
        ("Un café à Orléans", "cafe orleans"),
        ("Ein Schloß am Fluss", "SCHLOSS"),
        ("雨の中の黒猫が走る", "黒猫"),
        ("雨の中の黒猫", "猫"),
        ("बारिश में नाव", "नाव"),
        ("здание ночью", "Здание ноч"),
    ],
)
async def test_words_of_any_script_are_found(database, settle, prompt, asked):
    (job, _) = await accept(database, prompt, "something else")
    await settle()
    assert await find(database, asked) == [job.id]


async def test_an_account_finds_only_its_own(database, settle):
    await accept(database, "a secret boat")
    (other,) = await accept(database, "a boat", account_id="acct_two")
    await settle()
    assert await find(database, "boat", "acct_two") == [other.id]
    assert await find(database, "secret", "acct_two") == []
    assert await find(database, "job_0", "acct_two") == [other.id]


async def test_filters_and_pages_go_with_a_search(database, settle):
    accepted = [
        job for number in range(10) for job in await accept(database, f"boat {number}", model=f"model_{number % 2}")
    ]
    await settle()
    assert await find(database, "boat") == [job.id for job in reversed(accepted)]
    assert await find(database, "boat", model="model_1") == [
        job.id for job in reversed(accepted) if job.model == "model_1"
    ]
    assert await find(database, "boat", state="running") == []


async def test_a_rare_match_among_many_takes_several_short_pages(database, monkeypatch):
    monkeypatch.setattr(search_rows, "MAX_PORTION", 4)
    monkeypatch.setattr(search_rows, "MAX_PORTIONS", 2)
    (first, *_) = await accept(database, "red boat", *(f"red {number}" for number in range(20)), *["blue boat"] * 20)
    await SearchIndexer(database).catch_up()
    assert await find(database, "boat red") == [first.id]
    query = read_query("boat red")
    page = await database.read(search_rows.search, "acct_one", query, {}, None, 3)
    assert page.jobs == []
    assert page.next_before is not None


async def test_a_beginning_of_very_many_words_still_finds_all(database, settle, monkeypatch):
    monkeypatch.setattr(search_rows, "MAX_EXPANSIONS", 5)
    accepted = await accept(database, *(f"boat{number}" for number in range(9)), "ship")
    await settle()
    assert await find(database, "boa") == [job.id for job in reversed(accepted[:-1])]


async def test_a_removed_job_leaves_no_word(database):
    (gone, kept) = await accept(database, "a private prompt", "another one")
    await SearchIndexer(database).catch_up()
    await finish(database)
    await database.write(job_rows.remove, "acct_one", gone.id, "deleted")
    assert await find(database, "private") == []
    assert await database.read(count) == (1, 2)
    await database.write(job_rows.remove, "acct_one", kept.id, "expired")
    assert await database.read(count) == (0, 0)
    await SearchIndexer(database).catch_up()
    assert await database.read(count) == (0, 0)


async def finish(database: Database) -> None:
    for claim, _ in await database.write(open_job_rows.claim, "me", 10):
        await database.write(job_rows.amend, claim, lambda job: jobs.start(job, NOW), NOW)
        await database.write(job_rows.amend, claim, lambda job: jobs.request_cancel(job, NOW), NOW)
        await database.write(job_rows.amend, claim, lambda job: jobs.stop(job, NOW), NOW)


async def test_words_that_older_code_left_are_removed_in_the_background(database):
    (gone, kept) = await accept(database, "a private prompt", "another one")
    indexer = SearchIndexer(database)
    await indexer.catch_up()

    def remove_as_before(connection: Connection) -> None:
        connection.execute(events.delete().where(events.c.job_id == gone.id))

    await database.write(remove_as_before)
    assert await indexer.check_some() == 1
    assert await database.read(count) == (1, 2)
    assert await find(database, "another") == [kept.id]


async def test_indexing_twice_changes_nothing_and_continues_where_it_was(database):
    await accept(database, "one boat", "two boats")
    indexer = SearchIndexer(database)
    assert [await indexer.catch_up(), await indexer.catch_up()] == [2, 0]
    before = await database.read(count)
    await accept(database, "three ships")
    assert await SearchIndexer(database).catch_up() == 1
    assert await database.read(count) == (before[0] + 1, before[1] + 2)


async def test_a_changed_job_stays_found(database, settle):
    (job,) = await accept(database, "a boat")
    await settle()
    await finish(database)
    await settle()
    assert await find(database, "boat") == [job.id]


async def test_a_long_prompt_is_found_by_its_first_words_and_its_name(database, settle):
    words = " ".join(f"word{number}" for number in range(500))
    job = replace(make_job(id=new_id("job"), params={"prompt": words, "file": {}}), file=PICTURE)
    await database.write(job_rows.insert_all, [job], NOW)
    await settle()
    assert await find(database, "word1 word100 vase") == [job.id]

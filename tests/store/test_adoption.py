"""A lost order that can only be known by its looks: each job takes up one that no other holds, or none at all."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from store.sample_jobs import NOW, make_attempt, make_job
from vendors.double import Double, double_of, drop, drop_after
from vendors.test_far import follow

from penstock.domain import jobs
from penstock.domain.jobs import Claim, Job, Outcome, Phase, State
from penstock.store.database import Database
from penstock.store.event_reader import EventReader
from penstock.store.queries.jobs import job_rows, open_job_rows
from penstock.store.queries.jobs.job_rows import MAX_CLOCK_ERROR_SECONDS, FenceLost
from penstock.vendor_api.generation import Accepted, Call, Flow, Order, Similar
from penstock.vendors.sim import Sim


def take_up(job: Job, upstream_id: str) -> Job:
    attempt = replace(job.attempts[-1], upstream_id=upstream_id, operation={"id": upstream_id})
    return replace(job, attempts=(*job.attempts[:-1], attempt), phase=Phase.GENERATING)


async def lose(database: Database, upstream_id: str | None = None, **fields: Any) -> Claim:
    """A claimed job whose order is lost, or has this id."""
    job = make_job(**fields)
    await database.write(job_rows.insert_all, [job], NOW)
    ((claim, _),) = await database.write(open_job_rows.claim, f"of {job.id}", 1)
    attempt = make_attempt(job.id, vendor=job.vendor, model=job.upstream_model, started_at=NOW)

    def change(job: Job) -> Job:
        job = jobs.order(jobs.start(job, NOW), attempt)
        return replace(job, phase=Phase.RECONCILING) if upstream_id is None else take_up(job, upstream_id)

    await database.write(job_rows.amend, claim, change, NOW)
    return claim


async def adopt(database: Database, claim: Claim, *found: str) -> str | None:
    """The upstream id that the job has then."""
    job = await database.write(job_rows.adopt, claim, found, take_up, NOW + 1)
    assert job == await database.read(job_rows.get_claimed, claim)
    return job.attempts[-1].upstream_id


async def end(database: Database, claim: Claim, after: float) -> None:
    def change(job: Job) -> Job:
        return jobs.fail(job, NOW + after, {"code": "upstream_error"}, Outcome.FAILED)

    await database.write(job_rows.amend, claim, change, NOW + after)


# -- which one it is


async def test_the_first_that_nobody_holds(database):
    await lose(database, "a")
    await lose(database, "b")
    claim = await lose(database)
    assert await adopt(database, claim, "b", "a", "d", "c") == "d"
    told = (await EventReader(database).of_job(claim.job_id, 0)).events
    assert told[-1].job.phase is Phase.GENERATING


async def test_none_if_all_are_held_or_there_are_none(database):
    await lose(database, "a")
    claim = await lose(database)
    before = await database.read(job_rows.get_claimed, claim)
    assert await adopt(database, claim, "a") is None
    assert await adopt(database, claim) is None
    assert await database.read(job_rows.get_claimed, claim) == before


async def test_an_id_that_is_part_of_another_is_free(database):
    await lose(database, "order-10")
    assert await adopt(database, await lose(database), "order-1") == "order-1"


@pytest.mark.parametrize("name", ['q"uote', "back\\slash", "ünï/cödé", "line\nbreak"])
async def test_an_odd_id_is_known_again(database, name):
    await lose(database, name)
    assert await adopt(database, await lose(database), name, "other") == "other"


async def test_what_another_vendors_job_holds_says_nothing(database):
    await lose(database, "a", vendor="elsewhere")
    assert await adopt(database, await lose(database), "a") == "a"


async def test_what_a_job_held_that_has_just_ended_stays_its_own(database):
    claim = await lose(database, "a")
    await end(database, claim, 0.5)
    assert await adopt(database, await lose(database), "a") is None


async def test_even_if_it_was_deleted(database):
    claim = await lose(database, "a")
    await end(database, claim, 0.5)
    await database.write(job_rows.remove, "acct_one", claim.job_id, "deleted")
    assert await adopt(database, await lose(database), "a") is None


async def test_as_long_as_clocks_may_differ(database):
    claim = await lose(database, "a", created_at=NOW - 2 * MAX_CLOCK_ERROR_SECONDS)
    await end(database, claim, 10 - MAX_CLOCK_ERROR_SECONDS)
    assert await adopt(database, await lose(database), "a") is None


async def test_none_while_one_like_it_is_being_placed(database):
    placing = await lose(database)
    await database.write(job_rows.amend, placing, lambda job: replace(job, phase=Phase.DISPATCHING), NOW)
    claim = await lose(database)
    assert await adopt(database, claim, "a") is None
    await database.write(job_rows.amend, placing, lambda job: take_up(job, "b"), NOW)
    assert await adopt(database, claim, "b", "a") == "a"


async def test_another_order_that_is_being_placed_is_in_nobodys_way(database):
    placing = await lose(database, params={"prompt": "something else"})
    await database.write(job_rows.amend, placing, lambda job: replace(job, phase=Phase.DISPATCHING), NOW)
    assert await adopt(database, await lose(database), "a") == "a"


async def test_who_lost_the_job_adopts_nothing(database):
    claim = await lose(database)
    with pytest.raises(FenceLost):
        await database.write(job_rows.adopt, replace(claim, epoch=claim.epoch + 1), ["a"], take_up, NOW)
    assert (await database.read(job_rows.get_claimed, claim)).attempts[-1].upstream_id is None


async def test_any_number_at_once_share_none(database):
    claims = [await lose(database) for _ in range(12)]
    found = [f"order-{number}" for number in range(9)]
    taken = await asyncio.gather(*(adopt(database, claim, *found) for claim in claims))
    assert sorted(name for name in taken if name) == found
    assert taken.count(None) == 3


# -- handing on


async def test_a_job_handed_on_is_anyones_and_only_if_it_still_runs(database):
    claim = await lose(database)
    await database.write(job_rows.hand_on, claim, lambda job: replace(job, vendor="second"), NOW)
    with pytest.raises(FenceLost):
        await database.read(job_rows.get_claimed, claim)
    ((again, job),) = await database.write(open_job_rows.claim, "next", 9)
    assert (again.job_id, job.vendor) == (claim.job_id, "second")
    await database.write(job_rows.amend_own, "acct_one", claim.job_id, lambda job: jobs.request_cancel(job, NOW), NOW)
    job = await database.write(job_rows.hand_on, again, lambda job: replace(job, progress=0.5), NOW)
    assert job.state is State.CANCELING
    assert await database.read(job_rows.get_claimed, again) == job


# -- a whole gateway whose vendor tells only how its orders look

Find = Callable[[Sim, Order], Flow[Similar]]


@pytest.fixture
async def double(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Double]:
    """A vendor that cannot look up a reference, and lists all that it has."""
    async with double_of(tmp_path / "double") as double:

        def find(vendor: Sim, order: Order) -> Flow[Similar]:
            yield Call("GET", "/list")
            return Similar(tuple(Accepted(name, {"id": name}) for name in list_orders(double)))

        monkeypatch.setattr(Sim, "find", find)
        yield double


def list_orders(double: Double) -> list[str]:
    """The ids of all orders in its books, oldest first."""
    with closing(sqlite3.connect(double.simulator._folder / "simulator.db")) as books:
        return [row[0] for row in books.execute("SELECT id FROM orders ORDER BY accepted_at")]


@pytest.fixture
def far(start, double: Double) -> Callable[[float], Any]:
    def begin(lookup_seconds: float) -> Any:
        options = f"poll_seconds = 0.02\nlookup_seconds = {lookup_seconds}\nmax_concurrent = 20\n"
        return start(f'[vendors.far]\ntype = "sim"\nbase_url = "{double.url}"\n{options}')

    return begin


async def test_lost_orders_that_look_alike_find_a_job_each(far, double):
    double.fault(drop_after, "POST", "/orders", times=8)
    server = await far(20)
    accepted = await asyncio.gather(*(server.submit(script={}) for _ in range(10)))
    done = await asyncio.gather(*(server.finish(job["id"]) for job in accepted))
    assert {job["status"] for job in done} == {"succeeded"}
    assert double.counts() == {"orders": 10, "jobs": 10, "duplicates": 0}
    assert {job["attempts"][0]["upstream_id"] for job in done} == set(list_orders(double))
    assert {len(job["attempts"]) for job in done} == {1}


async def test_none_that_is_free_is_waited_for_then_not_guessed_at(far, double):
    server = await far(1.5)
    other = await server.submit(script={"latency": 60})
    await follow(server, other["id"], lambda job: job["phase"] == "generating")
    double.fault(drop, "POST", "/orders")
    job = await server.generate(script={})
    assert (job["status"], job["error"]["code"]) == ("failed", "upstream_outcome_unknown")
    assert [(told["outcome"], told["upstream_id"]) for told in job["attempts"]] == [("unknown", None)]
    assert double.count("GET", "/list") >= 2
    assert double.count("POST", "/orders") == 2
    assert double.counts()["orders"] == 1


async def test_one_that_comes_late_is_taken_up(far, double):
    asked = asyncio.Event()
    bodies: list[bytes] = []

    async def lose_it(double: Double, request: Any) -> Any:
        bodies.append(await request.read())
        return await drop(double, request)

    async def arrive_now(double: Double, request: Any) -> Any:
        double.simulator.answer("POST", "/orders", bodies[0])
        asked.set()
        return await double.play(request)

    double.fault(lose_it, "POST", "/orders")
    server = await far(30)
    job = await server.submit(script={})
    await follow(server, job["id"], lambda job: job["phase"] == "reconciling")
    double.fault(arrive_now, "GET", "/list")
    job = await server.finish(job["id"])
    assert asked.is_set()
    assert (job["status"], len(job["attempts"])) == ("succeeded", 1)
    assert json.loads(bodies[0])["reference"] == f"{job['id']}-1"
    assert double.counts()["orders"] == 1

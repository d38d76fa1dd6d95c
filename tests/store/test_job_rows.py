"""Jobs in the store: a change is a row, an event and a ring or nothing at all, and only the holder's changes count."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
from sqlalchemy import Connection, event, select, update
from store.sample_jobs import NOW, make_asset, make_attempt, make_job

from penstock.domain import jobs
from penstock.domain.events import EventType
from penstock.domain.jobs import Claim, IllegalMove, Job, Outcome, Phase, State
from penstock.errors import Gone, JobDeleted, JobNotFinished, JobNotFound
from penstock.store import sql
from penstock.store.database import Database
from penstock.store.event_reader import EventReader
from penstock.store.queries.jobs import event_rows, job_rows, open_job_rows, request_rows
from penstock.store.queries.jobs.job_rows import FenceLost
from penstock.store.queries.jobs.request_rows import AcceptedRequest
from penstock.store.signals import QUEUE, nudge
from penstock.store.tables import jobs as job_table

ERROR = {"code": "upstream_error", "message": "no"}


async def accept(database: Database, *accepted: Job) -> list[Job]:
    return await database.write(job_rows.insert_all, accepted, NOW)


async def hold(database: Database, owner: str = "one") -> Claim:
    """Accept a job and claim it."""
    await accept(database, make_job())
    ((claim, _),) = await database.write(open_job_rows.claim, owner, 1)
    return claim


def row(connection: Connection, job_id: str) -> tuple:
    return tuple(connection.execute(select(job_table).where(job_table.c.id == job_id)).one())


async def story(database: Database, job_id: str) -> list[tuple[int, EventType]]:
    return [(told.sequence, told.type) for told in (await EventReader(database).of_job(job_id, 0)).events]


def start(job: Job) -> Job:
    return jobs.start(job, NOW)


def progress(value: float) -> Callable[[Job], Job]:
    return lambda job: replace(job, progress=value)


def cancel(job: Job) -> Job:
    return jobs.request_cancel(job, NOW)


def succeed(job: Job) -> Job:
    return jobs.succeed(job, NOW + 7, (make_asset(),), ())


# -- the fence


@pytest.mark.parametrize("stale", [{"epoch": 0}, {"epoch": 2}, {"owner": "two"}, {"job_id": "job_other"}])
async def test_who_does_not_hold_the_job_changes_nothing(database, stale):
    claim = await hold(database)
    before = await database.read(row, claim.job_id)
    with pytest.raises(FenceLost):
        await database.write(job_rows.amend, replace(claim, **stale), start, NOW)
    with pytest.raises(FenceLost):
        await database.read(job_rows.get_claimed, replace(claim, **stale))
    assert await database.read(row, claim.job_id) == before
    assert await story(database, claim.job_id) == [(1, EventType.QUEUED)]


async def test_a_former_holder_is_locked_out_even_under_the_same_name(database):
    former = await hold(database)
    await database.write(open_job_rows.release_all)
    with pytest.raises(FenceLost):
        await database.write(job_rows.amend, former, start, NOW)
    ((present, _),) = await database.write(open_job_rows.claim, former.owner, 1)
    assert present.epoch == former.epoch + 1
    with pytest.raises(FenceLost):
        await database.write(job_rows.amend, former, start, NOW)
    await database.write(job_rows.amend, present, start, NOW)
    assert (await database.read(job_rows.get_claimed, present)).state is State.RUNNING


async def test_a_cancel_between_a_runners_changes_is_neither_lost_nor_overwritten(database):
    claim = await hold(database)
    attempt = make_attempt(claim.job_id)
    outcomes = [
        await database.write(job_rows.amend, claim, start, NOW),
        await database.write(job_rows.amend, claim, progress(0.1), NOW),
        await database.write(job_rows.amend_own, "acct_one", claim.job_id, cancel, NOW),
        await database.write(job_rows.amend, claim, lambda job: jobs.order(job, attempt), NOW),
        await database.write(job_rows.amend, claim, progress(0.2), NOW),
    ]
    assert [job.sequence for job in outcomes] == [2, 3, 4, 4, 5]  # no order is written once canceled
    final = await database.read(job_rows.get, "acct_one", claim.job_id)
    assert (final.state, final.progress, final.attempts) == (State.CANCELING, 0.2, ())
    expected = [EventType.QUEUED, EventType.STARTED, *[EventType.PROGRESS] * 3]
    assert await story(database, claim.job_id) == list(enumerate(expected, 1))


async def test_a_finished_job_is_changed_by_nobody(database):
    claim = await hold(database)
    await database.write(job_rows.amend, claim, start, NOW)
    await database.write(job_rows.amend, claim, succeed, NOW)
    before = await database.read(row, claim.job_id)
    for change in (progress(0.5), succeed, lambda job: jobs.fail(job, NOW, ERROR, Outcome.FAILED)):
        with pytest.raises(IllegalMove):
            await database.write(job_rows.amend, claim, change, NOW)
    await database.write(job_rows.amend_own, "acct_one", claim.job_id, cancel, NOW)
    assert await database.read(row, claim.job_id) == before
    assert await database.write(open_job_rows.claim, "two", 10) == []


async def test_a_change_that_changes_nothing_tells_nothing(database):
    claim = await hold(database)
    await database.write(job_rows.amend, claim, progress(0.0), NOW)
    assert await story(database, claim.job_id) == [(1, EventType.QUEUED)]


async def test_a_job_survives_being_written_and_read(database):
    job = make_job(
        client_ref="mine", metadata={"a": "ü"}, attempts=(make_attempt("x", operation={"id": 1}),), warnings=("w",)
    )
    (written,) = await accept(database, job)
    assert written == replace(job, sequence=1)
    assert await database.read(job_rows.get, "acct_one", job.id) == written


# -- claiming


async def test_a_job_is_claimed_once_by_whoever_is_first(database):
    accepted = await accept(database, *(make_job() for _ in range(50)))
    claimed = await asyncio.gather(*(database.write(open_job_rows.claim, f"runner{number}", 7) for number in range(5)))
    claimed += [await database.write(open_job_rows.claim, "last", 50)]
    ids = [claim.job_id for batch in claimed for claim, _ in batch]
    assert sorted(ids) == sorted(job.id for job in accepted)
    assert all(batch == sorted(batch, key=lambda each: each[1].id) for batch in claimed)  # oldest first


async def test_what_was_begun_is_taken_up_before_what_waits(database):
    accepted = await accept(database, *(make_job() for _ in range(5)))
    claims = {claim.job_id: claim for claim, _ in await database.write(open_job_rows.claim, "one", 5)}
    await database.write(job_rows.amend, claims[accepted[3].id], start, NOW)
    await database.write(open_job_rows.release_all)
    claimed = await database.write(open_job_rows.claim, "two", 2)
    assert {claim.job_id for claim, _ in claimed} == {accepted[0].id, accepted[3].id}


# -- rings


async def heard(database: Database, topic: str, doing) -> bool:
    with database.signals.listen(topic) as subscription:
        await doing
        return await subscription.wait(0)


async def test_each_change_is_heard_by_who_should_hear_it(database):
    job = make_job()
    assert await heard(database, QUEUE, accept(database, job))
    ((claim, _),) = await database.write(open_job_rows.claim, "one", 1)

    def work(value: float):
        return database.write(job_rows.amend, claim, progress(value), NOW)

    assert await heard(database, job.id, work(0.1))
    assert await heard(database, "acct_one", work(0.2))
    assert not await heard(database, QUEUE, work(0.3))
    assert not await heard(database, nudge(job.id), work(0.4))  # a runner does not wake itself
    canceling = database.write(job_rows.amend_own, "acct_one", job.id, cancel, NOW)
    assert await heard(database, nudge(job.id), canceling)


# -- whose job


async def test_another_accounts_job_is_not_there(database):
    (job,) = await accept(database, make_job())
    for function, *rest in ((job_rows.get,), (job_rows.amend_own, cancel, NOW), (job_rows.remove, "deleted")):
        with pytest.raises(JobNotFound):
            await database.write(function, "acct_two", job.id, *rest)
    assert await database.read(job_rows.page, "acct_two", {}, None, 10) == []


@pytest.mark.parametrize(("reason", "error"), [("deleted", JobDeleted), ("expired", Gone)])
async def test_a_removed_job_leaves_only_what_it_cost(database, reason, error):
    claim = await hold(database)
    with pytest.raises(JobNotFinished):
        await database.write(job_rows.remove, "acct_one", claim.job_id, reason)
    await database.write(job_rows.amend, claim, start, NOW)
    await database.write(job_rows.amend, claim, succeed, NOW)
    await database.write(job_rows.remove, "acct_one", claim.job_id, reason)
    for function, *rest in ((job_rows.get,), (job_rows.amend_own, cancel, NOW), (job_rows.remove, reason)):
        with pytest.raises(error) as refusal:
            await database.write(function, "acct_one", claim.job_id, *rest)
        assert type(refusal.value) is error
    assert await story(database, claim.job_id) == []
    assert await database.read(job_rows.expired, NOW + 10 * 86400, 10) == []
    assert await database.read(job_rows.get_several, [claim.job_id]) == []
    left = await database.read(job_rows.get_claimed, claim)
    assert (left.params, left.outputs, left.final) == ({}, (), 400_000_000)


# -- lists


async def test_a_list_can_be_walked_and_narrowed(database):
    made = [make_job(created_at=NOW + number, client_ref="even" if number % 2 == 0 else None) for number in range(7)]
    made[3] = replace(made[3], model="other", batch_id="batch_1")
    await accept(database, *made)
    ids = [job.id for job in reversed(made)]

    async def listed(before: str | None = None, limit: int = 10, **filters: object) -> list[str]:
        return [job.id for job in await database.read(job_rows.page, "acct_one", filters, before, limit)]

    assert await listed() == ids
    first = await listed(limit=3)
    assert first == ids[:3]
    assert await listed(before=first[-1], limit=10) == ids[3:]
    assert await listed(client_ref="even") == [job.id for job in reversed(made[::2])]
    assert await listed(model="other") == await listed(batch_id="batch_1") == [made[3].id]
    assert await listed(state="running") == []


INDEXES = {
    "state": ("queued", "jobs_by_state"),
    "model": ("m", "jobs_by_model"),
    "client_ref": ("r", "jobs_by_client_ref"),
    "batch_id": ("b", "jobs_by_batch"),
    None: (None, "jobs_by_account"),
}


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("name", INDEXES)
async def test_every_list_walks_an_index_and_sorts_nothing(database, name):
    plans: list[str] = []

    def explain(connection, cursor, statement, parameters, context, executemany):
        cursor.execute("EXPLAIN QUERY PLAN " + statement, parameters)
        plans.extend(found[3] for found in cursor.fetchall())

    value, index = INDEXES[name]
    event.listen(database.engine, "before_cursor_execute", explain)
    await database.read(job_rows.page, "acct_one", {name: value}, "job_0", 10)
    assert len(plans) == (2 if name == "state" else 1)  # a queued job may wait for its pipeline
    for plan in plans:
        assert index in plan
        assert "id<?" in plan


async def test_counts_and_durations_come_from_what_is_there(database):
    await accept(database, *(make_job() for _ in range(3)))
    claims = [claim for claim, _ in await database.write(open_job_rows.claim, "one", 3)]
    for number, claim in enumerate(claims[:2]):
        await database.write(job_rows.amend, claim, start, NOW)
        end = NOW + 10 - number  # the second finished earlier
        await database.write(job_rows.amend, claim, lambda job, end=end: jobs.succeed(job, end, (), ()), end)
    assert await database.read(open_job_rows.count) == {("acct_one", "queued"): 1}
    models = ["sim_text_to_video", "never_run"]
    found = await database.read(job_rows.recent_durations, models, 5)
    assert found == {"sim_text_to_video": [9, 10], "never_run": []}
    soon = await database.read(job_rows.expired, NOW + 9 + 86400, 10)
    assert soon == [("acct_one", claims[1].job_id)]


async def test_the_feed_of_an_account_is_in_order_and_its_own(database):
    await accept(database, make_job(), make_job(account_id="acct_two"), make_job())
    feed = await database.read(event_rows.of_account, "acct_one", 0, 10)
    assert [told.job.account_id for told in feed] == ["acct_one"] * 2
    assert feed[0].position < feed[1].position == await database.read(event_rows.last_position, "acct_one")
    assert await database.read(event_rows.of_account, "acct_one", feed[0].position, 10) == feed[1:]
    assert await database.read(event_rows.last_position, "acct_nobody") == 0


# -- requests


async def test_an_idempotency_key_is_free_again_once_its_jobs_are_gone(database):
    def request(request_id: str) -> AcceptedRequest:
        return AcceptedRequest(
            id=request_id,
            account_id="acct_one",
            key_id="key",
            idempotency_key="mine",
            fingerprint=b"body",
            job_ids=("job_1", "job_2"),
            created_at=NOW,
        )

    def add(connection: Connection, name: str) -> None:
        request_rows.forget_key(connection, "acct_one", "mine")
        sql.do_all(connection, request_rows.addition([request(name)]))

    await database.write(add, "batch_1")
    await database.write(add, "batch_2")
    found = await database.read(request_rows.by_idempotency_key, "acct_one", "mine")
    assert found == request("batch_2")


# -- risky steps


async def marks(database: Database, claim: Claim) -> tuple[int, int]:
    def find(connection: Connection) -> tuple[int, int]:
        query = select(job_table.c.at_risk, job_table.c.deaths).where(job_table.c.id == claim.job_id)
        at_risk, deaths = connection.execute(query).one()
        return at_risk, deaths

    return await database.read(find)


def into(phase: Phase) -> Callable[[Job], Job]:
    return lambda job: replace(job, phase=phase)


def count_deaths(connection: Connection, deaths: int) -> None:
    connection.execute(update(job_table).values(deaths=deaths))


@pytest.mark.parametrize(
    ("phases", "expected"),
    [
        ([Phase.FETCHING], (1, 0)),
        ([Phase.FETCHING, Phase.DISPATCHING], (1, 0)),
        ([Phase.DISPATCHING], (1, 4)),
        ([Phase.RECONCILING], (0, 4)),
        ([Phase.RECONCILING, Phase.DISPATCHING], (1, 4)),
        ([Phase.GENERATING], (0, 0)),
        ([Phase.GENERATING, Phase.STORING], (1, 0)),
        ([Phase.THROTTLED], (0, 0)),
    ],
)
async def test_a_phase_tells_whether_a_risky_step_is_under_way(database, phases, expected):
    claim = await hold(database)
    await database.write(job_rows.amend, claim, start, NOW)
    await database.write(job_rows.amend, claim, into(Phase.DISPATCHING), NOW)
    await database.write(count_deaths, 4)
    for phase in phases:
        await database.write(job_rows.amend, claim, into(phase), NOW)
    assert await marks(database, claim) == expected


async def test_a_mark_is_fenced_and_takes_the_place_of_whoever_was_alone(database):
    first, second = await hold(database), await hold(database)
    await database.write(job_rows.mark_risk, first, 2)
    await database.write(job_rows.mark_risk, second, 1, [first.job_id])
    assert [(await marks(database, each))[0] for each in (first, second)] == [1, 1]
    with pytest.raises(FenceLost):
        await database.write(job_rows.mark_risk, replace(first, epoch=9), 0)
    await database.write(open_job_rows.release_all)
    assert {(await marks(database, claim))[0] for claim, _ in await database.write(open_job_rows.claim, "next", 9)} == {
        0
    }

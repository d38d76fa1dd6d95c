"""Changes of many claimed jobs in one transaction: each is fenced by itself, and one that fails stops no other."""

from dataclasses import replace
from typing import Any

import pytest
from store.fleet import processes, rows, spread
from store.sample_jobs import NOW, make_asset, make_attempt, make_job

from penstock.domain import jobs
from penstock.domain.budgets import Budget, Period
from penstock.domain.events import EventType
from penstock.domain.jobs import Claim, IllegalMove, Job, Outcome, Phase, ResultMark, State
from penstock.store.database import Database
from penstock.store.event_reader import EventReader
from penstock.store.group_commit import GroupCommit
from penstock.store.queries.billing import budget_rows
from penstock.store.queries.billing.ledger_audit import check
from penstock.store.queries.files import result_rows, storage_rows
from penstock.store.queries.jobs import job_rows, open_job_rows
from penstock.store.queries.jobs.job_rows import FenceLost
from penstock.store.queries.runs import amendment_rows
from penstock.store.queries.runs.amendment_rows import Amendment

ERROR = {"code": "upstream_error", "message": "no"}


async def claim_all(database: Database, *accepted: Job) -> list[Claim]:
    """Accept jobs, each by a request of its own, and claim them."""
    for job in accepted:
        await database.write(job_rows.insert_all, [job], NOW)
    claimed = {claim.job_id: claim for claim, _ in await database.write(open_job_rows.claim, "one", len(accepted))}
    return [claimed[job.id] for job in accepted]


def start(job: Job) -> Job:
    return jobs.start(job, NOW)


def into(phase: Phase) -> Any:
    return lambda job: replace(job, phase=phase)


def succeed(job: Job) -> Job:
    return jobs.succeed(job, NOW + 7, (make_asset(),), ())


def fail(job: Job) -> Job:
    return jobs.fail(job, NOW + 7, ERROR, Outcome.FAILED)


def refuse(job: Job) -> Job:
    raise IllegalMove(job.id)


async def story(database: Database, job_id: str) -> list[tuple[int, EventType]]:
    return [(told.sequence, told.type) for told in (await EventReader(database).of_job(job_id, 0)).events]


async def amend_all(database: Database, *wanted: Amendment) -> list[Job | None]:
    return await database.write(amendment_rows.amend_all, wanted)


async def test_many_changes_are_written_as_each_would_be_alone(database):
    alone, *together = await claim_all(database, *(make_job() for _ in range(4)))
    for change in (start, into(Phase.DISPATCHING), into(Phase.GENERATING), into(Phase.STORING), succeed):
        await database.write(amendment_rows.amend, Amendment(alone, change, NOW))
        written = await amend_all(database, *(Amendment(claim, change, NOW) for claim in together))
        assert [job.id for job in written if job] == [claim.job_id for claim in together]
        expected, *found = [await database.read(job_rows.get, "acct_one", claim.job_id) for claim in (alone, *together)]
        assert found == written
        for job in found:
            assert replace(job, id=expected.id, outputs=expected.outputs) == expected
    columns = "SELECT vendor, state, done, finished_at, expires_at, at_risk, deaths FROM jobs ORDER BY id"
    assert len(set(await database.read(rows, columns))) == 1
    for claim in together:
        assert await story(database, claim.job_id) == await story(database, alone.job_id)


async def test_a_risky_phase_is_marked_and_its_deaths_are_forgotten_once_it_is_survived(database):
    claims = await claim_all(database, make_job(), make_job())
    await amend_all(database, *(Amendment(claim, start, NOW) for claim in claims))
    await amend_all(database, *(Amendment(claim, into(Phase.DISPATCHING), NOW) for claim in claims))
    assert await database.read(rows, "SELECT at_risk, deaths FROM jobs") == [(1, 0)] * 2
    await database.write(open_job_rows.release_all, died=True)
    again = {claim.job_id: claim for claim, _ in await database.write(open_job_rows.claim, "two", 2)}
    await amend_all(
        database, *(Amendment(each, lambda job: replace(job, progress=0.5), NOW) for each in again.values())
    )
    assert await database.read(rows, "SELECT at_risk, deaths FROM jobs") == [(0, 1)] * 2
    await amend_all(database, *(Amendment(each, into(Phase.GENERATING), NOW) for each in again.values()))
    assert await database.read(rows, "SELECT at_risk, deaths FROM jobs") == [(0, 0)] * 2


@pytest.mark.parametrize("stale", [{"epoch": 0}, {"epoch": 2}, {"owner": "two"}])
async def test_who_has_lost_a_claim_changes_nothing_and_stops_no_other(database, stale):
    lost, *held = await claim_all(database, *(make_job() for _ in range(3)))
    written = await amend_all(
        database, Amendment(replace(lost, **stale), start, NOW), *(Amendment(claim, start, NOW) for claim in held)
    )
    assert [job and job.state for job in written] == [None, State.RUNNING, State.RUNNING]
    assert await story(database, lost.job_id) == [(1, EventType.QUEUED)]
    with pytest.raises(FenceLost):
        await database.write(amendment_rows.amend, Amendment(replace(lost, **stale), start, NOW))


async def test_a_change_that_fails_is_left_to_be_written_alone(database):
    claims = await claim_all(database, *(make_job() for _ in range(3)))
    group = GroupCommit(database, amendment_rows.amend_all)
    changes = (start, refuse, start)
    written = await amend_all(
        database, *(Amendment(claim, change, NOW) for claim, change in zip(claims, changes, strict=True))
    )
    assert [job and job.sequence for job in written] == [2, None, 2]
    assert await group.write(Amendment(claims[1], refuse, NOW)) is None
    with pytest.raises(IllegalMove):
        await database.write(amendment_rows.amend, Amendment(claims[1], refuse, NOW))


async def test_a_job_changes_once_in_a_transaction_and_keeps_its_order(database):
    one, other = await claim_all(database, make_job(), make_job())
    wanted = [Amendment(one, start, NOW), Amendment(one, into(Phase.DISPATCHING), NOW), Amendment(other, start, NOW)]
    assert [job and job.sequence for job in await amend_all(database, *wanted)] == [2, None, 2]
    assert await database.write(amendment_rows.amend, wanted[1])
    assert [number for number, _ in await story(database, one.job_id)] == [1, 2, 3]


async def test_a_change_that_changes_nothing_has_no_event(database):
    one, other = await claim_all(database, make_job(), make_job())
    written = await amend_all(database, Amendment(one, lambda job: job, NOW), Amendment(other, start, NOW))
    assert [job and job.sequence for job in written] == [1, 2]
    assert await story(database, one.job_id) == [(1, EventType.QUEUED)]


async def test_jobs_of_pipelines_and_finished_jobs_are_left_to_be_written_alone(database):
    claims = await claim_all(database, make_job(pipeline_id="pipe_1"), make_job(), make_job())
    await database.write(amendment_rows.amend, Amendment(claims[1], start, NOW))
    await database.write(amendment_rows.amend, Amendment(claims[1], succeed, NOW))
    written = await amend_all(database, *(Amendment(claim, start, NOW) for claim in claims))
    assert [job and job.sequence for job in written] == [None, None, 2]
    assert [number for number, _ in await story(database, claims[0].job_id)] == [1]


async def test_outputs_marks_and_bytes_are_written_with_the_end(database):
    claims = await claim_all(database, make_job(), make_job(account_id="acct_two"), make_job(account_id="acct_two"))
    await amend_all(database, *(Amendment(claim, start, NOW) for claim in claims))
    marks = [ResultMark(b"one", None), ResultMark(b"two", "7"), None]
    ends = [Amendment(claim, succeed, NOW, delivers=True, mark=mark) for claim, mark in zip(claims, marks, strict=True)]
    finished = await amend_all(database, *ends)
    assert await database.read(rows, "SELECT job_id FROM assets ORDER BY job_id") == sorted(
        (claim.job_id,) for claim in claims
    )
    assert (await database.read(storage_rows.get, "acct_one")).assets == 3
    assert (await database.read(storage_rows.get, "acct_two")).assets == 6
    assert await database.read(result_rows.find, "acct_one", marks[:1], NOW) == finished[0]
    assert await database.read(result_rows.find, "acct_two", marks[1:2], NOW) == finished[1]


async def test_odd_texts_are_kept(database):
    odd = 'quote " backslash \\ line\nfeed \u2028 ü 🦊 \x01'
    claims = await claim_all(database, make_job(params={"prompt": odd}), make_job(client_ref=odd))
    attempt = make_attempt("x", operation={"id": odd, "nul": "\\u0000", "number": 1e300})
    change = lambda job: replace(start(job), attempts=(attempt,), warnings=(odd,))  # noqa: E731
    written = await amend_all(database, *(Amendment(claim, change, NOW) for claim in claims))
    assert written == [await database.read(job_rows.get, "acct_one", claim.job_id) for claim in claims]
    assert all(job and job.attempts == (attempt,) and job.warnings == (odd,) for job in written)


@pytest.mark.parametrize("seed", range(2))
async def test_many_who_end_jobs_of_the_same_payers_neither_deadlock_nor_miscount(postgres_store_url, seed):
    async with processes(postgres_store_url, 3) as fleet:
        for owner, period in (("acct_one", Period.TOTAL), ("acct_two", Period.TOTAL), ("key_b", Period.MONTH)):
            account = owner if owner.startswith("acct") else "acct_two"
            await fleet[0].write(budget_rows.put, Budget(owner=owner, period=period, cap=10**6), account, NOW)
        kinds = [("acct_one", "key"), ("acct_two", "key_a"), ("acct_two", "key_b")]
        accepted = [make_job(account_id=account, key_id=key, lineage=key, estimated=100) for account, key in kinds * 12]
        claims = await claim_all(fleet[0], *accepted)
        claims = claims[seed::2] + claims[1 - seed :: 2]
        for part in range(0, len(claims), 12):
            await amend_all(fleet[0], *(Amendment(claim, start, NOW) for claim in claims[part : part + 12]))

        def end(database: Database, number: int) -> Any:
            mine = claims[number * 6 : number * 6 + 6]
            return amend_all(database, *(Amendment(c, fail if i == 0 else succeed, NOW) for i, c in enumerate(mine)))

        outcomes = await spread(fleet, 6, end)
        assert all(job is not None and job.done for outcome in outcomes for job in outcome), outcomes
        assert await fleet[0].read(check) == []
        assert await fleet[0].read(rows, "SELECT sum(held) FROM purses") == [(0,)]

"""Many processes move money in one PostgreSQL at once: no cap is passed, and every cent is counted once."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from sqlalchemy import Connection, text
from store.fleet import Fleet, at_once, count, processes, rows, spread
from store.sample_completions import make_completion
from store.sample_jobs import NOW, make_job

from penstock.accounts import ledger_corrections
from penstock.domain import jobs
from penstock.domain.accounts import Actor
from penstock.domain.budgets import Budget, Payer, Period
from penstock.domain.jobs import Job, Outcome, State
from penstock.errors import InsufficientBudget
from penstock.store.postgres.database import PostgresDatabase
from penstock.store.queries.billing import (
    balance_rows,
    budget_rows,
    completion_rows,
    ledger_rows,
    limit_rows,
    process_lease_rows,
)
from penstock.store.queries.billing.balance_rows import LEASE_SECONDS
from penstock.store.queries.billing.ledger_audit import check
from penstock.store.queries.jobs import job_rows

ACCOUNT, KEY = "acct_one", "key"
PAYER = Payer(ACCOUNT, KEY, KEY)


@pytest.fixture
async def fleet(postgres_store_url: str) -> AsyncGenerator[Fleet]:
    async with processes(postgres_store_url, 3) as databases:
        yield databases


def succeed(cost: int = 300) -> Any:
    return lambda job: jobs.finish(
        jobs.start(job, NOW), State.SUCCEEDED, NOW, outcome=Outcome.SUCCEEDED, final=cost, charged=True
    )


async def budget_of(database: PostgresDatabase, cap: int, owner: str = ACCOUNT, period: Period = Period.TOTAL) -> None:
    await database.write(budget_rows.put, Budget(owner=owner, period=period, cap=cap), ACCOUNT, NOW)


async def books(database: PostgresDatabase) -> list[str]:
    return await database.read(check)


async def test_holds_of_many_never_pass_the_cap(fleet):
    await budget_of(fleet[0], 1000)
    await budget_of(fleet[0], 700, KEY, Period.MONTH)

    def accept(database: PostgresDatabase, _number: int) -> Any:
        return database.write(job_rows.insert_all, [make_job(estimated=100)], NOW)

    outcomes = await spread(fleet, 20, accept)
    refused = [each for each in outcomes if isinstance(each, InsufficientBudget)]
    assert len(refused) == 13
    assert len(refused) + sum(isinstance(each, list) for each in outcomes) == 20
    assert sorted(await fleet[0].read(rows, "SELECT period, held FROM purses")) == [("month", 700), ("total", 700)]
    assert await books(fleet[0]) == []


async def test_the_first_purse_of_a_period_is_begun_once(fleet):
    """A new month begins with many requests at once; among them those that bring jobs, and those that are chats."""
    await budget_of(fleet[0], 10_000, period=Period.MONTH)
    later = NOW + 40 * 86_400

    def use(database: PostgresDatabase, number: int) -> Any:
        if number % 2:
            return database.write(job_rows.insert_all, [make_job(estimated=100, created_at=later)], later)
        record = make_completion(key_id=KEY, lineage=KEY, cost=10, created_at=later)
        return database.write(completion_rows.add_all, f"process_{number}", [record], later)

    outcomes = await spread(fleet, 16, use)
    assert not [each for each in outcomes if isinstance(each, Exception)]
    standings = await fleet[0].read(balance_rows.standings, PAYER, later)
    assert [(each.spent, each.held) for each in standings] == [(80, 800)]
    assert await books(fleet[0]) == []


async def test_leases_of_many_processes_never_pass_the_cap(fleet):
    budget = Budget(owner=ACCOUNT, period=Period.TOTAL, cap=1000)
    await fleet[0].write(budget_rows.put, budget, ACCOUNT, NOW)

    def lease(database: PostgresDatabase, number: int) -> Any:
        return database.write(balance_rows.lease, f"process_{number % 5}", PAYER, budget, 30, 90, NOW)

    granted = await spread(fleet, 25, lease)
    assert sum(grant.amount for grant in granted) <= 1000
    assert sum(grant.amount for grant in granted) > 1000 - 30
    assert await books(fleet[0]) == []


@pytest.mark.parametrize("seed", range(3))
async def test_a_lease_is_renewed_or_expires_never_both(fleet, seed):
    budget = Budget(owner=ACCOUNT, period=Period.TOTAL, cap=10_000)
    await fleet[0].write(budget_rows.put, budget, ACCOUNT, NOW)
    for number in range(6):
        await fleet[0].write(balance_rows.lease, f"process_{number}", PAYER, budget, 100, 100, NOW)
    late = NOW + LEASE_SECONDS + 1

    def tend(database: PostgresDatabase, number: int) -> Any:
        if number % 2 == seed % 2:
            return database.write(process_lease_rows.expire, late)
        return database.write(process_lease_rows.renew, f"process_{number // 2 % 6}", late)

    told = await spread(fleet, 12, tend)
    kept = sum(bool(each.balances) for each in told if isinstance(each, process_lease_rows.Renewed))
    assert kept + sum(each for each in told if isinstance(each, int)) == 6
    assert await fleet[0].read(rows, "SELECT held FROM purses") == [(100 * kept,)]


async def test_a_budget_set_while_money_moves_counts_all_of_it(fleet):
    """Whether a job's cost is in the new purse or comes to it later: it is counted once."""
    accepted = [make_job(estimated=500) for _ in range(12)]
    await fleet[0].write(job_rows.insert_all, accepted, NOW)

    def move(database: PostgresDatabase, number: int) -> Any:
        if number % 6 == 3:
            cap = 100_000 + number
            return database.write(budget_rows.put, Budget(owner=ACCOUNT, period=Period.TOTAL, cap=cap), ACCOUNT, NOW)
        if number % 6 == 5:
            return database.write(budget_rows.remove, ACCOUNT, "total")
        return database.write(job_rows.amend_own, ACCOUNT, accepted[number // 2].id, succeed(), NOW)

    outcomes = await spread(fleet, 24, move)
    assert {type(each) for each in outcomes} <= {Job, type(None), jobs.IllegalMove}
    assert await books(fleet[0]) == []
    await budget_of(fleet[0], 100_000)
    assert await books(fleet[0]) == []


async def test_one_end_of_a_hold_excludes_the_other(fleet):
    """An administrator settles what its time would let go at the same moment."""
    await budget_of(fleet[0], 100_000)
    unknown = lambda job: jobs.finish(  # noqa: E731
        jobs.start(job, NOW), State.FAILED, NOW, outcome=Outcome.UNKNOWN, final=None, charged=None
    )
    accepted = [make_job(estimated=500) for _ in range(8)]
    await fleet[0].write(job_rows.insert_all, accepted, NOW)
    for job in accepted:
        await fleet[0].write(job_rows.amend_own, ACCOUNT, job.id, unknown, NOW)
    later = NOW + ledger_rows.UNKNOWN_SECONDS + 1

    def decide(database: PostgresDatabase, number: int) -> Any:
        if number % 3 == 0:
            return database.write(process_lease_rows.expire, later)
        verb = ledger_corrections.settle if number % 3 == 1 else ledger_corrections.refund
        return database.write(verb, Actor.ADMIN, accepted[number // 3].id, "because", later)

    await spread(fleet, 24, decide)
    assert await books(fleet[0]) == []
    assert await fleet[0].read(rows, "SELECT held FROM purses") == [(0,)]


async def test_a_storm_of_crossing_writes_loses_nothing(fleet):
    """Batches of the same accounts in opposite orders, each in its own transaction."""
    names = [f"acct_{number}" for number in range(6)]
    for name in names:
        await fleet[0].write(budget_rows.put, Budget(owner=name, period=Period.TOTAL, cap=10**9), name, NOW)

    def charge(database: PostgresDatabase, number: int) -> Any:
        order = names if number % 2 else names[::-1]
        batch = [make_completion(account_id=name, key_id="k", lineage=f"key_of_{name}", cost=7) for name in order]
        return database.write(completion_rows.add_all, f"process_{number % 3}", batch, NOW)

    outcomes = await spread(fleet, 18, charge)
    assert outcomes == [[]] * 18
    assert await fleet[0].read(rows, "SELECT DISTINCT spent FROM purses") == [(126,)]
    assert await books(fleet[0]) == []


async def test_a_deadlock_is_tried_again(fleet):
    def cross(connection: Connection, *names: str) -> None:
        for name in names:
            limit_rows.take(connection, name, "requests", 1000, NOW, least=1, want=1, owed=0)
            connection.execute(text("SELECT pg_sleep(0.05)"))

    await fleet[0].write(cross, "a", "b")
    outcomes = await at_once(fleet[0].write(cross, "a", "b"), fleet[1].write(cross, "b", "a"))
    assert outcomes == [None, None]
    assert await fleet[0].read(rows, "SELECT level FROM buckets") == [(997.0,), (997.0,)]


async def test_sums_of_usage_are_right(fleet):
    def use(database: PostgresDatabase, number: int) -> Any:
        records = [make_completion(model=f"m{each % 3}", cost=5) for each in range(number % 4 + 1)]
        return database.write(completion_rows.add_all, "process", records, NOW)

    await spread(fleet, 24, use)
    total = 6 * (1 + 2 + 3 + 4)
    for table in ("usage_days", "usage_model_days", "usage_key_days"):
        assert await fleet[0].read(rows, f"SELECT sum(requests), sum(cost) FROM {table}") == [(total, total * 5)]  # noqa: S608
    assert await books(fleet[0]) == []


async def test_a_batch_that_two_processes_bring_is_written_once(fleet):
    batch = [make_completion(cost=5) for _ in range(6)]

    def recover(database: PostgresDatabase, _number: int) -> Any:
        return database.write(completion_rows.add_all, "process_dead", batch, NOW, again=True)

    assert await spread(fleet, 6, recover) == [[]] * 6
    assert await count(fleet[0], "completions") == await count(fleet[0], "ledger") == 6
    assert await books(fleet[0]) == []

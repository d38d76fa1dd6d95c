"""Old records are removed, and the books still prove every cent."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from sqlalchemy import func, select, update
from store.sample_completions import make_completion
from store.sample_jobs import make_job

from penstock.accounts import administration, ledger_corrections
from penstock.billing.record_retention import DAY_SECONDS, RecordAges, RecordRetention, cut_money
from penstock.domain import jobs
from penstock.domain.accounts import Action, Actor, Allowance, AuditEntry
from penstock.domain.budgets import Budget, Payer, Period
from penstock.domain.jobs import Outcome, State
from penstock.store import tables
from penstock.store.database import Connection, Database
from penstock.store.queries.accounts import audit_rows
from penstock.store.queries.billing import balance_rows, budget_rows, completion_rows, ledger_audit, ledger_rows
from penstock.store.queries.billing.ledger_rows import LedgerRefused
from penstock.store.queries.jobs import event_rows, job_rows
from penstock.store.queries.retention import old_event_rows, roll_up_rows

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC).timestamp()
LAST_YEAR = NOW - 300 * DAY_SECONDS
AGES = RecordAges(requests=30 * DAY_SECONDS, events=30 * DAY_SECONDS, audit=30 * DAY_SECONDS)
ZONES = ("UTC", "Pacific/Kiritimati", "Etc/GMT+12", "Asia/Kolkata", "America/St_Johns")


@pytest.fixture
async def account(database: Database) -> str:
    found = await database.write(administration.create_account, Actor.CLI, "mill", LAST_YEAR)
    return found.id


async def chat(database: Database, account: str, at: float, cost: int = 700, count: int = 1) -> list[str]:
    records = [make_completion(account_id=account, created_at=at, cost=cost) for _ in range(count)]
    await database.write(completion_rows.add_all, "process_1", records, at)
    return [record.id for record in records]


async def accept(database: Database, account: str, at: float, **fields: Any) -> str:
    job = make_job(account_id=account, created_at=at, estimated=500, **fields)
    await database.write(job_rows.insert_all, [job], at)
    return job.id


async def finish(database: Database, account: str, job_id: str, at: float) -> None:
    def end(job: jobs.Job) -> jobs.Job:
        started = jobs.start(job, at)
        return jobs.finish(started, State.SUCCEEDED, at, outcome=Outcome.SUCCEEDED, final=400, charged=True)

    await database.write(job_rows.amend_own, account, job_id, end, at)


async def remove_old(database: Database, ages: RecordAges = AGES, now: float = NOW) -> None:
    await RecordRetention(database, lambda: ages, lambda: now).run()


async def rows(database: Database, table: str) -> int:
    def count(connection: Connection) -> int:
        return connection.execute(select(func.count()).select_from(tables.metadata.tables[table])).scalar_one()

    return await database.read(count)


async def standing(database: Database, account: str) -> list[tuple[str, int]]:
    found = await database.read(balance_rows.standings, Payer(account, "key", "key"), NOW)
    return [(each.budget.period.value, each.spent) for each in found]


async def problems(database: Database) -> list[str]:
    return await database.read(ledger_audit.check)


async def test_old_requests_are_summed_up_and_the_books_stay_right(database: Database, account: str):
    await chat(database, account, LAST_YEAR, count=1200)
    await chat(database, account, LAST_YEAR, cost=0, count=3)
    await chat(database, account, NOW - 60, count=2)
    old, new = [await accept(database, account, at) for at in (LAST_YEAR, NOW - 60)]
    await finish(database, account, old, LAST_YEAR + 60)
    await finish(database, account, new, NOW)
    await database.write(ledger_corrections.refund, Actor.CLI, old, "hollow", NOW)
    await remove_old(database)
    assert await problems(database) == []
    assert (await rows(database, "completions"), await rows(database, "ledger")) == (2, 4)
    [checkpoint] = await database.read(roll_up_rows.checkpoints)
    assert (checkpoint.entries, checkpoint.requests, checkpoint.spent) == (1203, 1203, 1200 * 700)
    assert await database.read(ledger_audit.count) == {
        "hold entries": 1,
        "settle entries": 3,
        "purses": 0,
        "open holds": 0,
        "entries in checkpoints": 1203,
    }


async def test_a_later_total_counts_what_was_rolled_up(database: Database, account: str):
    await chat(database, account, LAST_YEAR, count=3)
    await remove_old(database)
    for period in (Period.TOTAL, Period.MONTH):
        await database.write(budget_rows.put, Budget(owner=account, period=period, cap=10_000), account, NOW)
    await chat(database, account, NOW - 60)
    assert sorted(await standing(database, account)) == [("month", 700), ("total", 2_800)]
    assert await problems(database) == []


async def test_balances_of_past_periods_go_with_their_entries(database: Database, account: str):
    for period in Period:
        await database.write(budget_rows.put, Budget(owner=account, period=period, cap=10_000), account, LAST_YEAR)
    await chat(database, account, LAST_YEAR, count=2)
    await chat(database, account, NOW)
    before = sorted(await standing(database, account))
    assert await rows(database, "purses") == 5
    await remove_old(database)
    assert sorted(await standing(database, account)) == before == [("day", 700), ("month", 700), ("total", 2_100)]
    assert await rows(database, "purses") == 3
    assert await problems(database) == []


async def test_what_is_rolled_up_is_not_charged_or_refunded_again(database: Database, account: str):
    [name] = await chat(database, account, LAST_YEAR)
    await remove_old(database)
    with pytest.raises(LedgerRefused):
        await database.write(ledger_rows.refund, name, NOW, "a gift")
    record = make_completion(id=name, account_id=account, created_at=LAST_YEAR)
    doubtful = await database.write(completion_rows.add_all, "process_2", [record], NOW, again=True)
    assert doubtful == [record]
    assert await rows(database, "ledger") == 0
    assert await problems(database) == []


async def test_an_open_job_keeps_the_records_of_its_time(database: Database, account: str):
    await chat(database, account, LAST_YEAR)
    job_id = await accept(database, account, LAST_YEAR)
    await remove_old(database)
    assert await rows(database, "completions") == 1
    await finish(database, account, job_id, NOW)
    await remove_old(database, now=NOW + 40 * DAY_SECONDS)
    assert (await rows(database, "completions"), await rows(database, "ledger")) == (0, 0)
    assert await problems(database) == []


@pytest.mark.parametrize("table", ["ledger_carried", "ledger_checkpoints"])
async def test_a_changed_sum_is_found(database: Database, account: str, table: str):
    await chat(database, account, LAST_YEAR, count=2)
    await remove_old(database)
    await database.write(lambda store: store.execute(update(tables.metadata.tables[table]).values(spent=1)))
    assert any(account in problem for problem in await problems(database))


async def test_refunds_beside_a_roll_up_are_in_it_or_refused(database: Database, account: str):
    names = await chat(database, account, LAST_YEAR, count=30)

    async def refund(name: str) -> int:
        try:
            return await database.write(ledger_corrections.refund, Actor.CLI, name, "a gift", NOW)
        except LedgerRefused:
            return 0

    refunds = asyncio.gather(*(refund(name) for name in names))
    for _ in range(10):
        await database.write(roll_up_rows.roll_up, account, LAST_YEAR + 1, NOW, 3)
    refunded = await refunds
    assert await rows(database, "ledger") == 0
    carried = await database.read(roll_up_rows.carried_of)
    assert carried[account].spent == 30 * 700 - sum(refunded)
    assert await problems(database) == []


@given(
    now=some.floats(0, 4e9),
    age=some.floats(DAY_SECONDS, 1e9),
    zone=some.sampled_from(ZONES),
    period=some.sampled_from((Period.DAY, Period.MONTH)),
)
def test_no_period_that_lasts_is_cut(now: float, age: float, zone: str, period: Period):
    start, _ = Budget(owner="acct_a", period=period, cap=1, time_zone=zone).window(now)
    assert cut_money(now, age) <= start
    assert cut_money(now, age) <= now - age


# -- events and the audit log


async def test_events_go_except_those_that_something_needs(database: Database, account: str):
    done, runs = [await accept(database, account, LAST_YEAR) for _ in range(2)]
    await finish(database, account, done, LAST_YEAR + 60)
    balance = {"of": "account", "share": 50}
    await database.write(event_rows.append_notice, account, balance, LAST_YEAR)
    new = await accept(database, account, NOW)
    await remove_old(database)
    assert await rows(database, "events") == 5  # the search index has read none
    await database.write(
        lambda store: store.execute(tables.search_progress.insert().values(name="jobs", position=1_000_000))
    )
    await remove_old(database)
    left = await database.read(event_rows.of_account, account, 0, 100)
    assert [(event.job.id, event.type) for event in left if event.job] == [
        (runs, "job.queued"),
        (done, "job.succeeded"),
        (new, "job.queued"),
    ]
    assert len(left) == 3


async def test_the_last_event_of_an_account_stays(database: Database, account: str):
    await database.write(
        lambda store: store.execute(tables.search_progress.insert().values(name="jobs", position=1_000_000))
    )
    for share in (50, 80):
        await database.write(event_rows.append_notice, account, {"share": share}, LAST_YEAR)
    before = await database.read(event_rows.last_position, account)
    portion = await database.write(old_event_rows.remove, NOW, 0, 100)
    assert (portion.removed, portion.is_last) == (1, True)
    assert await database.read(event_rows.last_position, account) == before


async def test_the_audit_log_says_what_was_removed_of_it(database: Database, account: str):
    for number in range(3):
        entry = AuditEntry(
            created_at=LAST_YEAR + number, actor=Actor.CLI, action=Action.KEY_REVOKED, subject="k", account_id=account
        )
        await database.write(audit_rows.append, entry)
    await database.write(
        administration.set_budget, Actor.CLI, await _get(database, account), Allowance(period=Period.DAY, cap=1), NOW
    )
    await remove_old(database)
    trimmed, budget = await database.read(audit_rows.page, None, None, None, 10)
    assert budget.action == Action.BUDGET_SET
    assert (trimmed.action, trimmed.actor, trimmed.detail["entries"]) == (Action.AUDIT_TRIMMED, Actor.SERVER, 4)
    await remove_old(database)
    assert await rows(database, "audit") == 2


async def _get(database: Database, account: str) -> Any:
    return await database.read(administration.get_account, account, NOW)


async def test_nothing_goes_without_an_age(database: Database, account: str):
    await chat(database, account, LAST_YEAR)
    retention = RecordRetention(database, RecordAges, lambda: NOW)
    assert not retention.is_wanted
    await retention.run()
    assert (await rows(database, "completions"), await rows(database, "audit")) == (1, 1)

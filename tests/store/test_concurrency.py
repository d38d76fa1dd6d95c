"""Many processes write to one PostgreSQL at once: every limit holds, nothing is counted twice, nothing is lost."""

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection
from store.fleet import Fleet, count, processes, rows, spread
from store.sample_jobs import NOW, make_attempt, make_job

from penstock.accounts import administration
from penstock.domain import jobs
from penstock.domain.accounts import Actor, Allowance, KeyWish
from penstock.domain.api_keys import ApiKey, Limits
from penstock.domain.budgets import Budget, Payer, Period
from penstock.domain.jobs import Job
from penstock.errors import ConcurrencyLimited, KeyNotRotatable
from penstock.jobs.acceptance import Acceptance, AcceptanceWriter, SubmittedRequest, accept, accept_all
from penstock.jobs.request import Decoded
from penstock.store.postgres.database import PostgresDatabase
from penstock.store.queries.accounts import key_rows
from penstock.store.queries.billing import budget_rows, limit_rows
from penstock.store.queries.jobs import job_rows, open_job_rows, worker_rows
from penstock.store.queries.jobs.job_rows import FenceLost

ACCOUNT, KEY = "acct_one", "key"
PAYER = Payer(ACCOUNT, KEY, KEY)


@pytest.fixture
async def fleet(postgres_store_url: str) -> AsyncGenerator[Fleet]:
    async with processes(postgres_store_url, 3) as databases:
        yield databases


def key_of(account_id: str = ACCOUNT, **limits: int) -> ApiKey:
    return ApiKey(
        public_id=KEY,
        account_id=account_id,
        account="one",
        name="",
        secret_hash=b"",
        lineage=KEY,
        limits=Limits(**limits),
    )


def submission(idempotency_key: str | None, *, is_retry: bool = False, **limits: int) -> SubmittedRequest:
    decoded = Decoded({"model": "m"}, b"the same body")
    return SubmittedRequest(
        decoded=decoded,
        path_model=None,
        key=key_of(**limits),
        request_id="req",
        idempotency_key=idempotency_key,
        is_retry=is_retry,
    )


# -- accepting


@pytest.mark.parametrize(("key", "is_retry"), [("mine", False), (None, True)])
async def test_one_request_sent_many_times_at_once_makes_one_job(fleet, key, is_retry):
    def send(database: PostgresDatabase, _number: int) -> Any:
        return database.write(accept, Acceptance(submission(key, is_retry=is_retry), [make_job()]), NOW)

    receipts = await spread(fleet, 12, send)
    assert len({receipt.id for receipt in receipts}) == 1
    assert sum(receipt.replayed or receipt.suppressed for receipt in receipts) == 11
    assert await count(fleet[0], "jobs") == await count(fleet[0], "requests") == await count(fleet[0], "events") == 1


async def test_a_retry_waits_for_the_request_that_it_repeats(fleet):
    entered, opened = threading.Event(), threading.Event()

    def accept_slowly(connection: Connection) -> Any:
        receipt = accept(connection, Acceptance(submission(None), [make_job()]), NOW)
        entered.set()
        assert opened.wait(20)
        return receipt

    first = asyncio.create_task(fleet[0].write(accept_slowly))
    await asyncio.to_thread(entered.wait, 20)
    again = asyncio.create_task(fleet[1].write(accept, Acceptance(submission(None, is_retry=True), [make_job()]), NOW))
    await asyncio.wait((again,), timeout=0.1)
    assert not again.done()
    opened.set()
    assert (await again).id == (await first).id
    assert (await again).suppressed


async def test_no_more_jobs_are_open_than_a_key_may_have(fleet):
    def send(database: PostgresDatabase, number: int) -> Any:
        return database.write(accept, Acceptance(submission(f"r{number}", concurrent_jobs=5), [make_job()]), NOW)

    outcomes = await spread(fleet, 20, send)
    assert Counter(type(each).__name__ for each in outcomes) == {"Receipt": 5, ConcurrencyLimited.__name__: 15}
    assert await count(fleet[0], "jobs") == 5


async def test_requests_that_share_a_transaction_are_accepted_once_each(fleet):
    """Each process writes many at a time; every key is sent to all of them."""
    desks = [AcceptanceWriter(database, lambda: NOW) for database in fleet]
    wanted = [Acceptance(submission(f"r{number % 12}"), [make_job(estimated=100)]) for number in range(12 * len(desks))]
    receipts = await asyncio.gather(*(desks[number // 12].accept(each) for number, each in enumerate(wanted)))
    assert len({receipt.id for receipt in receipts}) == 12
    assert sum(receipt.replayed for receipt in receipts) == 12 * (len(desks) - 1)
    assert await count(fleet[0], "jobs") == await count(fleet[0], "requests") == await count(fleet[0], "events") == 12
    assert await count(fleet[0], "ledger") == 12


async def test_a_retry_waits_for_requests_that_share_a_transaction(fleet):
    entered, opened = threading.Event(), threading.Event()

    def accept_slowly(connection: Connection) -> Any:
        receipts = accept_all(connection, [Acceptance(submission(None), [make_job()]) for _ in range(2)], NOW)
        entered.set()
        assert opened.wait(20)
        return receipts

    first = asyncio.create_task(fleet[0].write(accept_slowly))
    await asyncio.to_thread(entered.wait, 20)
    again = asyncio.create_task(fleet[1].write(accept, Acceptance(submission(None, is_retry=True), [make_job()]), NOW))
    await asyncio.wait((again,), timeout=0.1)
    assert not again.done()
    opened.set()
    assert (await again).suppressed
    assert (await again).id in {receipt.id for receipt in await first}


async def test_one_that_cannot_be_stored_keeps_no_other_from_being_accepted(fleet):
    desk = AcceptanceWriter(fleet[0], lambda: NOW)
    amounts = [100, 1 << 70, 100, 100]
    wanted = [Acceptance(submission(f"r{n}"), [make_job(estimated=amount)]) for n, amount in enumerate(amounts)]
    outcomes = await asyncio.gather(*(desk.accept(each) for each in wanted), return_exceptions=True)
    assert [type(outcome).__name__ for outcome in outcomes] == ["Receipt", "InvalidRequest", "Receipt", "Receipt"]
    assert await count(fleet[0], "jobs") == await count(fleet[0], "requests") == 3


async def test_requests_that_share_a_transaction_never_break_a_budget(fleet):
    """Some of them are borne by it, the others refused, each by itself."""
    await fleet[0].write(budget_rows.put, Budget(owner="key", period=Period.TOTAL, cap=1_000), "acct_one", NOW)
    desks = [AcceptanceWriter(database, lambda: NOW) for database in fleet]
    mine = [Acceptance(submission(f"r{number}"), [make_job(estimated=100)]) for number in range(30)]
    outcomes = await asyncio.gather(
        *(desks[number % len(desks)].accept(each) for number, each in enumerate(mine)), return_exceptions=True
    )
    assert Counter(type(each).__name__ for each in outcomes) == {"Receipt": 10, "InsufficientBudget": 20}
    assert await count(fleet[0], "jobs") == await count(fleet[0], "holds") == await count(fleet[0], "ledger") == 10
    assert list(await fleet[0].read(rows, "SELECT held, spent FROM purses")) == [(1_000, 0)]


async def test_a_job_is_claimed_once(fleet):
    accepted = [make_job() for _ in range(30)]
    await fleet[0].write(job_rows.insert_all, accepted, NOW)
    claimed = await spread(fleet, 9, lambda database, number: database.write(open_job_rows.claim, f"worker{number}", 7))
    ids = [claim.job_id for batch in claimed for claim, _ in batch]
    assert len(ids) == len(set(ids)) >= 7
    assert len(await fleet[0].write(open_job_rows.claim, "last", 99)) == 30 - len(ids)


async def test_changes_of_one_job_come_one_after_the_other(fleet):
    await fleet[0].write(job_rows.insert_all, [make_job()], NOW)
    ((claim, _),) = await fleet[0].write(open_job_rows.claim, "one", 1)

    def move(database: PostgresDatabase, number: int) -> Any:
        change = lambda job: replace(job, progress=job.progress + 0.01, eta_at=NOW + number)  # noqa: E731
        return database.write(job_rows.amend, claim, change, NOW)

    told = await spread(fleet, 24, move)
    assert sorted(job.sequence for job in told) == list(range(2, 26))
    final = await fleet[0].read(job_rows.get_claimed, claim)
    assert (round(final.progress, 2), final.sequence) == (0.24, 25)


async def test_who_lost_the_job_while_waiting_for_it_changes_nothing(fleet):
    await fleet[0].write(job_rows.insert_all, [make_job()], NOW)
    ((claim, _),) = await fleet[0].write(open_job_rows.claim, "one", 1)
    entered, opened = threading.Event(), threading.Event()

    def take_over_slowly(connection: Connection) -> None:
        open_job_rows.release_all(connection)
        open_job_rows.claim(connection, "two", 1)
        entered.set()
        assert opened.wait(20)

    taking = asyncio.create_task(fleet[1].write(take_over_slowly))
    await asyncio.to_thread(entered.wait, 20)
    late = asyncio.create_task(fleet[0].write(job_rows.amend, claim, lambda job: jobs.start(job, NOW), NOW))
    await asyncio.wait((late,), timeout=0.1)
    opened.set()
    await taking
    with pytest.raises(FenceLost):
        await late


# -- limits


async def test_slots_are_never_more_than_the_limit(fleet):
    def lease(database: PostgresDatabase, number: int) -> Any:
        return database.write(limit_rows.lease_slots, "key", f"process_{number % 4}", 10, 2, NOW)

    assert sum(await spread(fleet, 20, lease)) == 10
    assert await fleet[0].read(rows, "SELECT sum(amount) FROM slots") == [(10,)]


async def test_a_bucket_gives_no_more_than_it_holds(fleet):
    def take(database: PostgresDatabase, _number: int) -> Any:
        return database.write(limit_rows.take, "key", "requests", 60, NOW, least=7, want=7, owed=0)

    taken = await spread(fleet, 20, take)
    assert sum(level.taken for level in taken) == 56


# -- administrators, and what is made when it is first asked for


async def test_what_is_made_at_first_use_is_made_once(fleet):
    secrets = await spread(fleet, 9, lambda database, _: database.write(key_rows.signing_secret))
    assert len(set(secrets)) == 1
    accounts = await spread(fleet, 9, lambda database, _: database.write(key_rows.account_id, "default", NOW))
    assert len(set(accounts)) == 1
    turns = await spread(fleet, 9, lambda database, _: database.write(worker_rows.take_turn, "sweep", 60))
    assert sum(turns) == 1


async def test_a_key_is_replaced_once(fleet):
    made = await fleet[0].write(administration.create_account, Actor.CLI, "mill", NOW)
    _, key = await fleet[0].write(administration.issue_key, Actor.CLI, made.id, KeyWish(), NOW)

    def rotate(database: PostgresDatabase, _number: int) -> Any:
        return database.write(administration.rotate_key, Actor.CLI, key.public_id, 60.0, NOW)

    outcomes = await spread(fleet, 6, rotate)
    assert [type(each) for each in outcomes].count(KeyNotRotatable) == 5
    assert await count(fleet[0], "keys") == 2


async def test_budgets_set_at_once_leave_one(fleet):
    made = await fleet[0].write(administration.create_account, Actor.CLI, "mill", NOW)

    def allow(database: PostgresDatabase, number: int) -> Any:
        allowance = Allowance(period=Period.TOTAL, cap=number, time_zone="UTC")
        return database.write(administration.set_budget, Actor.CLI, made, allowance, NOW)

    assert await spread(fleet, 9, allow) == [None] * 9
    assert await count(fleet[0], "budgets") == await count(fleet[0], "purses") == 1
    assert await count(fleet[0], "audit") == 1 + 9


async def test_lost_orders_are_shared_out_one_each(fleet):
    found = [f"order-{number}" for number in range(6)]
    claims = []
    for _ in range(8):
        job = make_job()
        await fleet[0].write(job_rows.insert_all, [job], NOW)
        ((claim, _),) = await fleet[0].write(open_job_rows.claim, f"of {job.id}", 1)
        lost = lambda job: jobs.order(jobs.start(job, NOW), make_attempt(job.id))  # noqa: E731
        await fleet[0].write(job_rows.amend, claim, lost, NOW)
        await fleet[0].write(job_rows.amend, claim, lambda job: replace(job, phase=jobs.Phase.RECONCILING), NOW)
        claims.append(claim)

    def take_up(job: Job, name: str) -> Job:
        attempt = replace(job.attempts[-1], upstream_id=name, operation={"id": name})
        return replace(job, attempts=(attempt,), phase=jobs.Phase.GENERATING)

    def adopt(database: PostgresDatabase, number: int) -> Any:
        return database.write(job_rows.adopt, claims[number], found, take_up, NOW + 1)

    told = await spread(fleet, 8, adopt)
    taken = [job.attempts[-1].upstream_id for job in told]
    assert sorted(name for name in taken if name) == found

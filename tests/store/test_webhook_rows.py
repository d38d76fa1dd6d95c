"""The outbox: written with the event or not at all, taken on by one at a time, in order, and fairly."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from sqlalchemy import Connection, func, select, text
from store.fleet import processes
from store.sample_jobs import NOW, make_job
from store.trials import undone

from penstock.domain import jobs
from penstock.domain.events import BUDGET_EVENT, EventType
from penstock.domain.jobs import Job
from penstock.domain.webhooks import DeliveryAttempt, Endpoint, PendingDelivery, Status, new_secret, own_id
from penstock.fairness.webhook_slots import ENDPOINT_PLACES, Candidate, Plan, SlotUsage, WebhookSlots
from penstock.store import sql
from penstock.store.database import RUNG, Database
from penstock.store.queries.jobs import event_rows, job_rows
from penstock.store.queries.webhooks import delivery_rows, webhook_rows
from penstock.store.queries.webhooks.delivery_rows import LEASE_SECONDS
from penstock.store.signals import DELIVERIES
from penstock.store.tables import deliveries

GOOD = DeliveryAttempt(at=NOW, seconds=0.1, status_code=200)
BAD = DeliveryAttempt(at=NOW, seconds=0.1, status_code=500, error="The URL answered 500.")
ALL = tuple(EventType)


def make_endpoint(number: int = 1, account: str = "acct_one", events: tuple[str, ...] = ALL, **more: Any) -> Endpoint:
    fields = {"url": f"https://{number}.example/", "description": "", "base_url": "https://gate.example"}
    return Endpoint(
        **(fields | more),
        id=f"hook_{account}_{number}",
        account_id=account,
        events=events,
        secret=new_secret(),
        created_at=NOW,
    )


async def accept(database: Database, **fields: Any) -> Job:
    (job,) = await database.write(job_rows.insert_all, [make_job(**fields)], NOW)
    return job


async def advance(database: Database, job: Job) -> None:
    """One more event of a job."""
    await database.write(
        job_rows.amend_own, job.account_id, job.id, lambda job: replace(job, progress=job.progress + 0.01), NOW
    )


class Few(Plan):
    """Chooses no more than so many, of endpoints that have all answered before."""

    __slots__ = ("most",)

    def __init__(self, most: int = 64) -> None:
        super().__init__(SlotUsage(), {}, {})
        object.__setattr__(self, "most", most)

    def choose(self, due: Iterable[Candidate], held: Sequence[Candidate] = ()) -> list[Candidate]:
        return sorted(due, key=lambda each: (each.due_at, each.position))[: self.most - len(held)]


async def claim(database: Database, now: float = NOW, plan: Plan | None = None) -> list[PendingDelivery]:
    return await database.write(delivery_rows.claim, now, plan or Few())


async def count(database: Database) -> int:
    return await database.read(
        lambda connection: connection.execute(select(func.count(deliveries.c.position))).scalar()
    )


# -- writing


async def test_an_event_and_its_deliveries_are_one_transaction(database):
    await database.write(webhook_rows.add, make_endpoint())

    def fail(connection: Connection) -> None:
        job_rows.insert_all(connection, [make_job()], NOW)
        assert DELIVERIES in connection.info[RUNG]
        raise InterruptedError

    with pytest.raises(InterruptedError):
        await database.write(fail)
    assert await count(database) == 0
    await accept(database)
    assert await count(database) == 1


async def test_the_bell_rings_for_those_who_deliver_only_where_there_is_something(database):
    with database.signals.listen(DELIVERIES) as subscription:
        await accept(database)
        assert not await subscription.wait(0)
        await database.write(webhook_rows.add, make_endpoint())
        await accept(database)
        assert await subscription.wait(0)


async def test_each_webhook_of_the_account_is_told_what_it_asked_for(database):
    wanted = {
        1: make_endpoint(1, events=(EventType.QUEUED,)),
        2: make_endpoint(2, events=(EventType.FAILED, EventType.PROGRESS)),
        3: make_endpoint(3, disabled_at=NOW),
        4: make_endpoint(4, events=(BUDGET_EVENT,)),
        5: make_endpoint(5, "acct_two"),
    }
    for endpoint in wanted.values():
        await database.write(webhook_rows.add, endpoint)
    job = await accept(database)
    await advance(database, job)
    await database.write(event_rows.append_notice, "acct_one", {"share": 50}, NOW)
    told = {(parcel.endpoint.id, parcel.delivery.type) for parcel in await claim(database)}
    assert told == {
        (wanted[1].id, "job.queued"),
        (wanted[2].id, "job.progress"),
        (wanted[4].id, "budget.threshold"),
    }


async def test_a_jobs_own_webhook_is_signed_with_one_secret_of_its_account(database):
    own = {"url": "https://own.example/", "events": ["job.queued"], "base_url": ""}
    for _ in range(2):
        await accept(database, webhook=own)
    parcels = [*await claim(database, plan=Few(1)), *await claim(database)]
    assert {parcel.endpoint.id for parcel in parcels} == {own_id("acct_one")}
    known = await database.write(webhook_rows.get_own, "acct_one", NOW)
    assert {parcel.endpoint.secret for parcel in parcels} == {known.secret}
    other = await database.write(webhook_rows.get_own, "acct_two", NOW)
    assert other.secret != known.secret
    assert await database.read(webhook_rows.page, "acct_one", None, 10) == []


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
async def test_events_of_accounts_without_webhooks_cost_next_to_nothing(database):
    """Count statements and steps, not seconds: one look into an index for a batch of events, and nothing written."""

    def trace(connection: Connection) -> list[str]:
        said: list[str] = []
        driver: Any = connection.connection.driver_connection
        driver.set_trace_callback(said.append)
        news = [webhook_rows.WebhookEvent("acct_none", "job_1", number, "job.queued") for number in range(500)]
        webhook_rows.enqueue(connection, news, NOW)
        driver.set_trace_callback(None)
        return said

    def explain(connection: Connection, statement: str) -> list[str]:
        return [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}")]

    for number in range(200):
        await database.write(webhook_rows.add, make_endpoint(1, f"acct_{number}"))
    said = [each for each in await database.write(trace) if not each.startswith(("BEGIN", "SAVEPOINT"))]
    assert [each.split()[0] for each in said] == ["SELECT"]
    plan = await database.read(explain, said[0])
    assert all(step.startswith("SEARCH") and "INDEX" in step for step in plan), plan


# -- taking on


async def test_what_is_taken_on_is_nobody_elses_until_the_lease_is_over(database):
    await database.write(webhook_rows.add, make_endpoint())
    await accept(database)
    (first,) = await claim(database)
    assert await claim(database, NOW + LEASE_SECONDS - 1) == []
    (second,) = await claim(database, NOW + LEASE_SECONDS)
    assert second.delivery.event_id == first.delivery.event_id
    assert await database.write(delivery_rows.record, first, GOOD, None, NOW) is None, "the first has lost it"
    assert await database.write(delivery_rows.record, second, GOOD, None, NOW) is Status.DELIVERED
    assert await claim(database, NOW + 1000) == []


async def test_what_is_given_back_is_taken_on_at_once(database):
    await database.write(webhook_rows.add, make_endpoint())
    await accept(database)
    (parcel,) = await claim(database)
    await database.write(delivery_rows.release, [(parcel.delivery.position, "another")], NOW)
    assert await claim(database) == []
    await database.write(delivery_rows.release, [(parcel.delivery.position, parcel.delivery.lease)], NOW)
    assert len(await claim(database)) == 1
    await database.write(delivery_rows.release_all, NOW)
    assert len(await claim(database)) == 1


async def test_a_jobs_events_are_first_told_one_after_the_other(database):
    await database.write(webhook_rows.add, make_endpoint())
    job = await accept(database)
    await advance(database, job)
    await advance(database, job)
    (first,) = await claim(database)
    assert (first.delivery.sequence, await claim(database)) == (1, [])
    await database.write(delivery_rows.record, first, BAD, None, NOW)
    (second,) = await claim(database)
    assert second.delivery.sequence == 2, "one that failed holds up nothing"
    await database.write(delivery_rows.record, second, GOOD, None, NOW)
    assert [parcel.delivery.sequence for parcel in await claim(database)] == [3]
    assert [parcel.delivery.sequence for parcel in await claim(database, NOW + 7)] == [1]


@pytest.fixture(params=["few", "many"])
def crowd(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Due deliveries are looked at one by one, and as if there were a lot of them."""
    if request.param == "many":
        monkeypatch.setattr("penstock.store.queries.webhooks.delivery_rows.FEW", 0)


async def claim_by(database: Database, places: WebhookSlots, now: float = NOW) -> list[PendingDelivery]:
    """Take on as one process does."""
    parcels = await database.write(delivery_rows.claim, now, places.plan())
    for parcel in parcels:
        places.take(parcel.delivery.account_id, parcel.delivery.lane)
    return parcels


@pytest.mark.usefixtures("crowd")
async def test_an_endpoint_has_one_attempt_under_way_until_it_answers(database):
    for number in (1, 2):
        await database.write(webhook_rows.add, make_endpoint(number))
    for _ in range(20):
        await accept(database)
    places = WebhookSlots()
    taken = await claim_by(database, places)
    assert Counter(parcel.delivery.url for parcel in taken) == {"https://1.example/": 1, "https://2.example/": 1}
    assert await claim_by(database, places) == []
    places.learn(taken[0].delivery.lane, succeeded=True, seconds=0.1)
    more = await claim_by(database, places)
    assert {parcel.delivery.lane for parcel in more} == {taken[0].delivery.lane}
    assert len(more) == ENDPOINT_PLACES - 1
    assert await claim_by(database, places) == []


@pytest.mark.usefixtures("crowd")
async def test_a_backlog_of_full_endpoints_hides_nothing(database):
    """The oldest thousand are of endpoints that have no place: what is due behind them is found all the same."""
    for account in ("acct_one", "acct_two"):
        await database.write(webhook_rows.add, make_endpoint(1, account))
    backlog = [make_job(account_id=("acct_one", "acct_two")[number % 2]) for number in range(500)]
    await database.write(job_rows.insert_all, backlog, NOW)
    places = WebhookSlots()
    assert len(await claim_by(database, places)) == 2
    await database.write(webhook_rows.add, make_endpoint(2))
    await database.write(webhook_rows.add, make_endpoint(1, "acct_three"))
    await accept(database)
    await accept(database, account_id="acct_three")
    taken = await claim_by(database, places)
    assert {parcel.endpoint.id for parcel in taken} == {"hook_acct_one_2", "hook_acct_three_1"}
    assert await claim_by(database, places) == []


@pytest.mark.usefixtures("crowd")
async def test_accounts_take_turns(database):
    for number in range(20):
        await database.write(webhook_rows.add, make_endpoint(number))
    await database.write(webhook_rows.add, make_endpoint(1, "acct_two"))
    await database.write(webhook_rows.add, make_endpoint(2, "acct_two"))
    for _ in range(30):
        await accept(database)
    await accept(database, account_id="acct_two")
    places = WebhookSlots()
    taken = await claim_by(database, places)
    assert Counter(parcel.delivery.account_id for parcel in taken) == {"acct_one": 20, "acct_two": 2}
    assert {parcel.delivery.account_id for parcel in taken[:4]} == {"acct_one", "acct_two"}, "not the oldest alone"


@pytest.mark.usefixtures("crowd")
async def test_urls_that_jobs_bring_along_have_places_of_their_own(database):
    for path in ("hang", "works", "hang"):
        await accept(database, webhook={"url": f"https://own.example/{path}", "events": ["job.queued"], "base_url": ""})
    places = WebhookSlots()
    taken = await claim_by(database, places)
    assert sorted(parcel.delivery.url for parcel in taken) == ["https://own.example/hang", "https://own.example/works"]


@pytest.mark.usefixtures("crowd")
async def test_what_older_code_wrote_is_taken_on(database):
    """It wrote the host where the lane is now, of all accounts alike."""
    for account in ("acct_one", "acct_two"):
        await database.write(webhook_rows.add, make_endpoint(1, account))
        await accept(database, account_id=account)

    def age(connection: Connection) -> None:
        connection.execute(deliveries.update().values(lane="1.example"))

    await database.write(age)
    places, accounts = WebhookSlots(), set[str]()
    for _ in range(2):
        (parcel,) = await claim_by(database, places)
        accounts.add(parcel.delivery.account_id)
        places = WebhookSlots()
    assert accounts == {"acct_one", "acct_two"}


async def test_a_claim_walks_past_a_backlog_by_an_index(database):
    """Neither store visits the rows of a backlog: each use of the table is a step into an index."""
    await database.write(webhook_rows.add, make_endpoint())
    await accept(database)

    def explain(connection: Connection) -> list[str]:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SET LOCAL enable_seqscan = off"))  # the table is too small for indexes
        plans: list[str] = []
        # No public surface shows plans.
        for query, *values in ((delivery_rows._FEW_DUE, NOW), (delivery_rows._HEADS, NOW, 1)):
            word = "EXPLAIN QUERY PLAN" if connection.dialect.name == "sqlite" else "EXPLAIN"
            rows = sql.run(connection, f"{word} {query}", *values)
            plans.append("\n".join(str(row[-1]) for row in rows))
        return plans

    few, heads = await database.write(explain)
    assert "deliveries_due" in few
    assert "deliveries_untried" in few
    assert "deliveries_by_lane" in heads
    assert "Index" in heads or heads.count("deliveries_by_lane") == 3, "SQLite's, whatever is stored"
    for plan in (few, heads):
        assert "SCAN deliveries\n" not in f"{plan}\n"
        assert "SCAN others" not in plan
        assert "Seq Scan" not in plan


async def test_many_who_take_on_at_once_share_what_is_there(database):
    await database.write(webhook_rows.add, make_endpoint())
    for _ in range(40):
        await accept(database)
    shares = await asyncio.gather(*(claim(database, plan=Few(4)) for _ in range(10)))
    taken = [parcel.delivery.position for share in shares for parcel in share]
    assert len(taken) == len(set(taken))
    while more := await claim(database):
        taken += [parcel.delivery.position for parcel in more]
    assert (len(taken), len(set(taken))) == (40, 40)


# -- forgetting


async def test_what_ended_long_ago_is_forgotten_and_what_waits_is_not(database):
    await database.write(webhook_rows.add, make_endpoint())
    await accept(database)
    await accept(database)
    first, second = await claim(database)
    await database.write(delivery_rows.record, first, GOOD, None, NOW)
    await database.write(delivery_rows.record, second, BAD, None, NOW)
    assert await database.write(delivery_rows.remove_old, NOW) == 0
    assert await database.write(delivery_rows.remove_old, NOW + 1) == 1
    assert await count(database) == 1


async def test_what_is_told_of_a_job_goes_with_it(database):
    await database.write(webhook_rows.add, make_endpoint())
    job = await accept(database)
    other = await accept(database)
    await database.write(job_rows.amend_own, "acct_one", job.id, lambda job: jobs.request_cancel(job, NOW), NOW)
    await database.write(job_rows.amend_own, "acct_one", job.id, lambda job: jobs.stop(job, NOW), NOW)
    await database.write(job_rows.remove, "acct_one", job.id, "deleted")
    assert [parcel.delivery.subject for parcel in await claim(database)] == [other.id]


async def test_a_webhook_disabled_meanwhile_is_told_nothing(database):
    endpoint = make_endpoint()
    await database.write(webhook_rows.add, endpoint)
    await accept(database)

    def slip_in(connection: Connection) -> None:
        """As if it had been disabled by someone who did not see the delivery yet."""
        waiting = connection.execute(select(deliveries)).mappings().one()
        webhook_rows.change(connection, replace(endpoint, disabled_at=NOW), NOW)
        connection.execute(deliveries.update().values(status=waiting["status"], due_at=NOW, finished_at=None))

    await database.write(slip_in)
    assert await claim(database) == []
    (found,) = await database.read(delivery_rows.page, "acct_one", {}, None, 10)
    assert found.status is Status.FAILED


async def test_a_machine_whose_clock_is_ahead_delays_nothing(postgres_store_url):
    """What it writes is due by the store's clock, which whoever sends goes by."""
    async with processes(postgres_store_url, 1) as (database,):
        await database.write(webhook_rows.add, make_endpoint())
        ahead = time.time() + 3600
        (job,) = await database.write(job_rows.insert_all, [make_job()], ahead)
        for now in (ahead, time.time() - 3600):
            due_at, store_now = await database.read(delivery_rows.next_due, now)
            assert due_at <= store_now < ahead - 1800
        (parcel,) = await claim(database, store_now)
        await database.write(delivery_rows.redeliver, "acct_one", parcel.delivery.position, ahead)
        assert await claim(database, store_now) == [], "someone still has it"
        await database.write(delivery_rows.record, parcel, GOOD, None, store_now)
        await database.write(delivery_rows.redeliver, "acct_one", parcel.delivery.position, ahead)
        due_at, store_now = await database.read(delivery_rows.next_due, ahead)
        assert due_at <= store_now
        assert parcel.delivery.subject == job.id


# -- whatever happens

STEPS = some.lists(
    some.tuples(some.sampled_from(("event", "claim", "good", "bad", "late", "stop", "again")), some.integers(0, 2)),
    max_size=40,
)


@settings(max_examples=20)
@given(steps=STEPS)
def test_whatever_happens_nothing_is_lost_or_held_twice(trial, steps):
    """Two who deliver, three jobs, one webhook: each event is told, at first in order, by one holder at a time."""
    with undone(trial) as connection:
        Story(connection).play(steps)


class Story:
    """What two processes do with one outbox."""

    def __init__(self, connection: Connection) -> None:
        connection.info[RUNG] = set()
        self.connection = connection
        self.now = NOW
        webhook_rows.add(connection, make_endpoint())
        self.jobs = job_rows.insert_all(connection, [make_job() for _ in range(3)], NOW)
        self.events = 3
        self.held: dict[int, tuple[PendingDelivery, float]] = {}
        self.first: dict[str, list[int]] = {}
        self.told: set[tuple[str, int]] = set()

    def play(self, steps: list[tuple[str, int]]) -> None:
        act: dict[str, Callable[[int], None]] = {
            "event": self.happen,
            "claim": self.take,
            "good": lambda which: self.end(which, GOOD),
            "bad": lambda which: self.end(which, BAD),
            "late": lambda which: self.wait(10.0**which),
            "stop": self.give_back,
            "again": self.send_again,
        }
        for name, which in steps:
            act[name](which)
        told = {(job.id, number) for job in self.jobs for number in range(1, job.sequence + 1)}
        for _ in range(self.events + 40):
            if self.told == told:
                break
            self.wait(40_000)
            self.take(63)
            for place in range(len(self.held)):
                self.end(place, GOOD)
        assert self.told == told
        for sequences in self.first.values():
            assert sequences == sorted(sequences)

    def happen(self, which: int) -> None:
        job = self.jobs[which]
        more = job.progress + 0.01
        self.jobs[which] = job_rows.amend_own(
            self.connection, job.account_id, job.id, lambda job: replace(job, progress=more), self.now
        )
        self.events += 1

    def take(self, which: int) -> None:
        for parcel in delivery_rows.claim(self.connection, self.now, Few(which + 1)):
            position, sequence = parcel.delivery.position, parcel.delivery.sequence
            if position in self.held:
                assert self.held[position][1] <= self.now, "someone has it"
            seen = self.first.setdefault(parcel.delivery.subject, [])
            if sequence not in seen:
                seen.append(sequence)
            self.held[position] = (parcel, self.now + LEASE_SECONDS)

    def end(self, which: int, attempt: DeliveryAttempt) -> None:
        if not self.held:
            return
        position = sorted(self.held)[which % len(self.held)]
        parcel, _ = self.held.pop(position)
        status = delivery_rows.record(self.connection, parcel, attempt, None, self.now)
        if status is Status.DELIVERED:
            self.told.add((parcel.delivery.subject, parcel.delivery.sequence))

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def give_back(self, which: int) -> None:
        if self.held:
            position = sorted(self.held)[which % len(self.held)]
            parcel, _ = self.held.pop(position)
            delivery_rows.release(self.connection, [(position, parcel.delivery.lease)], self.now)

    def send_again(self, which: int) -> None:
        found = delivery_rows.page(self.connection, "acct_one", {"subject": self.jobs[which].id}, None, 1)
        if not self.held:
            delivery_rows.redeliver(self.connection, "acct_one", found[0].position, self.now)

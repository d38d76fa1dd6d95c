"""Any order of jobs, chats, budgets, processes and clocks: no purse passes its cap, and every cent is told once."""

from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as some
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sqlalchemy import Connection
from store.money_model import Books
from store.sample_completions import make_completion
from store.sample_jobs import make_job
from store.trials import connected, set_store_clock, tried, undone

from penstock.accounts import ledger_corrections
from penstock.billing.record_retention import cut_money
from penstock.domain import jobs
from penstock.domain.accounts import Actor
from penstock.domain.attribution.labels import Attribution
from penstock.domain.budgets import ENDLESS, BalanceKey, Budget, Payer, Period
from penstock.domain.jobs import IllegalMove, Job, Outcome, State
from penstock.domain.usage import Completion
from penstock.errors import InsufficientBudget
from penstock.store.queries.billing import (
    balance_rows,
    budget_rows,
    completion_rows,
    ledger_rows,
    process_lease_rows,
    usage_rows,
)
from penstock.store.queries.billing.balance_rows import LEASE_SECONDS
from penstock.store.queries.billing.ledger_audit import check
from penstock.store.queries.billing.ledger_rows import TIMER, LedgerRefused
from penstock.store.queries.jobs import job_rows
from penstock.store.queries.retention import roll_up_rows

PAYERS = (
    Payer("acct_a", "a1", "a1"),
    Payer("acct_a", "a1b", "a1"),  # the key that replaced it
    Payer("acct_a", "a2", "a2"),
    Payer("acct_b", "b1", "b1"),
    Payer("acct_a", "a1", "a1", ("x",)),
    Payer("acct_a", "a2", "a2", ("y", "x")),
    Payer("acct_b", "b1", "b1", ("x",)),
)
OWNERS = {owner: payer.account_id for payer in PAYERS for owner in payer.owners}
PROCESSES = ("process_1", "process_2", "process_3")
ZONES = ("UTC", "America/New_York", "Asia/Kolkata")
BEGINNINGS = tuple(
    datetime(*date, tzinfo=UTC).timestamp()
    for date in ((2024, 2, 29, 23, 59, 50), (2024, 11, 3, 3, 30), (2025, 12, 31, 18, 29, 59), (2026, 6, 15, 12))
)
MOVES = (0.5, 20, LEASE_SECONDS + 1, 3600, 43_200, 86_400, 31 * 86_400, -0.5, -LEASE_SECONDS - 1, -3600, -86_400)
RECORD_AGES = (86_400.0, 40 * 86_400.0)
AGES = (0.0, 0.0, 0.0, 0.5, 70.0, 90_000.0)

DEEDS = {
    "pass_time": 3,
    "change_budgets": 2,
    "accept": 4,
    "finish": 5,
    "finish_late_or_again": 2,
    "decide": 1,
    "refund": 1,
    "lease": 5,
    "charge": 3,
    "charge_again": 1,
    "tend": 4,
    "stop_or_expire": 1,
    "look": 1,
    "roll_up": 1,
}
"""What is done, and how often."""

payers = some.sampled_from((PAYERS[0], PAYERS[0], *PAYERS))
processes = some.sampled_from(PROCESSES)
amounts = some.integers(1, 30)
requests = some.tuples(payers, some.integers(0, 40), some.sampled_from(AGES))
caps = some.sampled_from((0, 20, 60, 100, 100, 300))
budgets = some.builds(
    Budget,
    owner=some.sampled_from(("acct_a", "a1", *sorted(OWNERS))),
    period=some.sampled_from(Period),
    cap=caps,
    time_zone=some.sampled_from(ZONES),
)


def end_job(state: State, cost: int | None, now: float) -> Callable[[Job], Job]:
    """A change that ends a job, wherever it stands."""
    outcome = Outcome.UNKNOWN if cost is None else Outcome.SUCCEEDED if state is State.SUCCEEDED else Outcome.FAILED
    charged = None if cost is None else bool(cost)

    def change(job: Job) -> Job:
        started = job if job.done else jobs.start(job, now)
        return jobs.finish(started, state, now, outcome=outcome, final=cost, charged=charged)

    return change


def fields_of(payer: Payer) -> dict[str, Any]:
    attribution = Attribution(tags=payer.tags) if payer.tags else None
    fields = {"account_id": payer.account_id, "key_id": payer.key_id, "lineage": payer.lineage}
    return {**fields, "attribution": attribution}


def payer_of(record: Job | Completion) -> Payer:
    tags = () if record.attribution is None else record.attribution.tags
    return Payer(record.account_id, record.key_id, record.lineage, tags)


class MoneyMachine(RuleBasedStateMachine):
    """Does to a real store what jobs, chats, administrators and time do, and to `self.books` what must come of it."""

    connection: ClassVar[Connection]
    """One store for all runs, each of which is undone at its end."""

    def __init__(self) -> None:
        super().__init__()
        self.run = ExitStack()
        self.run.enter_context(undone(self.connection))
        self.books = Books()
        self.now = 0.0
        self.jobs: dict[str, Job] = {}
        self.unknown: set[str] = set()
        self.completions: dict[str, Completion] = {}
        self.before: dict[BalanceKey, int] = {}

    def teardown(self) -> None:
        with self.run:
            assert check(self.connection) == []

    def do(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """One transaction; its result or its error."""
        set_store_clock(self.connection, self.now)
        try:
            with tried(self.connection):
                return function(self.connection, *args, **options)
        except (InsufficientBudget, IllegalMove, LedgerRefused) as error:
            return error

    @initialize(now=some.sampled_from(BEGINNINGS), some_budgets=some.lists(budgets, min_size=1, max_size=3))
    def begin(self, now: float, some_budgets: list[Budget]) -> None:
        self.now = now
        for budget in some_budgets:
            self._set_budget(budget)

    # -- time and administrators

    def pick(self, data: some.DataObject, names: Iterable[Any]) -> Any:
        return data.draw(some.sampled_from(sorted(names)))

    @rule(data=some.data(), deed=some.sampled_from([name for name, often in DEEDS.items() for _ in range(often)]))
    def step(self, data: some.DataObject, deed: str) -> None:
        """One rule for all: of many, Hypothesis would leave out some in every run; these mean something together."""
        getattr(self, deed)(data)

    def pass_time(self, data: some.DataObject) -> None:
        """Some seconds, forwards or back; or to the end of a budget's period."""
        self.now += data.draw(some.sampled_from(MOVES))
        aside = data.draw(some.sampled_from((None, None, -0.25, 0.0, 0.25)))
        if aside is not None and self.books.budgets:
            end = self.books.budgets[self.pick(data, self.books.budgets)].window(self.now)[1]
            self.now = self.now if end == ENDLESS else end + aside

    def change_budgets(self, data: some.DataObject) -> None:
        budget, deed = data.draw(budgets), data.draw(some.sampled_from(("set", "raise or lower", "remove")))
        if deed == "set" or not self.books.budgets:
            self._set_budget(budget)
            return
        known = self.books.budgets[self.pick(data, self.books.budgets)]
        if deed == "remove":
            self.do(budget_rows.remove, known.owner, known.period.value)
            self.books.remove(known)
        else:
            self._set_budget(replace(known, cap=budget.cap))

    def _set_budget(self, budget: Budget) -> None:
        self.do(budget_rows.put, budget, OWNERS[budget.owner], self.now)
        self.books.put(budget)

    # -- jobs

    def accept(self, data: some.DataObject) -> None:
        """A batch. Of a job that only some vendors have a price for, nobody knows how much to hold."""
        payer, asked = data.draw(payers), data.draw(some.lists(amounts | some.none(), min_size=1, max_size=3))
        fields = fields_of(payer)
        batch = [
            make_job(
                id=f"job_{len(self.jobs) + number:04}",
                created_at=self.now,
                estimated=amount,
                prices={"sim": {}, "other": None if amount is None else {}},
                **fields,
            )
            for number, amount in enumerate(asked)
        ]
        allowed = self.books.can_hold(payer, sum(amount or 0 for amount in asked), self.now)
        told = self.do(job_rows.insert_all, batch, self.now)
        assert isinstance(told, InsufficientBudget) is not allowed
        for job in batch if allowed else ():
            self.jobs[job.id] = job
            self.books.hold(job.id, payer, job.estimated or 0, self.now)

    def finish(self, data: some.DataObject) -> None:
        """At any cost, more than was held too; None: nobody knows. A job that has ended stays as it is."""
        if not self.jobs:
            return
        cost = data.draw(some.none() | some.integers(0, 40))
        running = [name for name, job in self.jobs.items() if not job.done]
        name = self.pick(data, running if running and data.draw(some.integers(0, 3)) else self.jobs)
        change = end_job(State.SUCCEEDED if cost else State.FAILED, cost, self.now)
        told = self.do(job_rows.amend_own, self.jobs[name].account_id, name, change, self.now)
        if self.jobs[name].done:
            assert isinstance(told, IllegalMove)
            return
        self.jobs[name] = told
        if cost:
            self.books.settle(name, cost)
        elif cost is None:
            self.unknown.add(name)
            self.books.keep(name, self.now)
        else:
            self.books.release(name)

    def finish_late_or_again(self, data: some.DataObject) -> None:
        """Whatever became of it before: what is settled stays so, what is released can still be settled."""
        done = [name for name, job in self.jobs.items() if job.done]
        if not done:
            return
        name, deed = self.pick(data, done), data.draw(some.sampled_from(("settle", "release", "keep")))
        if deed == "settle":
            cost = data.draw(some.integers(0, 40))
            first = (name, "settle") not in self.books.entries
            charged = self.do(ledger_rows.settle, name, cost, self.now)
            if name in self.books.rolled_up:
                assert isinstance(charged, LedgerRefused)
                return
            self._settle(name, charged, cost)
            if first:
                self.do(usage_rows.add, usage_rows.refund(self.jobs[name], -charged))
        elif deed == "release":
            told = self.do(ledger_rows.release, name, self.now)
            assert isinstance(told, LedgerRefused) is (name in self.books.rolled_up)
            self.books.release(name)
        elif name in self.unknown and self.books.holds[name].is_open:
            self.do(ledger_rows.keep, name, self.jobs[name].payer, self.now)
            self.books.keep(name, self.now)

    def decide(self, data: some.DataObject) -> None:
        """An administrator's word counts for jobs of unknown outcome, until they are settled."""
        if not self.jobs:
            return
        name, settle = self.pick(data, self.unknown or self.jobs), data.draw(some.booleans())
        verb = ledger_corrections.settle if settle else ledger_corrections.release
        told = self.do(verb, Actor.ADMIN, name, "asked the vendor", self.now)
        if name not in self.unknown or (name, "settle") in self.books.entries or name in self.books.rolled_up:
            assert isinstance(told, LedgerRefused)
        elif settle:
            self._settle(name, told, self.books.holds[name].amount)
        else:
            self.books.release(name)

    def refund(self, data: some.DataObject) -> None:
        if not (self.jobs or self.completions):
            return
        name = self.pick(data, [*self.jobs, *self.completions])
        told = self.do(ledger_corrections.refund, Actor.ADMIN, name, "a gift", self.now)
        if (name, "settle") not in self.books.entries or name in self.books.rolled_up:
            assert isinstance(told, LedgerRefused)
            return
        record = self.jobs.get(name) or self.completions[name]
        self.books.refund(name, payer_of(record), record.created_at)
        assert told == self.books.entries[name, "refund"][1]
        assert told == self.do(ledger_rows.refund, name, self.now, "again")

    def _settle(self, name: str, charged: int, cost: int) -> None:
        """Compare what a job was charged with the books."""
        held = self.books.holds[name]
        places = [self.books.place(budget, held.at) for budget in self.books.bearing(held.payer)]
        if any(self.books.is_partial(place.owner, place.start) for place in places):
            self.books.settle_in_partial(name, charged, cost)
        else:
            assert charged == self.books.settle(name, cost)

    def roll_up(self, data: some.DataObject) -> None:
        """Some weeks later, remove old entries in batches of any size. It may stop between any two."""
        self.now += data.draw(some.sampled_from((0, 10 * 86_400, 40 * 86_400)))
        account, age = data.draw(some.sampled_from(("acct_a", "acct_b"))), data.draw(some.sampled_from(RECORD_AGES))
        cut, batch = cut_money(self.now, age), data.draw(some.integers(1, 4))
        for _ in range(data.draw(some.integers(1, 6))):
            if not self.do(roll_up_rows.roll_up, account, cut, self.now, batch):
                self.do(roll_up_rows.remove_balances, sorted(OWNERS), cut)
                break
            self.books.cuts[account] = max(cut, self.books.cuts.get(account, 0.0))
        left = {row[0] for row in self.rows("SELECT subject FROM ledger")}
        gone = {subject for subject, _ in self.books.entries} - left - self.books.rolled_up
        for subject in gone:
            record = self.jobs.get(subject) or self.completions[subject]
            assert record.account_id == account
            assert record.created_at < cut
            assert subject not in self.books.holds or not self.books.holds[subject].is_open
        self.books.rolled_up |= gone

    # -- processes that serve chat

    def lease(self, data: some.DataObject) -> None:
        """Also by one that has not heard of the budget's change, or that it was taken away."""
        process, least, more = data.draw(processes), data.draw(amounts), data.draw(some.integers(0, 60))
        asked = data.draw(budgets)
        if self.books.budgets and data.draw(some.integers(0, 3)):
            known = self.books.budgets[self.pick(data, self.books.budgets)]
            asked = replace(asked, owner=known.owner, period=known.period)
        budget = self.books.budgets.get((asked.owner, asked.period.value))
        if budget is None:
            self._lease_of_nothing(process, asked, least)
            return
        payer = next(payer for payer in PAYERS if budget.owner in payer.owners)
        had = (process, self.books.place(budget, self.now)) in self.books.leases
        grant = self.do(balance_rows.lease, process, payer, asked, least, least + more, self.now)
        amount, elsewhere = self.books.lease(process, budget, least, least + more, self.now)
        assert (grant.amount, grant.elsewhere) == (amount, elsewhere)
        assert grant.standing.budget == budget
        assert had or grant.is_new or not amount

    def _lease_of_nothing(self, process: str, budget: Budget, amount: int) -> None:
        """Nothing bounds what is asked for, and nothing is held."""
        payer = next(payer for payer in PAYERS if budget.owner in payer.owners)
        assert self.do(balance_rows.lease, process, payer, budget, amount, amount, self.now).amount == amount

    def charge(self, data: some.DataObject) -> None:
        """A batch of any process, alive or thought dead, at any cost; also late, when its period is over."""
        process, again = data.draw(processes), data.draw(some.booleans())
        asked = data.draw(some.lists(requests, min_size=1, max_size=4))
        batch = [
            make_completion(
                id=f"chat_{len(self.completions) + number:04}",
                **fields_of(payer),
                cost=cost,
                created_at=self.now - age,
            )
            for number, (payer, cost, age) in enumerate(asked)
        ]
        self.do(completion_rows.add_all, process, batch, self.now, again=again)
        for record in batch:
            self.completions[record.id] = record
            if record.cost:
                payer = payer_of(record)
                self.books.charge(process, record.id, payer, record.cost, record.created_at)

    def charge_again(self, data: some.DataObject) -> None:
        """The same records, from the journal of one who was thought dead."""
        if not self.completions:
            return
        process = data.draw(processes)
        names = data.draw(some.lists(some.sampled_from(sorted(self.completions)), unique=True, min_size=1))
        self.do(completion_rows.add_all, process, [self.completions[name] for name in names], self.now, again=True)

    def tend(self, data: some.DataObject) -> None:
        """What a process does beside serving: here one that holds something, or one that wants it."""
        if not self.books.leases:
            return
        deed = data.draw(some.sampled_from(("give back", "recall", "renew")))
        process, place = self.pick(data, self.books.leases)
        if deed == "give back":
            amount = data.draw(some.integers(0, 60))
            self.do(balance_rows.give_back, process, {place: amount})
            self.books.give_back(process, place, amount)
        elif deed == "recall":
            other = PROCESSES[(PROCESSES.index(process) + 1) % 3]
            self.do(balance_rows.recall, [place.owner], other)
            self.books.recall(place.owner, other)
        else:
            told = self.do(process_lease_rows.renew, process, self.now)
            assert told.balances == self.books.renew(process, self.now)

    def stop_or_expire(self, data: some.DataObject) -> None:
        """A process ends in good order or is found dead; or those end who were silent for too long."""
        if data.draw(some.booleans()):
            process = data.draw(processes)
            self.do(process_lease_rows.end, process)
            self.books.end(process)
        else:
            self.do(process_lease_rows.expire, self.now)
            self.books.expire(self.now)

    def look(self, data: some.DataObject) -> None:
        payer = data.draw(payers)
        assert check(self.connection) == []
        standings = balance_rows.standings(self.connection, payer, self.now)
        assert len(standings) == len(self.books.bearing(payer))
        for standing in standings:
            room = self.books.room(standing.budget, self.now)
            assert standing.budget.cap - standing.spent - standing.held == room

    # -- what always holds

    def rows(self, words: str) -> list[Any]:
        """In the driver's words: these are asked for after every step."""
        return list(self.connection.exec_driver_sql(words))

    @invariant()
    def the_ledger_is_what_happened(self) -> None:
        rows = self.rows("SELECT subject, kind, account_id, amount, overrun FROM ledger")
        assert {(subject, kind): tuple(rest) for subject, kind, *rest in rows} == self.books.kept_entries()

    @invariant()
    def the_purses_follow(self) -> None:
        now: dict[BalanceKey, int] = {}
        found = self.find_holds()
        for row in self.rows("SELECT * FROM purses"):
            place = BalanceKey(row.owner, row.period, row.start)
            cap = self.books.budgets[row.owner, row.period].cap  # there is none without a budget
            of_purse = self.books.holds_in(place, row.ends)
            spent = self.books.spent_in(place, row.ends)
            is_partial = self.books.is_partial(place.owner, place.start)
            assert row.spent == spent or (is_partial and row.spent < spent)
            assert row.held == sum(of_purse.values())
            assert found.pop(place, {}) == {name: amount for name, amount in of_purse.items() if amount}
            assert row.spent + row.held <= row.most
            now[place] = row.spent + row.held
            assert place not in self.before or now[place] <= max(cap, self.before[place])
        assert found == {}
        self.before = now

    def find_holds(self) -> dict[BalanceKey, dict[str, int]]:
        found: dict[BalanceKey, dict[str, int]] = {}
        for row in self.rows("SELECT * FROM holds WHERE amount > 0"):
            found.setdefault(BalanceKey(row.owner, row.period, row.start), {})[row.subject] = row.amount
        return found

    @invariant()
    def leases_are_as_they_were_given(self) -> None:
        told = {
            (row.subject, BalanceKey(row.owner, row.period, row.start)): (
                row.amount,
                bool(row.recalled),
                row.expires_at,
            )
            for row in self.rows("SELECT * FROM holds WHERE is_lease = 1")
        }
        assert told == {
            name: (lease.amount, lease.recalled, lease.expires_at) for name, lease in self.books.leases.items()
        }

    @invariant()
    def every_hold_ends_once_or_is_open(self) -> None:
        told = self.rows(f"SELECT subject, expires_at FROM holds WHERE period = '{TIMER}' ORDER BY subject")  # noqa: S608
        timers = [(name, held.timer) for name, held in sorted(self.books.holds.items()) if held.timer]
        assert [tuple(row) for row in told] == timers
        for name, held in self.books.holds.items():
            assert held.is_open is not any(self.books.endings(name))

    @invariant()
    def usage_comes_to_what_was_charged(self) -> None:
        expected = {account: self.books.charged_to(account) for account in ("acct_a", "acct_b")}
        for table in ("usage_days", "usage_model_days", "usage_key_days"):
            used = dict(self.rows(f"SELECT account_id, sum(cost) FROM {table} GROUP BY 1"))  # noqa: S608
            assert {account: used.get(account, 0) for account in expected} == expected
        tagged = [spent for spent in self.books.spendings if spent.payer.tags]
        expected = {account: sum(s.amount for s in tagged if s.payer.account_id == account) for account in expected}
        used = dict(self.rows("SELECT account_id, sum(cost) FROM attribution_days WHERE part = 'any' GROUP BY 1"))
        assert {account: used.get(account, 0) for account in expected} == expected


class OnSqlite(MoneyMachine):
    """In memory."""


class OnPostgres(MoneyMachine):
    """On a real server: slower, so with fewer runs."""


@pytest.fixture(scope="module")
def sqlite_books() -> Generator[None]:
    with connected() as connection:
        OnSqlite.connection = connection
        yield


@pytest.fixture(scope="module")
def postgres_books(postgres_trial: Connection) -> None:
    OnPostgres.connection = postgres_trial


calm = settings(stateful_step_count=40, suppress_health_check=[HealthCheck.too_slow])
OnSqlite.TestCase.settings = settings(calm, max_examples=12)
OnPostgres.TestCase.settings = settings(calm, max_examples=5)
TestMoney = pytest.mark.usefixtures("sqlite_books")(OnSqlite.TestCase)
TestMoneyOnPostgres = pytest.mark.usefixtures("postgres_books")(OnPostgres.TestCase)

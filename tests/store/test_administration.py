"""Whatever administrators do in whatever order: the rules of accounts, lineages, budgets and the audit log hold."""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule
from sqlalchemy import Connection, text
from store.trials import connected, undone

from penstock.accounts import administration
from penstock.domain.accounts import MAX_CAP, Actor, Allowance, KeyWish, read_cap, read_time_zone
from penstock.domain.api_keys import ApiKey, Limits
from penstock.domain.budgets import Period
from penstock.domain.money import format_usd
from penstock.errors import AccountClosed, AccountExists, BudgetNotFound, KeyNotRotatable, PenstockError
from penstock.store.queries.accounts import account_rows, audit_rows, key_rows
from penstock.store.queries.billing import budget_rows

NAMES = st.sampled_from(["mill", "weir", "sluice"])
PERIODS = st.sampled_from(Period)
LIMITS = st.builds(Limits, concurrent_jobs=st.none() | st.integers(1, 9), tokens_per_minute=st.none() | st.just(5))
SECONDS = st.sampled_from([0.0, 1.0, 60.0, 86400.0])


class Office(RuleBasedStateMachine):
    """Verbs in any order, against the plainest model of what should be."""

    accounts = Bundle("accounts")
    keys = Bundle("keys")

    store: ClassVar[Connection]
    """One for all runs, each of which is undone at its end."""

    def __init__(self) -> None:
        super().__init__()
        self.run = ExitStack()
        self.run.enter_context(undone(self.store))
        self.now = 1_800_000_000.0
        self.names: dict[str, str] = {}
        self.closed: set[str] = set()
        self.known: dict[str, ApiKey] = {}
        self.budgets: dict[tuple[str, Period], Allowance] = {}
        self.lines = 0
        self.secrets: list[str] = []

    def teardown(self) -> None:
        self.run.close()

    @contextmanager
    def refused(self, kind: type[PenstockError], expected: bool):
        """The error comes exactly if it should."""
        if not expected:
            yield
            return
        with pytest.raises(kind):
            yield

    # -- accounts

    @rule(target=accounts, name=NAMES)
    def create_account(self, name):
        taken = name in self.names.values()
        with self.refused(AccountExists, taken):
            made = administration.create_account(self.store, Actor.CLI, name, self.now)
        if taken:
            return multiple()
        self.names[made.id] = name
        self.lines += 1
        return made.id

    @rule(account=accounts, name=NAMES)
    def rename(self, account, name):
        taken = any(used == name and other != account for other, used in self.names.items())
        with self.refused(AccountExists, taken):
            administration.change_account(
                self.store, Actor.CLI, account, lambda found: replace(found, name=name), self.now
            )
        if not taken:
            self.lines += self.names[account] != name
            self.names[account] = name

    @rule(account=accounts, close=st.booleans())
    def close_or_reopen(self, account, close):
        def amend(found):
            return administration.close(found, self.now) if close else replace(found, closed_at=None)

        administration.change_account(self.store, Actor.ADMIN, self.names[account], amend, self.now)
        self.lines += close is not (account in self.closed)
        self.closed = self.closed | {account} if close else self.closed - {account}

    # -- keys

    @rule(target=keys, account=accounts, limits=LIMITS, seconds=st.none() | SECONDS)
    def issue(self, account, limits, seconds):
        wish = KeyWish(limits=limits, expires_at=None if seconds is None else self.now + seconds)
        with self.refused(AccountClosed, account in self.closed):
            issued, key = administration.issue_key(self.store, Actor.CLI, account, wish, self.now)
        if account in self.closed:
            return multiple()
        return self._keep(issued, key)

    @rule(target=keys, key=keys, overlap=SECONDS)
    def rotate(self, key, overlap):
        old = self.known[key]
        over = old.revoked_at is not None or old.replaced_by is not None or self._expired(old)
        closed = old.account_id in self.closed
        kind = AccountClosed if closed else KeyNotRotatable
        with self.refused(kind, over or closed):
            issued, new, _ = administration.rotate_key(self.store, Actor.CLI, key, overlap, self.now)
        if over or closed:
            return multiple()
        ends = self.now + overlap
        self.known[key] = replace(old, replaced_by=new.public_id, expires_at=min(old.expires_at or ends, ends))
        assert (new.expires_at, new.lineage, new.limits) == (old.expires_at, old.lineage, old.limits)
        return self._keep(issued, new)

    @rule(key=keys)
    def revoke(self, key):
        administration.revoke_key(self.store, Actor.ADMIN, key, self.now)
        if self.known[key].revoked_at is None:
            self.known[key] = replace(self.known[key], revoked_at=self.now)
            self.lines += 1

    @rule(key=keys, limits=LIMITS)
    def limit(self, key, limits):
        administration.change_key(self.store, Actor.CLI, key, lambda found: replace(found, limits=limits), self.now)
        self.lines += limits != self.known[key].limits
        for other in self.known.values():
            if other.lineage == self.known[key].lineage:
                self.known[other.public_id] = replace(other, limits=limits)

    @rule(seconds=SECONDS)
    def wait(self, seconds):
        self.now += seconds

    # -- budgets

    @rule(key=keys, period=PERIODS, cap=st.integers(0, 9), zone=st.sampled_from(["UTC", "Asia/Tokyo"]))
    def set_budget(self, key, period, cap, zone):
        allowance = Allowance(period=period, cap=cap, time_zone=zone)
        administration.set_budget(self.store, Actor.CLI, self.known[key], allowance, self.now)
        self.lines += self.budgets.get((self.known[key].lineage, period)) != allowance
        self.budgets[self.known[key].lineage, period] = allowance

    @rule(key=keys, period=PERIODS)
    def remove_budget(self, key, period):
        found = self.known[key]
        there = self.budgets.pop((found.lineage, period), None) is not None
        with self.refused(BudgetNotFound, not there):
            administration.remove_budget(self.store, Actor.CLI, found, period, self.now)
        self.lines += there

    # -- what holds

    @invariant()
    def the_store_says_what_the_model_says(self):
        found = {account.id: account for account in account_rows.page(self.store, None, None, self.now)}
        assert {account.id: account.name for account in found.values()} == self.names
        assert {account.id for account in found.values() if account.closed_at is not None} == self.closed
        stored = {key.public_id: key for key in key_rows.list_all(self.store)}
        for public_id, key in self.known.items():
            same = ("lineage", "limits", "expires_at", "revoked_at", "replaced_by", "account_id")
            assert [getattr(stored[public_id], name) for name in same] == [getattr(key, name) for name in same]
        working = [key for key in self.known.values() if key.revoked_at is None and not self._expired(key)]
        for account in found.values():
            assert account.keys == sum(key.account_id == account.id for key in working)

    @invariant()
    def a_lineage_is_a_chain_that_ends_in_one_key(self):
        for lineage in {key.lineage for key in self.known.values()}:
            relatives = {key.public_id: key for key in self.known.values() if key.lineage == lineage}
            last = [key for key in relatives.values() if key.replaced_by is None]
            assert len(last) == 1
            place, seen = lineage, 1
            while (after := relatives[place].replaced_by) is not None:
                place, seen = after, seen + 1
            assert seen == len(relatives)

    @invariant()
    def every_budget_stands_once(self):
        owners = sorted({key.lineage for key in self.known.values()})
        stands = budget_rows.standings(self.store, owners, self.now)
        told = {(each.budget.owner, each.budget.period): each.budget for group in stands.values() for each in group}
        assert told == {place: allowance.budget_of(place[0]) for place, allowance in self.budgets.items()}
        counted = self.store.execute(text("SELECT DISTINCT owner, period FROM purses")).all()
        assert {(owner, Period(period)) for owner, period in counted} == set(self.budgets)

    @invariant()
    def every_change_is_one_line_and_no_line_has_a_secret(self):
        lines = audit_rows.page(self.store, None, None, None, 10_000)
        assert len(lines) == self.lines
        written = "".join(str(asdict(line)) for line in lines)
        assert not any(secret in written for secret in self.secrets)

    def _expired(self, key: ApiKey) -> bool:
        return key.expires_at is not None and key.expires_at <= self.now

    def _keep(self, issued: str, key: ApiKey) -> str:
        self.known[key.public_id] = key
        self.secrets.append(issued.rpartition("_")[2])
        self.lines += 1
        return key.public_id


class OnSqlite(Office):
    """In memory."""


class OnPostgres(Office):
    """On a real server: slower, so with fewer runs."""


@pytest.fixture(scope="module")
def sqlite_office() -> Generator[None]:
    with connected() as connection:
        OnSqlite.store = connection
        yield


@pytest.fixture(scope="module")
def postgres_office(postgres_trial: Connection) -> None:
    OnPostgres.store = postgres_trial


calm = settings(stateful_step_count=25, suppress_health_check=[HealthCheck.too_slow])
OnSqlite.TestCase.settings = settings(calm, max_examples=20)
OnPostgres.TestCase.settings = settings(calm, max_examples=6)
TestOffice = pytest.mark.usefixtures("sqlite_office")(OnSqlite.TestCase)
TestOfficeOnPostgres = pytest.mark.usefixtures("postgres_office")(OnPostgres.TestCase)


# -- words


@given(st.integers(0, MAX_CAP))
def test_a_cap_is_read_as_it_is_told(nanos):
    assert read_cap(format_usd(nanos)) == nanos


@given(st.integers(MAX_CAP + 1, 10**22) | st.floats() | st.text(max_size=20) | st.booleans() | st.none())
def test_what_is_no_cap_is_refused(value: Any):
    told = format_usd(value) if isinstance(value, int) and value > MAX_CAP else value
    try:
        cap = read_cap(told)
    except ValueError:
        return
    assert told is value
    assert 0 <= cap <= MAX_CAP


@given(st.text(max_size=40))
def test_a_time_zone_is_known_or_refused_with_another(name):
    try:
        assert read_time_zone(name) == name
    except ValueError as error:
        suggested = str(error).rpartition("such as ")[2].partition(",")[0]
        assert read_time_zone(suggested) == suggested


def test_a_new_time_zone_counts_what_was_spent_anew(connection: Connection):
    store = connection
    made = administration.create_account(store, Actor.CLI, "mill", 1_800_000_000.0)
    store.execute(
        text("INSERT INTO ledger VALUES ('job_1', 'settle', :account, 'k', 'k', 7, 0, :at, :at, '', NULL)"),
        {"account": made.id, "at": 1_800_000_000.0},
    )
    for zone in ("UTC", "Asia/Tokyo", "America/Los_Angeles"):
        allowance = Allowance(period=Period.MONTH, cap=100, time_zone=zone)
        administration.set_budget(store, Actor.CLI, made, allowance, 1_800_000_500.0)
        [standing] = budget_rows.standings(store, [made.id], 1_800_000_500.0)[made.id]
        assert (standing.spent, standing.budget.time_zone) == (7, zone)
    assert store.execute(text("SELECT count(*) FROM purses")).scalar() == 1

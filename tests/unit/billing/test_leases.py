"""A lease is at any moment what the store has written down for it: free and in use, whoever comes, leaves or fails."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncGenerator, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from admission_steps import (
    KEY,
    NOON,
    PAYER,
    FileStore,
    Store,
    Time,
    chances,
    charge,
    opened,
    rows,
    set_budget,
    standing,
    wait_for,
)
from hypothesis import given, settings
from hypothesis import strategies as some

from penstock.billing.leases import BudgetLease, LocalLease
from penstock.billing.limit_leases import RATE_PARTS, RateLease, StreamLease
from penstock.domain.budgets import Budget, Period
from penstock.errors import InsufficientBudget, PenstockError, RateLimited, StoreUnavailable, TooManyStreams
from penstock.store.queries.billing import balance_rows, budget_rows, process_lease_rows
from penstock.store.queries.billing.balance_rows import LEASE_SECONDS
from penstock.store.queries.billing.ledger_audit import check

EPSILON = 1e-3


@pytest.fixture
async def store(store_url) -> AsyncGenerator[Store]:
    async with opened(store_url) as store:
        yield store


@pytest.fixture
def time() -> Time:
    return Time()


def lease_of(store: Store, time: Time, budget: Budget, process: str = "one") -> BudgetLease:
    return BudgetLease(store, time.clocks, process, budget, PAYER, time.now)


async def take(lease: LocalLease, amount: float) -> None:
    """As the escrow does."""
    if not lease.try_take(amount):
        await lease.take(amount)


async def leased(store: Store, process: str = "one") -> int:
    found = await rows(store, f"SELECT sum(amount) AS total FROM holds WHERE subject = '{process}'")  # noqa: S608
    return found[0].total or 0


async def settle(store: Store, lease: BudgetLease, taken: int, used: int) -> None:
    """A request is over, and what it cost is written at once."""
    lease.settle(taken, used)
    await charge(store, lease.process, used)


# -- money


async def test_first_come_first_served(store, time):
    lease = lease_of(store, time, await set_budget(store, 100))
    served: list[int] = []

    async def ask(number: int) -> None:
        with suppress(InsufficientBudget):
            await take(lease, 7)
            served.append(number)

    await asyncio.gather(*(ask(number) for number in range(40)))
    assert served == list(range(14))
    assert (lease.in_use, lease.free) == (98, 2)
    assert await leased(store) == 100


async def test_who_wants_more_than_there_is_holds_nobody_up(store, time):
    lease = lease_of(store, time, await set_budget(store, 100))
    answers = await asyncio.gather(*(take(lease, amount) for amount in (60, 90, 30, 20, 10)), return_exceptions=True)
    assert [each is None for each in answers] == [True, False, True, False, True]
    assert isinstance(answers[1], InsufficientBudget)
    assert await leased(store) == 100


class Slow(FileStore):
    """Has written, but does not answer yet."""

    answers: asyncio.Event

    async def write(self, function: Any, *args: Any, **options: Any) -> Any:
        result = await super().write(function, *args, **options)
        await self.answers.wait()
        return result


@pytest.mark.parametrize("ticks", range(6))
async def test_who_leaves_in_the_very_moment_leaves_it_to_others(tmp_path, empty_store, time, ticks):
    """Cancelled at each step between the store's answer and the grant."""
    store = Slow(Path(shutil.copy(empty_store, tmp_path)))
    store.answers = asyncio.Event()
    store.answers.set()
    budget = await set_budget(store, 64)
    store.answers = asyncio.Event()
    lease = lease_of(store, time, budget)
    asking = [asyncio.create_task(take(lease, 20)) for _ in range(3)]
    await wait_for(lambda: leased(store))
    store.answers.set()
    for _ in range(ticks):
        await asyncio.sleep(0)
    asking[1].cancel()
    answers = await asyncio.gather(*asking, return_exceptions=True)
    granted = answers.count(None)
    assert granted == 3 - isinstance(answers[1], asyncio.CancelledError)
    assert lease.in_use == 20 * granted
    assert lease.free + lease.in_use == await leased(store)
    await store.close()


@pytest.mark.parametrize("seed", range(4))
async def test_comings_and_goings_leave_the_share_as_the_store_has_it(store, time, seed):
    budget, chance = await set_budget(store, 500), chances(seed)
    leases = [lease_of(store, time, budget, process) for process in ("one", "two")]
    store.fails = lambda: chance.random() < 0.1

    async def ask() -> None:
        lease, amount = chance.choice(leases), chance.randint(1, 40)
        await asyncio.sleep(chance.random() * 0.05)
        await take(lease, amount)
        try:
            await asyncio.sleep(chance.random() * 0.02)
        finally:
            lease.put_back(amount)

    asking = [asyncio.create_task(ask()) for _ in range(60)]
    for task in chance.sample(asking, 40):
        asyncio.get_running_loop().call_later(chance.random() * 0.08, task.cancel)
    answers = await asyncio.gather(*asking, return_exceptions=True)
    allowed = (asyncio.CancelledError, InsufficientBudget, StoreUnavailable, type(None))
    assert all(isinstance(each, allowed) for each in answers)
    for lease in leases:
        assert lease.in_use == 0
        assert lease.free == await leased(store, lease.process)
    assert sum(await standing(store)) <= 500


deeds = some.lists(
    some.tuples(some.sampled_from(("take", "take", "settle", "return")), some.integers(0, 60)), max_size=15
)


def run_with_a_store(work: Any) -> None:
    """For Hypothesis, which knows no fixtures of single examples."""

    async def go() -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with opened(f"sqlite:///{shutil.copy(EMPTY[0], folder)}") as store:
                await work(store)

    with asyncio.Runner() as runner:
        runner.run(go())


EMPTY: list[Path] = []


@pytest.fixture(scope="module", autouse=True)
def remember_the_empty_store(empty_store) -> None:
    EMPTY.append(empty_store)


@settings(max_examples=25, deadline=None)
@given(some.integers(30, 200), deeds)
def test_free_and_in_use_are_what_is_leased_also_when_answers_cost_too_much(cap, moves):
    async def work(store: Store) -> None:
        time = Time()
        lease = lease_of(store, time, await set_budget(store, cap))
        under_way: list[int] = []
        spent = 0
        for deed, amount in moves:
            time.move(0.3)
            if deed == "take":
                with suppress(InsufficientBudget):
                    await take(lease, amount)
                    under_way.append(amount)
                    assert spent + sum(under_way) <= cap or lease.free < 0  # eaten by answers that cost more
            elif deed == "settle" and under_way:
                taken = under_way.pop(0)
                await settle(store, lease, taken, amount)
                spent = (await standing(store))[0]
            elif lease.free > 0:
                await store.write(balance_rows.give_back, "one", {lease.key: int(lease.free)})
                lease.free = 0
            assert lease.in_use == sum(under_way)
            assert lease.free + lease.in_use == await leased(store)
            assert sum(await standing(store)) <= cap
        assert await store.read(check) == []

    run_with_a_store(work)


async def test_a_lease_that_was_not_renewed_in_time_is_found_again(store, time):
    """The machine stood still, but nobody has taken it meanwhile."""
    lease = lease_of(store, time, await set_budget(store, 100))
    await take(lease, 100)
    lease.put_back(100)
    time.steady += LEASE_SECONDS - 10
    assert not lease.try_take(30)
    await take(lease, 30)
    assert (lease.in_use, lease.free) == (30, 70)
    assert await leased(store) == 100


@pytest.mark.parametrize("taken_over", [True, False])
async def test_a_lease_that_ended_is_not_used_again(store, time, taken_over):
    budget = await set_budget(store, 100)
    lease, other = lease_of(store, time, budget), lease_of(store, time, budget, "two")
    await take(lease, 80)
    lease.put_back(80)
    time.move(LEASE_SECONDS + 1)
    await store.write(lambda connection: connection.exec_driver_sql("UPDATE holds SET expires_at = 0"))
    if taken_over:
        await take(other, 100)
        with pytest.raises(InsufficientBudget):
            await take(lease, 10)
        assert (lease.free, lease.in_use) == (0, 0)
    else:
        await store.write(process_lease_rows.expire, time.now)
        await take(lease, 90)
        assert lease.free + lease.in_use == await leased(store)
    assert (await standing(store))[1] == (100 if taken_over else 91)


async def test_a_budget_set_anew_has_forgotten_what_was_leased(store, time):
    budget = await set_budget(store, 100)
    lease, other = lease_of(store, time, budget), lease_of(store, time, budget, "two")
    await take(lease, 60)
    lease.put_back(60)
    await store.write(budget_rows.remove, KEY, "total")
    await set_budget(store, 100)
    await take(other, 40)
    await take(lease, 60)  # out of what it thinks it has
    await settle(store, lease, 60, 60)
    await take(other, 1)
    assert await leased(store) == 0
    with pytest.raises(InsufficientBudget):
        await take(lease, 20)
    assert sum(await standing(store)) <= 100
    assert await store.read(check) == []


async def test_what_was_leased_of_a_former_budget_is_not_added_to_what_is_leased_now(store, time):
    lease = lease_of(store, time, await set_budget(store, 100))
    await take(lease, 60)
    lease.put_back(60)
    await store.write(budget_rows.remove, KEY, "total")
    await set_budget(store, 100)
    await take(lease, 80)
    assert lease.in_use == 80
    assert lease.free + lease.in_use == await leased(store)


async def test_a_lowered_cap_gives_nobody_less_than_nothing(store, time):
    budget = await set_budget(store, 100)
    lease = lease_of(store, time, budget)
    await take(lease, 90)
    await set_budget(store, 50)
    answers = await asyncio.gather(*(take(lease, amount) for amount in (40, 5, 2)), return_exceptions=True)
    assert lease.free >= 0
    assert lease.free + lease.in_use == await leased(store)
    assert sum(answer is None for answer in answers[1:]) <= 1  # out of what was left of the lease
    assert isinstance(answers[0], InsufficientBudget)


async def test_what_costs_nothing_is_never_refused(store, time):
    lease = lease_of(store, time, await set_budget(store, 100))
    await take(lease, 50)
    await take(lease, 50)
    await settle(store, lease, 50, 120)
    with pytest.raises(InsufficientBudget):
        await take(lease, 1)
    await take(lease, 0)


async def test_a_share_is_of_the_day_on_which_it_was_asked_for(store, time):
    budget = await set_budget(store, 100, Period.DAY)
    end = budget.window(NOON)[1]
    time.now = end - 1
    lease = lease_of(store, time, budget)
    time.now = end + 5
    await take(lease, 60)
    assert lease.key.start == budget.window(NOON)[0]
    assert [row.start for row in await rows(store, "SELECT start FROM holds WHERE amount > 0")] == [lease.key.start]


# -- rates


class Minute:
    """What several processes took of one limit, and when."""

    def __init__(self, store: Store, time: Time, limit: int, kind: str, processes: int) -> None:
        self.time = time
        self.limit = limit
        self.leases = [RateLease(store, time.clocks, KEY, "key", kind, limit) for _ in range(processes)]
        self.used: list[tuple[float, float]] = []

    async def use(self, process: int, guess: float, used: float) -> None:
        """Take it, waiting once as long as it is told to; then tell what was used."""
        lease = self.leases[process]
        try:
            await take(lease, guess)
        except RateLimited as error:
            wait = error.retry_after or 0
            if wait > 0.01:
                self.time.move(wait - 0.005)
                with pytest.raises(RateLimited):  # it need not have been longer
                    await take(lease, guess)
                self.time.move(0.005)
            self.time.move(0.001)
            await take(lease, guess)
        lease.settle(guess, used)
        self.used.append((self.time.now, used))

    def check(self, last: float) -> None:
        """In any time: a full bucket, what flowed in, and the leases that processes had; the last may go beyond."""
        leases = len(self.leases) * (self.limit / RATE_PARTS)
        for start, (began, _) in enumerate(self.used):
            total = 0.0
            for at, amount in self.used[start:]:
                assert total <= self.limit + (at - began) * self.limit / 60 + leases + last + EPSILON
                total += amount


@settings(max_examples=12, deadline=None)
@given(some.integers(1, 40), some.lists(some.tuples(some.floats(0, 20), some.integers(0, 2)), max_size=30))
def test_requests_never_pass_the_limit_and_a_wait_is_enough_and_no_more(limit, asks):
    async def work(store: Store) -> None:
        time = Time()
        minute = Minute(store, time, limit, "requests", 3)
        for pause, process in asks:
            time.move(pause)
            await minute.use(process, 1, 1)
        minute.check(1)

    run_with_a_store(work)


@settings(max_examples=12, deadline=None)
@given(
    some.integers(100, 2000),
    some.lists(some.tuples(some.floats(0, 20), some.integers(1, 400), some.integers(0, 400)), max_size=20),
)
def test_tokens_beyond_the_guess_are_owed_before_anyone_takes_more(limit, asks):
    async def work(store: Store) -> None:
        time = Time()
        minute = Minute(store, time, limit, "tokens", 1)
        for pause, guess, used in asks:
            time.move(pause)
            await minute.use(0, guess, used)
        minute.check(400)

    run_with_a_store(work)


async def test_what_was_not_used_can_be_taken_again(store, time):
    lease = RateLease(store, time.clocks, KEY, "key", "tokens", 100)
    await take(lease, 100)
    with pytest.raises(RateLimited):
        await take(lease, 50)
    lease.settle(100, 20)
    await take(lease, 80)
    with pytest.raises(RateLimited) as caught:
        await take(lease, 30)
    assert caught.value.retry_after == pytest.approx(18)
    assert caught.value.headers["x-ratelimit-remaining-tokens"] == "0"


async def test_a_rate_that_the_store_cannot_tell_stays_as_it_was(store, time):
    lease = RateLease(store, time.clocks, KEY, "key", "tokens", 100)
    await take(lease, 40)
    lease.settle(40, 70)
    owed = lease.free
    store.broken = True
    with pytest.raises(StoreUnavailable):
        await take(lease, 60)
    assert (lease.free, lease.in_use) == (owed, 0)
    store.broken = False
    await take(lease, 30)
    with pytest.raises(RateLimited):
        await take(lease, 1)


# -- slots


async def test_slots_of_all_processes_are_as_many_as_allowed(store, time):
    leases = [StreamLease(store, time.clocks, KEY, "key", process, 20) for process in ("one", "two", "three")]
    answers = await asyncio.gather(*(take(lease, 1) for lease in leases * 12), return_exceptions=True)
    assert sum(answer is None for answer in answers) <= 20
    assert {type(each) for each in answers} == {type(None), TooManyStreams}
    assert sum(lease.in_use + lease.free for lease in leases) == 20
    for lease in leases:
        for _ in range(int(lease.in_use)):
            lease.settle(1, 0)
        assert lease.in_use == 0


async def test_who_stops_asking_tells_those_who_wait(store, time):
    budget = await set_budget(store, 100)
    lease, other = lease_of(store, time, budget), lease_of(store, time, budget, "two")
    await take(other, 100)
    waiting = asyncio.gather(take(lease, 5), take(lease, 6), return_exceptions=True)
    await asyncio.sleep(0.05)
    await lease.stop()
    answers: list[Any] = await waiting
    assert [type(each) for each in answers] == [StoreUnavailable] * 2
    assert not lease.is_waited_for


async def answer_of(asking: Coroutine[Any, Any, None]) -> PenstockError | None:
    try:
        await asking
    except PenstockError as error:
        return error
    return None


async def test_refusals_say_where_the_budget_stands(store, time):
    budget = await set_budget(store, 1_000_000_000)
    lease = lease_of(store, time, budget)
    await take(lease, 600_000_000)
    await settle(store, lease, 600_000_000, 250_000_000)
    error = await answer_of(take(lease, 800_000_000))
    assert isinstance(error, InsufficientBudget)
    assert (error.facts["spent"], error.facts["cap"], error.facts["needed"]) == ("0.25", "1.00", "0.80")

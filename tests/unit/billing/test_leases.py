"""A share is at any moment what the store has written down for it: free and in use, whoever comes, leaves or fails."""

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

from penstock.billing.leases import RATE_PARTS, LocalLease, MoneyShare, RateShare, SlotShare
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


def share_of(store: Store, time: Time, budget: Budget, process: str = "one") -> MoneyShare:
    return MoneyShare(store, time.clocks, process, budget, PAYER, time.now)


async def take(share: LocalLease, amount: float) -> None:
    """As the escrow does."""
    if not share.try_take(amount):
        await share.take(amount)


async def leased(store: Store, process: str = "one") -> int:
    found = await rows(store, f"SELECT sum(amount) AS total FROM holds WHERE subject = '{process}'")  # noqa: S608
    return found[0].total or 0


async def settle(store: Store, share: MoneyShare, taken: int, used: int) -> None:
    """A request is over, and what it cost is written at once."""
    share.settle(taken, used)
    await charge(store, share.process, used)


# -- money


async def test_first_come_first_served(store, time):
    share = share_of(store, time, await set_budget(store, 100))
    served: list[int] = []

    async def ask(number: int) -> None:
        with suppress(InsufficientBudget):
            await take(share, 7)
            served.append(number)

    await asyncio.gather(*(ask(number) for number in range(40)))
    assert served == list(range(14))
    assert (share.in_use, share.free) == (98, 2)
    assert await leased(store) == 100


async def test_who_wants_more_than_there_is_holds_nobody_up(store, time):
    share = share_of(store, time, await set_budget(store, 100))
    answers = await asyncio.gather(*(take(share, amount) for amount in (60, 90, 30, 20, 10)), return_exceptions=True)
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
    share = share_of(store, time, budget)
    asking = [asyncio.create_task(take(share, 20)) for _ in range(3)]
    await wait_for(lambda: leased(store))
    store.answers.set()
    for _ in range(ticks):
        await asyncio.sleep(0)
    asking[1].cancel()
    answers = await asyncio.gather(*asking, return_exceptions=True)
    granted = answers.count(None)
    assert granted == 3 - isinstance(answers[1], asyncio.CancelledError)
    assert share.in_use == 20 * granted
    assert share.free + share.in_use == await leased(store)
    await store.close()


@pytest.mark.parametrize("seed", range(4))
async def test_comings_and_goings_leave_the_share_as_the_store_has_it(store, time, seed):
    budget, chance = await set_budget(store, 500), chances(seed)
    shares = [share_of(store, time, budget, process) for process in ("one", "two")]
    store.fails = lambda: chance.random() < 0.1

    async def ask() -> None:
        share, amount = chance.choice(shares), chance.randint(1, 40)
        await asyncio.sleep(chance.random() * 0.05)
        await take(share, amount)
        try:
            await asyncio.sleep(chance.random() * 0.02)
        finally:
            share.put_back(amount)

    asking = [asyncio.create_task(ask()) for _ in range(60)]
    for task in chance.sample(asking, 40):
        asyncio.get_running_loop().call_later(chance.random() * 0.08, task.cancel)
    answers = await asyncio.gather(*asking, return_exceptions=True)
    allowed = (asyncio.CancelledError, InsufficientBudget, StoreUnavailable, type(None))
    assert all(isinstance(each, allowed) for each in answers)
    for share in shares:
        assert share.in_use == 0
        assert share.free == await leased(store, share.process)
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
        share = share_of(store, time, await set_budget(store, cap))
        under_way: list[int] = []
        spent = 0
        for deed, amount in moves:
            time.move(0.3)
            if deed == "take":
                with suppress(InsufficientBudget):
                    await take(share, amount)
                    under_way.append(amount)
                    assert spent + sum(under_way) <= cap or share.free < 0  # eaten by answers that cost more
            elif deed == "settle" and under_way:
                taken = under_way.pop(0)
                await settle(store, share, taken, amount)
                spent = (await standing(store))[0]
            elif share.free > 0:
                await store.write(balance_rows.give_back, "one", {share.place: int(share.free)})
                share.free = 0
            assert share.in_use == sum(under_way)
            assert share.free + share.in_use == await leased(store)
            assert sum(await standing(store)) <= cap
        assert await store.read(check) == []

    run_with_a_store(work)


async def test_a_lease_that_was_not_renewed_in_time_is_found_again(store, time):
    """The machine stood still, but nobody has taken it meanwhile."""
    share = share_of(store, time, await set_budget(store, 100))
    await take(share, 100)
    share.put_back(100)
    time.steady += LEASE_SECONDS - 10
    assert not share.try_take(30)
    await take(share, 30)
    assert (share.in_use, share.free) == (30, 70)
    assert await leased(store) == 100


@pytest.mark.parametrize("taken_over", [True, False])
async def test_a_lease_that_ended_is_not_used_again(store, time, taken_over):
    budget = await set_budget(store, 100)
    share, other = share_of(store, time, budget), share_of(store, time, budget, "two")
    await take(share, 80)
    share.put_back(80)
    time.move(LEASE_SECONDS + 1)
    if taken_over:
        await take(other, 100)
        with pytest.raises(InsufficientBudget):
            await take(share, 10)
        assert (share.free, share.in_use) == (0, 0)
    else:
        await store.write(process_lease_rows.expire, time.now)
        await take(share, 90)
        assert share.free + share.in_use == await leased(store)
    assert (await standing(store))[1] == (100 if taken_over else 91)


async def test_a_budget_set_anew_has_forgotten_what_was_leased(store, time):
    budget = await set_budget(store, 100)
    share, other = share_of(store, time, budget), share_of(store, time, budget, "two")
    await take(share, 60)
    share.put_back(60)
    await store.write(budget_rows.remove, KEY, "total")
    await set_budget(store, 100)
    await take(other, 40)
    await take(share, 60)  # out of what it thinks it has
    await settle(store, share, 60, 60)
    await take(other, 1)
    assert await leased(store) == 0
    with pytest.raises(InsufficientBudget):
        await take(share, 20)
    assert sum(await standing(store)) <= 100
    assert await store.read(check) == []


async def test_what_was_leased_of_a_former_budget_is_not_added_to_what_is_leased_now(store, time):
    share = share_of(store, time, await set_budget(store, 100))
    await take(share, 60)
    share.put_back(60)
    await store.write(budget_rows.remove, KEY, "total")
    await set_budget(store, 100)
    await take(share, 80)
    assert share.in_use == 80
    assert share.free + share.in_use == await leased(store)


async def test_a_lowered_cap_gives_nobody_less_than_nothing(store, time):
    budget = await set_budget(store, 100)
    share = share_of(store, time, budget)
    await take(share, 90)
    await set_budget(store, 50)
    answers = await asyncio.gather(*(take(share, amount) for amount in (40, 5, 2)), return_exceptions=True)
    assert share.free >= 0
    assert share.free + share.in_use == await leased(store)
    assert sum(answer is None for answer in answers[1:]) <= 1  # out of what was left of the lease
    assert isinstance(answers[0], InsufficientBudget)


async def test_what_costs_nothing_is_never_refused(store, time):
    share = share_of(store, time, await set_budget(store, 100))
    await take(share, 50)
    await take(share, 50)
    await settle(store, share, 50, 120)
    with pytest.raises(InsufficientBudget):
        await take(share, 1)
    await take(share, 0)


async def test_a_share_is_of_the_day_on_which_it_was_asked_for(store, time):
    budget = await set_budget(store, 100, Period.DAY)
    end = budget.window(NOON)[1]
    time.now = end - 1
    share = share_of(store, time, budget)
    time.now = end + 5
    await take(share, 60)
    assert share.place.start == budget.window(NOON)[0]
    assert [row.start for row in await rows(store, "SELECT start FROM holds WHERE amount > 0")] == [share.place.start]


# -- rates


class Minute:
    """What several processes took of one limit, and when."""

    def __init__(self, store: Store, time: Time, limit: int, kind: str, processes: int) -> None:
        self.time = time
        self.limit = limit
        self.shares = [RateShare(store, time.clocks, KEY, "key", kind, limit) for _ in range(processes)]
        self.used: list[tuple[float, float]] = []

    async def use(self, process: int, guess: float, used: float) -> None:
        """Take it, waiting once as long as it is told to; then tell what was used."""
        share = self.shares[process]
        try:
            await take(share, guess)
        except RateLimited as error:
            wait = error.retry_after or 0
            if wait > 0.01:
                self.time.move(wait - 0.005)
                with pytest.raises(RateLimited):  # it need not have been longer
                    await take(share, guess)
                self.time.move(0.005)
            self.time.move(0.001)
            await take(share, guess)
        share.settle(guess, used)
        self.used.append((self.time.now, used))

    def check(self, last: float) -> None:
        """In any time: a full bucket, what flowed in, and the shares that processes had; the last may go beyond."""
        shares = len(self.shares) * (self.limit / RATE_PARTS)
        for start, (began, _) in enumerate(self.used):
            total = 0.0
            for at, amount in self.used[start:]:
                assert total <= self.limit + (at - began) * self.limit / 60 + shares + last + EPSILON
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
    share = RateShare(store, time.clocks, KEY, "key", "tokens", 100)
    await take(share, 100)
    with pytest.raises(RateLimited):
        await take(share, 50)
    share.settle(100, 20)
    await take(share, 80)
    with pytest.raises(RateLimited) as caught:
        await take(share, 30)
    assert caught.value.retry_after == pytest.approx(18)
    assert caught.value.headers["x-ratelimit-remaining-tokens"] == "0"


async def test_a_rate_that_the_store_cannot_tell_stays_as_it_was(store, time):
    share = RateShare(store, time.clocks, KEY, "key", "tokens", 100)
    await take(share, 40)
    share.settle(40, 70)
    owed = share.free
    store.broken = True
    with pytest.raises(StoreUnavailable):
        await take(share, 60)
    assert (share.free, share.in_use) == (owed, 0)
    store.broken = False
    await take(share, 30)
    with pytest.raises(RateLimited):
        await take(share, 1)


# -- slots


async def test_slots_of_all_processes_are_as_many_as_allowed(store, time):
    shares = [SlotShare(store, time.clocks, KEY, "key", process, 20) for process in ("one", "two", "three")]
    answers = await asyncio.gather(*(take(share, 1) for share in shares * 12), return_exceptions=True)
    assert sum(answer is None for answer in answers) <= 20
    assert {type(each) for each in answers} == {type(None), TooManyStreams}
    assert sum(share.in_use + share.free for share in shares) == 20
    for share in shares:
        for _ in range(int(share.in_use)):
            share.settle(1, 0)
        assert share.in_use == 0


async def test_who_stops_asking_tells_those_who_wait(store, time):
    budget = await set_budget(store, 100)
    share, other = share_of(store, time, budget), share_of(store, time, budget, "two")
    await take(other, 100)
    waiting = asyncio.gather(take(share, 5), take(share, 6), return_exceptions=True)
    await asyncio.sleep(0.05)
    await share.stop()
    answers: list[Any] = await waiting
    assert [type(each) for each in answers] == [StoreUnavailable] * 2
    assert not share.is_waited_for


async def answer_of(asking: Coroutine[Any, Any, None]) -> PenstockError | None:
    try:
        await asking
    except PenstockError as error:
        return error
    return None


async def test_refusals_say_where_the_budget_stands(store, time):
    budget = await set_budget(store, 1_000_000_000)
    share = share_of(store, time, budget)
    await take(share, 600_000_000)
    await settle(store, share, 600_000_000, 250_000_000)
    error = await answer_of(take(share, 800_000_000))
    assert isinstance(error, InsufficientBudget)
    assert (error.facts["spent"], error.facts["cap"], error.facts["needed"]) == ("0.25", "1.00", "0.80")

"""Several processes on one store: budgets and limits are hard over all of them, and nothing is lost on the way."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from typing import Any

import pytest
from admission_steps import (
    ACCOUNT,
    KEY,
    NOON,
    Store,
    Time,
    chances,
    charge,
    make_key,
    opened,
    rows,
    set_budget,
    standing,
    wait_for,
)

from penstock.billing.admission import Admission, Ticket
from penstock.clocks import CLOCKS, Clocks
from penstock.domain.api_keys import ApiKey, Limits
from penstock.domain.budgets import Period
from penstock.errors import InsufficientBudget, RateLimited, StoreUnavailable, TooManyStreams
from penstock.store.queries.billing import budget_rows, limit_rows
from penstock.store.queries.billing.balance_rows import LEASE_SECONDS
from penstock.store.queries.billing.ledger_audit import check

CAP = 1000
DAY = 86_400.0
MIDNIGHT = NOON + DAY / 2


@pytest.fixture
async def store(store_url) -> AsyncGenerator[Store]:
    async with opened(store_url) as store:
        yield store


@pytest.fixture
def time() -> Time:
    return Time()


Open = Callable[..., list[Admission]]


@pytest.fixture
async def processes(store, time) -> AsyncGenerator[Open]:
    """So many processes, which end with the test."""
    async with AsyncExitStack() as stack:

        def begin(number: int, clocks: Clocks = time.clocks) -> list[Admission]:
            begun = [Admission(store, f"process_{each}", clocks) for each in range(number)]
            for admission in begun:
                stack.push_async_callback(admission.stop)
            return begun

        yield begin


async def hold(admission: Admission, key: ApiKey, cost: int, at: float = NOON) -> Ticket:
    ticket = Ticket()
    try:
        await admission.hold(ticket, key, cost, at)
    except BaseException:
        ticket.give_up()
        raise
    return ticket


async def hold_soon(admission: Admission, key: ApiKey, cost: int) -> Ticket:
    """The other processes have long to answer where many tests run at once."""
    async with asyncio.timeout(300):
        while True:
            with suppress(InsufficientBudget):
                return await hold(admission, key, cost)
            await asyncio.sleep(0.05)


# -- money


class Crowd:
    """Requests of several processes on one budget, and what they may have used at any moment."""

    def __init__(self, store: Store, admissions: list[Admission], key: ApiKey, seed: int) -> None:
        self.store = store
        self.admissions = admissions
        self.key = key
        self.random = chances(seed)
        self.spent = 0
        self.promised = 0
        """What was spent or may be."""
        self.most = 0
        self.refused = 0

    def promise(self, more: int) -> None:
        self.promised += more
        self.most = max(self.most, self.promised)

    async def ask(self) -> None:
        admission, most = self.random.choice(self.admissions), self.random.randint(1, 60)
        await asyncio.sleep(self.random.random() * 0.3)
        try:
            ticket = await hold(admission, self.key, most)
        except InsufficientBudget:
            self.refused += 1
            return
        self.promise(most)
        cost = 0
        try:
            await asyncio.sleep(self.random.random() * 0.05)
            cost = self.random.randint(0, most)
        finally:
            self.promise(cost - most)
            self.spent += cost
            ticket.settle(cost, 0)
            await asyncio.shield(charge(self.store, admission.process, cost))


@pytest.mark.parametrize("number", [2, 4])
async def test_a_crowd_gets_the_whole_budget_and_never_more(store, processes, number):
    admissions = processes(number, CLOCKS)
    crowd = Crowd(store, admissions, make_key(await set_budget(store, CAP)), number)
    await asyncio.gather(*(crowd.ask() for _ in range(150)))
    assert crowd.most <= CAP
    assert crowd.refused
    last = await hold_soon(admissions[0], crowd.key, CAP - crowd.spent)
    assert await refused_cost(admissions[1], crowd.key, 1)
    last.give_up()
    for admission in admissions:
        await admission.stop()
    assert await standing(store) == (crowd.spent, 0)
    assert await store.read(check) == []


@pytest.mark.parametrize("seed", range(3))
async def test_who_leaves_at_any_moment_takes_nothing_with_him(store, processes, seed):
    admissions, chance = processes(2, CLOCKS), chances(seed)
    crowd = Crowd(store, admissions, make_key(await set_budget(store, CAP)), seed)
    asking = [asyncio.create_task(crowd.ask()) for _ in range(80)]
    for task in chance.sample(asking, 60):
        asyncio.get_running_loop().call_later(chance.random() * 0.35, task.cancel)
    await asyncio.gather(*asking, return_exceptions=True)
    assert crowd.most <= CAP
    await wait_for(lambda: _is_spent(store, crowd.spent))  # what a caller left goes on
    spent, held = await standing(store)
    assert spent + held <= CAP
    tickets = [await hold_soon(admissions[0], key, 1) for key in [crowd.key] * 5]
    rest = await hold_soon(admissions[1], crowd.key, CAP - spent - 5)  # all that is left can still be had
    for ticket in (*tickets, rest):
        ticket.give_up()
    assert await store.read(check) == []


async def _is_spent(store: Store, amount: int) -> bool:
    return (await standing(store))[0] == amount


async def test_what_another_process_does_not_use_is_asked_back(store, processes):
    one, other = processes(2)
    key = make_key(await set_budget(store, CAP))
    ticket = await hold(one, key, CAP - 100)
    ticket.settle(300, 0)  # 600 and some are free there, and it was used just now
    await charge(store, one.process, 300)
    assert await hold(other, key, CAP - 300)
    with pytest.raises(InsufficientBudget) as caught:
        await hold(one, key, 1)
    assert caught.value.facts["spent"] == "0.0000003"


async def test_a_refusal_tells_the_truth_to_who_wants_less_too(store, processes):
    """Who wants too much does not make others wait for what is there, nor be refused it."""
    one, other = processes(2)
    key = make_key(await set_budget(store, 100))
    await hold(other, key, 50)
    answers = await asyncio.gather(*(hold(one, key, cost) for cost in (80, 10, 60, 40)), return_exceptions=True)
    assert [type(each) for each in answers] == [InsufficientBudget, Ticket, InsufficientBudget, Ticket]


async def test_a_flood_of_refused_requests_costs_few_transactions(store, processes):
    one, other = processes(2)
    key = make_key(await set_budget(store, 100))
    await hold(other, key, 100)
    before = store.writes
    answers = await asyncio.gather(*(hold(one, key, 5) for _ in range(300)), return_exceptions=True)
    answers += [error for _ in range(300) for error in [await refused(one, key)]]
    assert {type(each) for each in answers} == {InsufficientBudget}
    assert store.writes - before < 20


async def refused(admission: Admission, key: ApiKey) -> BaseException:
    with pytest.raises(InsufficientBudget) as caught:
        await hold(admission, key, 5)
    return caught.value


async def test_money_put_back_can_be_had_at_once(store, processes):
    """A refusal is remembered for a moment, but not against what has come back in that moment."""
    [one] = processes(1)
    key = make_key(await set_budget(store, 100))
    ticket = await hold(one, key, 60)
    assert await refused_cost(one, key, 70)
    ticket.settle(0, 0)
    await hold(one, key, 70)


async def refused_cost(admission: Admission, key: ApiKey, cost: int, at: float = NOON) -> bool:
    try:
        await hold(admission, key, cost, at)
    except InsufficientBudget:
        return True
    return False


async def test_what_one_answer_costs_too_much_is_not_promised_to_another(store, processes):
    """Two hold the whole budget, one costs more than it held: the other's money is not given out a second time."""
    [one] = processes(1)
    key = make_key(await set_budget(store, 100))
    first, second = await hold(one, key, 50), await hold(one, key, 50)
    first.settle(70, 0)
    await charge(store, one.process, 70)
    second.give_up()
    assert await refused_cost(one, key, 31)
    await hold(one, key, 30)
    assert await standing(store) == (70, 30)


@pytest.mark.parametrize("stale", [False, True])
async def test_changed_caps_count_at_once(store, processes, time, stale):
    """Also for a process that still has the key as it was."""
    one, other = processes(2)
    first = await set_budget(store, 500)
    key = make_key(first)
    await hold(one, key, 300)
    lowered = await set_budget(store, 310)
    key = key if stale else make_key(lowered)
    assert await refused_cost(other, key, 30)
    raised = await set_budget(store, 600)
    time.move(0.3)  # so long a refusal may be remembered
    key = key if stale else make_key(raised)
    assert await hold(other, key, 280)
    assert await refused_cost(other, key, 30)


async def test_a_budget_that_is_taken_away_bounds_nothing_and_one_set_anew_counts_all(store, processes):
    one, other = processes(2)
    stale = make_key(await set_budget(store, 100))
    await hold(one, stale, 80)
    await store.write(budget_rows.remove, KEY, "total")
    ticket = await hold(one, stale, 90)  # it has not heard of it
    ticket.settle(90, 0)
    await charge(store, one.process, 90)
    key = make_key(await set_budget(store, 120))
    assert await refused_cost(other, key, 31)
    assert await hold(other, key, 30)
    assert await store.read(check) == []


async def test_another_time_zone_counts_other_days_at_once(store, processes, time):
    [one] = processes(1)
    stale = make_key(await set_budget(store, 100, Period.DAY, at=time.now))
    ticket = await hold(one, stale, 60, time.now)
    await set_budget(store, 100, Period.DAY, time_zone="Asia/Kolkata", at=time.now)
    again = await hold(one, stale, 70, time.now)  # it has not heard of it
    ticket.settle(60, 0)
    again.settle(0, 0)
    await charge(store, one.process, 60, at=time.now)
    assert await store.read(check) == []
    at = time.now
    time.move(2)
    await wait_for(lambda: _nothing_is_held(store))  # given back to the purse it is of now
    assert await standing(store, at) == (60, 0)
    [purse] = await rows(store, "SELECT * FROM purses")
    assert purse.spent == 60


# -- periods


@pytest.mark.parametrize("period", [Period.DAY, Period.MONTH])
async def test_what_is_under_way_at_midnight_is_paid_by_the_day_it_was_asked_on(store, processes, time, period):
    budget = await set_budget(store, 100, period, at=NOON)
    end = budget.window(NOON)[1]
    key, [one, other] = make_key(budget), processes(2)
    time.now = end - 0.01
    late = await hold(one, key, 60, time.now)
    time.now = end + 0.01
    fresh = await hold(one, key, 80, time.now)
    stragglers = [
        await hold(admission, key, 15, end - 0.001) for admission in (one, other)
    ]  # accepted before, let in after
    assert await refused_cost(other, key, 21, time.now)
    assert await refused_cost(other, key, 11, end - 0.001)
    late.settle(50, 0)
    await charge(store, one.process, 50, at=end - 0.01)
    for ticket, admission in zip(stragglers, (one, other), strict=True):
        ticket.settle(15, 0)
        await charge(store, admission.process, 15, at=end - 0.001)
    fresh.settle(80, 0)
    await charge(store, one.process, 80, at=time.now)
    assert (await standing(store, end - 0.01))[0] == 80
    time.move(2)
    await wait_for(lambda: _nothing_is_held(store))
    assert await standing(store, end - 0.01) == (80, 0)
    assert await standing(store, time.now) == (80, 0)
    assert await rows(store, "SELECT * FROM ledger WHERE overrun > 0") == []
    assert await store.read(check) == []


async def _nothing_is_held(store: Store) -> bool:
    return not await rows(store, "SELECT * FROM holds WHERE amount > 0")


# -- processes that stop, and stores that fail


async def test_idle_money_goes_back_by_itself(store, processes, time):
    [one] = processes(1)
    key = make_key(await set_budget(store, CAP))
    ticket = await hold(one, key, 100)
    ticket.settle(10, 0)
    await charge(store, one.process, 10)
    assert (await standing(store))[1] >= 90
    time.move(2)
    await wait_for(lambda: _nothing_is_held(store))
    assert await standing(store) == (10, 0)


async def test_who_waits_when_the_process_stops_is_told_and_nothing_stays_held(store, processes):
    one, other = processes(2)
    key = make_key(await set_budget(store, 100))
    await hold(other, key, 100)
    waiting = asyncio.create_task(hold(one, key, 50))
    await asyncio.sleep(0.1)  # it asks the other process
    await one.stop()
    with pytest.raises(StoreUnavailable):
        await waiting
    await other.stop()
    await asyncio.sleep(0.4)  # longer than it would have waited
    assert await standing(store) == (0, 0)


async def test_whoever_leaves_a_recall_gives_nothing_twice(store, processes):
    one, other = processes(2)
    key = make_key(await set_budget(store, CAP))
    ticket = await hold(one, key, 600)
    ticket.settle(0, 0)
    for _ in range(3):
        recalling = asyncio.create_task(one.recall([KEY, ACCOUNT]))
        await asyncio.sleep(0)
        recalling.cancel()
        with suppress(asyncio.CancelledError):
            await recalling
    await wait_for(lambda: _nothing_is_held(store))
    await hold(other, key, CAP)
    assert await refused_cost(one, key, 1)


@pytest.mark.parametrize("seed", range(3))
async def test_a_store_that_fails_now_and_then_neither_leaks_nor_gives(store, processes, seed):
    admissions, chance = processes(3), chances(seed)
    key = make_key(await set_budget(store, CAP))
    store.fails = lambda: chance.random() < 0.3
    granted: list[tuple[Admission, Ticket, int]] = []

    async def ask() -> None:
        admission, cost = chance.choice(admissions), chance.randint(1, 50)
        await asyncio.sleep(chance.random() * 0.2)
        with suppress(InsufficientBudget, StoreUnavailable):
            granted.append((admission, await hold(admission, key, cost), cost))
        if chance.random() < 0.2:
            with suppress(StoreUnavailable):
                await admission.recall([KEY])

    await asyncio.gather(*(ask() for _ in range(120)))
    assert sum(cost for _, _, cost in granted) <= CAP
    store.fails = lambda: False
    for admission, ticket, cost in granted:
        ticket.settle(cost, 0)
        await charge(store, admission.process, cost)
    spent = sum(cost for _, _, cost in granted)

    async def is_all_returned() -> bool:
        """Ask until no lease that was asked for ahead is still on its way."""
        for admission in admissions:
            await admission.recall([KEY])
        return await standing(store) == (spent, 0)

    await wait_for(is_all_returned)
    await hold(admissions[0], key, CAP - spent)


async def test_a_store_that_is_away_lets_nobody_in_and_forgets_nothing(store, processes, time):
    [one] = processes(1)
    key = make_key(await set_budget(store, 100), requests_per_minute=60, tokens_per_minute=6000, concurrent_streams=8)
    ticket = await one.admit(key, 500, stream=True)
    await one.hold(ticket, key, 60, NOON)
    store.broken = True
    with pytest.raises(StoreUnavailable):
        await hold(one, key, 60)
    ticket.settle(20, 2000)
    before = store.writes
    time.move(2)
    await wait_for(lambda: _asked_since(store, before + 2))  # it tries to give back
    store.broken = False
    await charge(store, one.process, 20)
    await wait_for(lambda: _nothing_is_held(store))
    await wait_for(lambda: _is_empty(store, "slots"))
    await wait_for(lambda: _level_is(store, "tokens", 6000 - 2000 + 200))
    await hold(one, key, 80)


async def _asked_since(store: Store, number: int) -> bool:
    return store.writes >= number


async def _is_empty(store: Store, table: str) -> bool:
    return not await rows(store, f"SELECT * FROM {table}")  # noqa: S608


async def _level_is(store: Store, kind: str, level: float, about: float = 1) -> bool:
    [row] = await rows(store, f"SELECT level FROM buckets WHERE kind = '{kind}'")  # noqa: S608
    return abs(row.level - level) < about


# -- rates


async def test_tokens_beyond_the_guess_are_owed_however_long_the_answer_took(store, processes, time):
    [one] = processes(1)
    key = make_key(tokens_per_minute=6000)
    ticket = await one.admit(key, 100)
    time.move(30)  # meanwhile nobody else asks, and what is free goes back
    await wait_for(lambda: _level_is(store, "tokens", 6000))
    ticket.settle(0, 5100)
    await wait_for(lambda: _level_is(store, "tokens", 1000))
    with pytest.raises(RateLimited) as caught:
        await one.admit(key, 2000)
    assert caught.value.retry_after == pytest.approx(10, abs=0.1)
    time.move(caught.value.retry_after)
    await one.admit(key, 2000)


async def test_what_many_keys_owe_is_told_in_one_transaction(store, processes, time):
    [one] = processes(1)
    keys = [replace(make_key(tokens_per_minute=1000), lineage=f"key_{number}") for number in range(200)]
    tickets = await asyncio.gather(*(one.admit(key, 10) for key in keys))
    before = store.writes
    for ticket in tickets:
        ticket.settle(0, 510)
    await wait_for(lambda: _all_owe(store, 490))
    assert store.writes - before < 5


async def _all_owe(store: Store, level: float) -> bool:
    return all(row.level == pytest.approx(level) for row in await rows(store, "SELECT level FROM buckets"))


async def test_requests_of_all_processes_count_together_and_the_wait_is_enough(store, processes, time):
    admissions = processes(3)
    key = make_key(requests_per_minute=6)
    tickets = [await admission.admit(key) for admission in admissions for _ in range(2)]
    assert all(dict(ticket.describe())["x-ratelimit-remaining-requests"] == "0" for ticket in tickets[-1:])
    for admission in admissions:
        with pytest.raises(RateLimited) as caught:
            await admission.admit(key)
        assert caught.value.retry_after == pytest.approx(10)
    time.move(9.99)
    with pytest.raises(RateLimited):
        await admissions[0].admit(key)
    time.move(0.0101)
    assert await admissions[0].admit(key)
    with pytest.raises(RateLimited):
        await admissions[1].admit(key)


async def test_a_flood_beyond_the_rate_costs_few_transactions(store, processes):
    [one] = processes(1)
    key = make_key(requests_per_minute=5)
    for _ in range(5):
        await one.admit(key)
    before = store.writes
    for _ in range(300):
        with pytest.raises(RateLimited):
            await one.admit(key)
    assert store.writes - before < 20


async def test_a_request_refused_by_one_limit_uses_nothing_of_another(store, processes):
    [one] = processes(1)
    key = make_key(requests_per_minute=10, tokens_per_minute=100, concurrent_streams=1)
    ticket = await one.admit(key, 100)
    for _ in range(20):
        with pytest.raises(RateLimited) as caught:
            await one.admit(key, 50, stream=True)
    assert caught.value.headers["x-ratelimit-remaining-tokens"] == "0"
    assert dict(ticket.describe())["x-ratelimit-remaining-requests"] == "9"
    await one.open_stream(key)  # its place was given back


# -- streams


async def test_streams_that_are_cut_off_leave_their_places(store, processes, time):
    admissions, chance = processes(3), chances(1)
    key = make_key(concurrent_streams=10)
    open_now, most = 0, 0

    async def watch() -> None:
        nonlocal open_now, most
        await asyncio.sleep(chance.random() * 0.2)
        ticket = await chance.choice(admissions).open_stream(key)
        open_now += 1
        most = max(most, open_now)
        try:
            await asyncio.sleep(chance.random() * 0.1)
        finally:
            open_now -= 1
            ticket.settle(0, 0)

    watching = [asyncio.create_task(watch()) for _ in range(150)]
    for task in watching[::2]:
        asyncio.get_running_loop().call_later(chance.random() * 0.3, task.cancel)
    answers = await asyncio.gather(*watching, return_exceptions=True)
    assert {type(each) for each in answers} <= {asyncio.CancelledError, TooManyStreams, type(None)}
    assert 5 <= most <= 10
    time.move(2)
    await wait_for(lambda: _is_empty(store, "slots"))
    tickets = [await admissions[0].open_stream(key) for _ in range(10)]
    with pytest.raises(TooManyStreams):
        await admissions[1].open_stream(key)
    tickets[0].settle(0, 0)


async def test_places_that_a_store_does_not_take_back_are_offered_again(store, processes, time):
    one, other = processes(2)
    key = make_key(concurrent_streams=8)
    ticket = await one.open_stream(key)
    ticket.settle(0, 0)
    store.broken = True
    before = store.writes
    time.move(2)
    await wait_for(lambda: _asked_since(store, before + 1))
    store.broken = False
    await wait_for(lambda: _is_empty(store, "slots"))
    for _ in range(8):
        await other.open_stream(key)


async def test_streams_stay_open_beyond_a_lease_while_their_process_lives(store, processes, time):
    one, other = processes(2)
    key = make_key(concurrent_streams=1)
    await one.open_stream(key)
    for _ in range(4):
        before = store.writes
        time.move(LEASE_SECONDS * 0.3)
        await wait_for(lambda before=before: _asked_since(store, before + 1))
    with pytest.raises(TooManyStreams):
        await other.open_stream(key)


async def test_slots_taken_one_after_the_other_from_a_slow_store_all_go_back(store, processes, time, monkeypatch):
    monkeypatch.setattr("penstock.billing.admission.MAINTENANCE_SECONDS", 0.01)
    [admission] = processes(1)
    key = replace(make_key(concurrent_streams=50), account_limits=Limits(concurrent_streams=2))
    write, asked, answered = store.write, asyncio.Event(), asyncio.Event()

    async def be_slow(function: Any, *args: Any, **options: Any) -> Any:
        if function is limit_rows.lease_slots and args[0] == KEY:
            asked.set()
            await answered.wait()
        return await write(function, *args, **options)

    monkeypatch.setattr(store, "write", be_slow)
    opening = asyncio.create_task(admission.open_stream(key))
    await asked.wait()
    time.move(10.0)
    await asyncio.sleep(0.2)  # the account's lease, which is not asked for yet, is looked at many times
    answered.set()
    (await opening).settle(0, 0)

    async def is_given_back() -> bool:
        time.move(10.0)
        return not await rows(store, "SELECT owner FROM slots WHERE amount > 0")

    await wait_for(is_given_back)

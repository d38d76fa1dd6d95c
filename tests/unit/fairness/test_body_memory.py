"""The memory of request bodies in flight: who gets some, who waits and who is refused."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.errors import ConcurrencyLimited, Overloaded
from penstock.fairness.body_memory import MAX_WAITING_EACH, MIB, BodyMemory, make_bounds
from penstock.fairness.fair_share import Bounds

LONG = 600.0
BOUNDS = Bounds(total=100, each=60, reserve=10, little=5)


def make(wait_seconds: float = LONG) -> BodyMemory:
    return BodyMemory(lambda: BOUNDS, wait_seconds)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_who_finds_no_room_waits_until_there_is_some():
    memory = make()
    first = await memory.take("a", 50)
    waiting = asyncio.create_task(memory.take("a", 20))
    await settle()
    assert (waiting.done(), memory.held, memory.waiting) == (False, 50, 1)
    first.shrink(40)
    hold = await waiting
    assert (memory.held, memory.waiting) == (60, 0)
    hold.release()
    hold.release()
    first.release()
    assert (memory.held, memory._lines) == (0, {})


async def test_one_account_in_line_holds_nobody_else_up():
    memory = make()
    first = await memory.take("a", 60)
    waiting = [asyncio.create_task(memory.take("a", 60)) for _ in range(3)]
    await settle()
    (await memory.take("b", 30)).release()
    first.release()
    for each in waiting:
        (await each).release()
    assert memory.held == 0


async def test_accounts_are_served_in_turn():
    memory, served = make(), []
    first = [await memory.take(name, 30) for name in "xyz"]

    async def want(account: str) -> None:
        hold = await memory.take(account, 30)
        served.append(account)
        await settle()
        hold.release()

    wanting = []
    for account in "aaaab":
        wanting.append(asyncio.create_task(want(account)))
        await settle()
    first[0].release()
    await asyncio.gather(*wanting)
    assert served[:2] == ["a", "b"]
    for hold in first[1:]:
        hold.release()
    assert (memory.held, memory._lines) == (0, {})


async def test_a_wait_that_takes_too_long_is_told_whose_fault_it_is():
    memory = make(0.01)
    mine = await memory.take("a", 60)
    with pytest.raises(ConcurrencyLimited) as refused:
        await memory.take("a", 6)
    assert refused.value.retry_after
    other = await memory.take("b", 30)
    with pytest.raises(Overloaded) as refused:
        await memory.take("c", 20)
    assert refused.value.retry_after
    (await memory.take("c", 5)).release()  # of the reserve
    mine.release()
    other.release()
    assert (memory.held, memory.waiting, memory._lines) == (0, 0, {})


async def test_the_line_of_an_account_is_bounded():
    memory = make()
    hold = await memory.take("a", 60)
    waiting = [asyncio.create_task(memory.take("a", 1)) for _ in range(MAX_WAITING_EACH)]
    await settle()
    with pytest.raises(ConcurrencyLimited):
        await memory.take("a", 1)
    for each in waiting[1:]:
        each.cancel()
    await asyncio.gather(*waiting[1:], return_exceptions=True)
    hold.release()
    (await waiting[0]).release()
    assert (memory.held, memory.waiting, memory._lines) == (0, 0, {})


async def test_who_leaves_in_the_moment_it_is_let_in_keeps_nothing():
    memory = make()
    hold = await memory.take("a", 60)
    waiting = asyncio.create_task(memory.take("a", 60))
    await settle()
    hold.release()  # grants it
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert (memory.held, memory.waiting, memory._lines) == (0, 0, {})


@given(some.integers(1, 600), some.integers(1, 600), some.integers(1, 300))
def test_one_body_of_the_largest_size_always_fits(total, each, largest):
    bounds = make_bounds(total, each, largest)
    assert largest * MIB <= bounds.each <= bounds.total
    assert largest * MIB <= bounds.total - bounds.reserve

"""Accounts take turns, nobody holds all places, and whoever leaves at any moment leaves no place behind."""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import Overloaded, TooManyUploads
from penstock.fairness.fair_queue import FairQueue, UnderWayLimit


class Crowd:
    """Callers of a queue who note when they have their place, and hold it until they are let go."""

    def __init__(self, places: int) -> None:
        self.queue = FairQueue(places)
        self.order: list[str] = []
        self.holding: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    def come(self, name: str) -> None:
        """The first letter is the account."""
        self.tasks[name] = asyncio.create_task(self._wait(name))

    async def _wait(self, name: str) -> None:
        async with self.queue.place(name[0]):
            self.order.append(name)
            self.holding[name] = asyncio.Event()
            try:
                await self.holding[name].wait()
            finally:
                del self.holding[name]

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    async def finish(self) -> None:
        """Let one after the other go, the oldest first."""
        await self.settle()
        while self.holding:
            next(iter(self.holding.values())).set()
            await self.settle()


async def test_accounts_take_turns_and_each_keeps_its_order():
    crowd = Crowd(1)
    for name in ("a1", "a2", "a3", "a4", "b1", "b2", "c1"):
        crowd.come(name)
    await crowd.finish()
    assert crowd.order == ["a1", "a2", "b1", "c1", "a3", "b2", "a4"]


@pytest.mark.parametrize(("places", "most"), [(1, 1), (2, 1), (3, 2), (8, 7)])
async def test_no_account_holds_all_places(places, most):
    crowd = Crowd(places)
    for number in range(20):
        crowd.come(f"a{number}")
    await crowd.settle()
    assert len(crowd.holding) == most
    crowd.come("b1")
    await crowd.settle()
    assert ("b1" in crowd.holding) is (places > 1)
    await crowd.finish()
    assert len(crowd.order) == 21


async def test_a_place_freed_while_the_next_caller_leaves_goes_to_the_one_behind():
    crowd = Crowd(1)
    for name in ("a1", "b1", "b2", "c1"):
        crowd.come(name)
    await crowd.settle()
    crowd.holding["a1"].set()
    crowd.tasks.pop("b1").cancel()  # a1 gives its place back before b1 runs again
    await crowd.finish()
    assert crowd.order == ["a1", "b2", "c1"]
    assert (crowd.queue.held, crowd.queue.waiting) == (0, 0)


@given(
    st.integers(1, 4),
    st.lists(st.tuples(st.sampled_from(["come", "go", "cancel", "cancel now"]), st.sampled_from("abc"), st.booleans())),
)
def test_whatever_happens_places_are_neither_lost_nor_doubled(places, happenings):
    async def live() -> None:
        crowd, number = Crowd(places), 0
        for what, account, waits in happenings:
            if what == "come":
                number += 1
                crowd.come(f"{account}{number}")
            elif what == "go" and crowd.holding:
                next(iter(crowd.holding.values())).set()  # and before the next has noticed, another may leave
            elif crowd.tasks:
                mine = [name for name in crowd.tasks if name.startswith(account)]
                for name in mine[-1:]:
                    crowd.tasks.pop(name).cancel()
            if waits:
                await crowd.settle()
            held = Counter(name[0] for name in crowd.holding)
            assert held.total() <= places
            assert all(count <= max(1, places - 1) for count in held.values())
        await crowd.settle()
        assert crowd.queue.held == len(crowd.holding)
        await crowd.finish()
        assert (crowd.queue.held, crowd.queue.waiting) == (0, 0)
        await asyncio.gather(*crowd.tasks.values(), return_exceptions=True)

    asyncio.run(live())


async def test_an_account_has_so_much_under_way_and_all_together_so_much():
    allowance = UnderWayLimit(most_of_all=3)
    async with AsyncExitStack() as stack:
        for account in ("a", "a", "b"):
            stack.enter_context(allowance.one(account, 2))
        with pytest.raises(TooManyUploads, match="2 files at once") as caught, allowance.one("a", 2):
            pass
        assert caught.value.retry_after
        with pytest.raises(Overloaded, match="3 files at once"), allowance.one("c", 2):
            pass
    with allowance.one("a", 1):
        pass

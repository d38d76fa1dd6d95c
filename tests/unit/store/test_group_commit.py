"""Writes that share a transaction: nobody is left waiting, and one's failure is not another's."""

import asyncio

import pytest

from penstock.errors import StoreUnavailable
from penstock.store.group_commit import LANES, GroupCommit


class Gate:
    """A database whose transactions end when they are let."""

    def __init__(self) -> None:
        self.is_open = asyncio.Event()
        self.rounds = []

    async def write(self, function, items):
        self.rounds.append(list(items))
        await self.is_open.wait()
        return function(None, items)


def doubled(_connection, items):
    return [item * 2 for item in items]


async def _begin(together, items):
    tasks = []
    for item in items:
        tasks.append(asyncio.create_task(together.write(item)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    return tasks


async def test_whoever_comes_as_the_last_lane_ends_is_written():
    gate = Gate()
    together = GroupCommit(gate, doubled)
    early = await _begin(together, range(LANES))
    assert len(gate.rounds) == LANES
    gate.is_open.set()
    late = asyncio.create_task(together.write(21))  # its turn comes right after the lanes', before anything else's
    assert await asyncio.wait_for(late, 300) == 42
    assert [await task for task in early] == [item * 2 for item in range(LANES)]


async def test_those_who_wait_go_together():
    gate = Gate()
    together = GroupCommit(gate, doubled)
    tasks = await _begin(together, range(LANES + 6))
    gate.is_open.set()
    assert await asyncio.gather(*tasks) == [item * 2 for item in range(LANES + 6)]
    assert sorted(len(items) for items in gate.rounds) == [1] * LANES + [2, 4]


async def test_one_that_fails_sends_each_to_be_written_alone():
    def refuse(_connection, items):
        if 1 in items:
            raise ValueError
        return items

    gate = Gate()
    gate.is_open.set()
    together = GroupCommit(gate, refuse)
    assert await asyncio.gather(*(together.write(item) for item in (1, 2))) == [None, None]
    assert await together.write(2) == 2


async def test_what_may_be_committed_is_not_written_again():
    def lose(_connection, _items):
        raise StoreUnavailable("The store is away.")

    gate = Gate()
    gate.is_open.set()
    with pytest.raises(StoreUnavailable):
        await GroupCommit(gate, lose).write(1)
    assert len(gate.rounds) == 1

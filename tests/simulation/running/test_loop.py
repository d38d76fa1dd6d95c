"""The virtual loop, the world's clock and its dice."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from simulation.running.recorder import FLUSH_LINES, Recorder
from simulation.virtual_loop import VirtualLoop
from simulation.world import Violation, World

KEPT: list[Any] = []
"""Killed processes. If they were collected during the tests, their `finally` blocks would run."""


def _note(seen: list[Any], world: World, name: str) -> Callable[[], None]:
    return lambda: seen.append((world.now, name))


def test_timers_run_in_order_and_time_jumps_to_them():
    world, seen = World(1), list[Any]()
    loop = VirtualLoop(world, "one")
    for seconds, name in ((86_400.0, "day"), (1.0, "first"), (1.0, "second"), (0.5, "early")):
        loop.call_later(seconds, _note(seen, world, name))
    world.run(100_000.0)
    assert seen == [(0.5, "early"), (1.0, "first"), (1.0, "second"), (86_400.0, "day")]
    assert world.now == 100_000.0


def test_a_cancelled_timer_does_not_run():
    world, seen = World(1), list[Any]()
    VirtualLoop(world, "one").call_later(1.0, _note(seen, world, "never")).cancel()
    world.run(2.0)
    assert seen == []


def test_tasks_sleep_and_time_out_on_virtual_time():
    world = World(1)
    loop = VirtualLoop(world, "one")

    async def wait() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(30):
                await asyncio.sleep(3600)
        return world.now

    task = loop.create_task(wait())
    world.run(100.0, task.done)
    assert task.result() == 30.0


def test_work_for_threads_is_done_inline_and_raises_to_its_caller():
    world = World(1)
    loop = VirtualLoop(world, "one")

    async def work() -> int:
        with pytest.raises(ZeroDivisionError):
            await loop.run_in_executor(None, lambda: 1 // 0)
        return await loop.run_in_executor(None, max, 2, 3)

    task = loop.create_task(work())
    world.run(1.0)
    assert task.result() == 3


def _interleave(seed: int) -> str:
    world, seen = World(seed), list[str]()
    for name in "abc":
        loop = VirtualLoop(world, name)

        async def act(name: str = name) -> None:
            for _ in range(20):
                seen.append(name)
                await asyncio.sleep(0)

        KEPT.append(loop.create_task(act()))
    world.run(1.0)
    return "".join(seen)


def test_the_seed_chooses_the_order_of_processes():
    orders = [_interleave(seed) for seed in range(5)]
    assert orders == [_interleave(seed) for seed in range(5)]
    assert len(set(orders)) == 5


def test_a_killed_process_runs_nothing_more_not_even_finally():
    world, seen = World(1), list[Any]()
    loop = VirtualLoop(world, "one")

    async def live() -> None:
        try:
            seen.append("begun")
            await asyncio.sleep(1)
            seen.append("went on")
        finally:
            seen.append("finally")

    KEPT.append(loop.create_task(live()))
    loop.call_later(0.7, seen.append, "timer")
    world.later(0.5, setattr, loop, "is_dead", True)
    world.run(10.0)
    loop.call_soon(seen.append, "later")
    world.run(20.0)
    assert seen == ["begun"]


def test_a_planned_kill_strikes_between_two_callbacks_of_a_turn():
    world, seen = World(1), list[Any]()
    loop = VirtualLoop(world, "one")
    loop.on_kill = lambda: setattr(loop, "is_dead", True)
    loop.steps_left = 2
    for number in range(5):
        loop.call_soon(seen.append, number)
    world.run(1.0)
    assert seen == [0, 1]


def test_a_frozen_process_stands_still_while_time_passes():
    world, seen = World(1), list[Any]()
    frozen, other = VirtualLoop(world, "frozen"), VirtualLoop(world, "other")
    for loop in (frozen, other):
        loop.call_later(3.0, _note(seen, world, loop.name))
    frozen.frozen_until = 10.0
    world.run(20.0)
    assert seen == [(3.0, "other"), (10.0, "frozen")]


def test_a_thawed_process_goes_on_at_once_and_can_be_frozen_again():
    world, seen = World(1), list[Any]()
    loop = VirtualLoop(world, "one")
    for seconds in (1.0, 6.0, 11.0):
        loop.call_later(seconds, _note(seen, world, f"{seconds:g}"))
    loop.frozen_until = 10.0
    world.run(5.0)
    world.thaw(loop)
    world.run(7.0)
    loop.frozen_until = 15.0
    world.run(20.0)
    assert seen == [(5.0, "1"), (6.0, "6"), (15.0, "11")]


def test_a_broken_rule_ends_the_run():
    world = World(1)
    world.later(1.0, world.violate, "rule", "what")
    world.later(1.0, world.violate, "other rule", "what")
    with pytest.raises(Violation, match=r"^rule: what$"):
        world.run(5.0)
    assert world.now == 1.0


def test_tasks_and_futures_have_numbers_as_hashes():
    """An address as a hash would give a set of them another order in each run."""

    def hashes() -> list[int]:
        world = World(1)
        loop = VirtualLoop(world, "one")
        KEPT.append([loop.create_task(asyncio.sleep(0)) for _ in range(3)] + [loop.create_future() for _ in range(3)])
        world.run(1.0)
        return [hash(each) for each in KEPT[-1]]

    first = hashes()
    assert hashes() == first == sorted(set(first))


# -- dice


def _draw_all(only: frozenset[str] | None, place: str = "here") -> list[str]:
    world = World(3, only=only)
    for _ in range(300):
        world.chance(place).draw((("slow", 0.05), ("lost", 0.05)))
        world.chance(place).strikes(0.05, "dead")
        world.chance("there").strikes(0.1, "away")
    return [f"{step.name} {step.what}" for step in world.trace]


def test_leaving_out_one_fault_changes_no_other():
    everything = _draw_all(None)
    names = [line.split()[0] for line in everything]
    assert len(set(names)) == len(names) > 30
    for left_out in (names[0], names[7], names[-1]):
        expected = [line for line in everything if line.split()[0] != left_out]
        assert _draw_all(frozenset(names) - {left_out}) == expected
    assert _draw_all(frozenset()) == []


def test_a_place_has_dice_of_its_own():
    there = [line for line in _draw_all(None) if line.startswith("there")]
    assert there
    assert [line for line in _draw_all(None, "elsewhere") if line.startswith("there")] == there


def test_without_faults_the_dice_are_thrown_all_the_same():
    world, healthy = World(4), World(4)
    healthy.has_faults = False
    for each in (world, healthy):
        each.chance("here").draw((("slow", 1.0),))
        each.chance("here").strikes(1.0, "dead")
    assert len(world.trace) == 2
    assert healthy.trace == []
    assert world.chance("here").random() == healthy.chance("here").random()


def test_the_digest_covers_every_line_and_their_order():
    def digest(*lines: str) -> str:
        recorder = Recorder()
        for line in lines:
            recorder.add(line)
        return recorder.digest()

    many = [str(number) for number in range(FLUSH_LINES + 10)]
    assert digest(*many) == digest(*many)
    assert len({digest(), digest("a"), digest("a", "b"), digest("b", "a"), digest(*many), digest(*many[1:])}) == 6

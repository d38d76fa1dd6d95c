"""The shrinker, on failures whose causes are known."""

import random
from collections.abc import Callable, Sequence

import pytest
from simulation.running.report import command
from simulation.running.shrinking import FirstFailing, shrink
from simulation.running.worlds import Wish

STEPS = [f"step#{number}" for number in range(200)]


def _first(fails: Callable[[set[str]], bool], tried: list[int]) -> FirstFailing:
    def first_failing(candidates: Sequence[Sequence[str]]) -> int | None:
        tried.append(len(candidates))
        return next((place for place, names in enumerate(candidates) if fails(set(names))), None)

    return first_failing


def _always() -> bool:
    return True


@pytest.mark.parametrize("causes", [{"step#42"}, {"step#0", "step#199"}, {"step#7", "step#8", "step#120", "step#121"}])
def test_it_finds_the_causes_and_nothing_else(causes: set[str]):
    found = shrink(STEPS, _first(lambda names: causes <= names, []), _always)
    assert found == [name for name in STEPS if name in causes]


def test_a_failure_without_any_step_needs_none():
    assert shrink(STEPS, _first(lambda _names: True, []), _always) == []


def test_it_ends_with_steps_of_which_none_can_be_left_out():
    """Also where a step fails only beside some others, or without some others."""
    for seed in range(20):
        dice = random.Random(seed)
        pairs = [frozenset(dice.sample(STEPS, 3)) for _ in range(5)]
        spoilers = frozenset(dice.sample(STEPS, 10))

        def fails(names: set[str], pairs: list[frozenset[str]] = pairs, spoilers: frozenset[str] = spoilers) -> bool:
            return any(pair <= names for pair in pairs) and len(spoilers & names) != 3

        found = shrink(STEPS, _first(fails, []), _always)
        assert fails(set(found))
        assert not any(fails(set(found) - {name}) for name in found)


def test_without_time_it_returns_the_steps_that_failed_last():
    left = iter([True, True, False])
    tried: list[int] = []
    found = shrink(STEPS, _first(lambda names: "step#0" in names, tried), lambda: next(left))
    assert "step#0" in found
    assert len(found) == 50
    assert len(tried) == 3


def test_the_replay_command_names_everything_that_differs_from_the_default():
    assert command(Wish(7)) == "make simulate SEED=7"
    wish = Wish(7, "postgresql", 30, 8, 12.5, frozenset({"kill#10", "kill#2", "store of gateway 0.1#17"}))
    assert command(wish) == (
        "make simulate SEED=7 STORE=postgresql JOBS=30 CHAT=8 SECONDS=12.5 "
        "ONLY='kill#2, kill#10, store of gateway 0.1#17'"
    )
    assert command(Wish(7, only=frozenset())) == "make simulate SEED=7 ONLY='nothing'"

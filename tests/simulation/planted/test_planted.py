"""The planted faults still apply to the code, and the simulation notices them."""

import ast
from typing import Final

import pytest
from simulation.planted.mutations import DoesNotApply, Edit, Mutation, load
from simulation.planted.teeth import SEEDS, Bench

MUTATIONS: Final = load()
QUICK: Final = ("calls_without_an_intent", "charges_failed_jobs")
"""Planted faults that the first seeds notice early."""


@pytest.mark.parametrize("mutation", MUTATIONS.values(), ids=MUTATIONS.keys())
def test_each_planted_fault_applies_to_the_code(mutation: Mutation) -> None:
    changed = mutation.changed()

    assert changed
    for text in changed.values():
        ast.parse(text)


def test_there_are_enough_planted_faults_and_each_says_what_it_breaks() -> None:
    assert len(MUTATIONS) >= 40
    assert all(mutation.breaks.endswith(".") for mutation in MUTATIONS.values())


def test_a_text_that_is_not_there_exactly_once_does_not_apply() -> None:
    edit = Edit("gateway.py", "once", "never")

    assert edit.apply("once upon") == "never upon"
    with pytest.raises(DoesNotApply):
        edit.apply("once and once more")
    with pytest.raises(DoesNotApply):
        edit.apply("")


@pytest.mark.timeout(900)
def test_the_simulation_notices_some_planted_faults_at_once() -> None:
    caught = Bench([""]).try_all([MUTATIONS[name] for name in QUICK], seeds=20)

    assert [catch.mutation.name for catch in caught if catch.rule is None] == []


@pytest.mark.long
@pytest.mark.timeout(0)
def test_the_simulation_notices_every_planted_fault() -> None:
    chosen = [mutation for mutation in MUTATIONS.values() if mutation.store == "sqlite"]

    caught = Bench(["", ""]).try_all(chosen, seeds=SEEDS)

    assert [catch.mutation.name for catch in caught if catch.rule is None] == []

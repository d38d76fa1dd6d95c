"""The rule that no job stalls: jobs in a queue that moves may wait for long, and jobs that are left behind may not."""

from dataclasses import replace

import pytest
from simulation.rules.pace import STALL_SECONDS, PaceRules
from simulation.world import Violation, World
from store.sample_jobs import make_attempt, make_job

from penstock.domain.jobs import Job, State

TURN_SECONDS = 100.0
"""The time between two jobs that get the only seat: less than `STALL_SECONDS`."""


def _seat(job: Job, vendor: str = "sim") -> Job:
    return replace(job, state=State.RUNNING, attempts=(make_attempt(job.id, vendor=vendor),))


def _end(job: Job) -> Job:
    return replace(job, state=State.SUCCEEDED)


def _serve(world: World, rules: PaceRules, queue: list[Job]) -> None:
    """Give the only seat to each job in turn."""
    for turn, job in enumerate(queue):
        world.later(turn * TURN_SECONDS + 1.0, rules.observe, _seat(job))
        world.later((turn + 1) * TURN_SECONDS, rules.observe, _end(_seat(job)))


@pytest.fixture
def world() -> World:
    return World(1)


@pytest.fixture
def rules(world: World) -> PaceRules:
    return PaceRules(world)


def _begin(world: World, rules: PaceRules, *, beside: Job) -> None:
    """Let three jobs of one vendor get its seat in turn, beside a job that never moves."""
    queue = [make_job() for _ in range(3)]
    for job in (*queue, beside):
        rules.observe(job)
    rules.watch()
    _serve(world, rules, queue)


def test_jobs_may_wait_for_long_while_the_queue_of_their_vendor_moves(world: World, rules: PaceRules):
    queue = [make_job() for _ in range(5)]
    moved = replace(_seat(make_job(), vendor="other"), vendor="sim")  # it goes on here after another vendor refused it
    for job in (*queue, moved):
        rules.observe(job)
    rules.watch()
    _serve(world, rules, [*queue, moved])
    world.run(1000.0)
    assert rules.seated_at == 5 * TURN_SECONDS + 1.0


def test_a_job_that_is_left_behind_stalls_once_no_other_gets_a_seat(world: World, rules: PaceRules):
    left = make_job()
    _begin(world, rules, beside=left)
    with pytest.raises(Violation, match=f"no job stalls after the faults: {left.id} is queued"):
        world.run(1000.0)
    assert STALL_SECONDS < world.now - rules.seated_at < STALL_SECONDS + 15.0


def test_the_queue_of_another_vendor_excuses_no_job(world: World, rules: PaceRules):
    left = make_job(vendor="other")
    _begin(world, rules, beside=left)
    with pytest.raises(Violation, match=left.id):
        world.run(200.0)


def test_a_job_with_a_seat_stalls_although_others_get_theirs(world: World, rules: PaceRules):
    stuck = _seat(make_job())
    _begin(world, rules, beside=stuck)
    with pytest.raises(Violation, match=f"{stuck.id} is running"):
        world.run(200.0)


def test_a_job_that_gets_a_seat_again_and_again_moves_the_queue_once(world: World, rules: PaceRules):
    restless, left = make_job(), make_job()
    rules.observe(left)
    rules.watch()
    for turn in range(8):
        world.later(turn * TURN_SECONDS, rules.observe, _seat(restless))
    with pytest.raises(Violation, match=left.id):
        world.run(200.0)

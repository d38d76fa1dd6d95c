"""The pure rules of a job: no move outside the table, no end that changes, no storm of polls."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from store.sample_jobs import NOW, make_asset, make_attempt, make_job

from penstock.domain import jobs
from penstock.domain.jobs import TRANSITIONS, IllegalMove, Job, Outcome, Phase, State

ENDS = {State.SUCCEEDED, State.FAILED, State.CANCELED, State.EXPIRED}
ERROR = {"code": "upstream_error", "message": "no"}


def in_state(state: State, **fields: Any) -> Job:
    started_at = None if state is State.QUEUED else NOW
    return replace(make_job(started_at=started_at, **fields), state=state)


def reachable(state: State, seen: frozenset[State] = frozenset()) -> frozenset[State]:
    for following in TRANSITIONS[state]:
        if following not in seen:
            seen = reachable(following, seen | {following})
    return seen


def test_the_table_names_every_state_and_ends_where_the_contract_says():
    assert set(TRANSITIONS) == set(State)
    assert {state for state in State if state.done} == ENDS
    assert reachable(State.QUEUED) == set(State) - {State.QUEUED}
    for state in set(State) - ENDS:
        assert reachable(state) & ENDS, f"{state} leads nowhere"


@given(some.sampled_from(State), some.sampled_from(State))
def test_only_the_moves_of_the_table_are_made(before, after):
    job = in_state(before)
    if after in TRANSITIONS[before]:
        moved = jobs.move(job, after, progress=0.5)
        assert moved == replace(job, state=after, progress=0.5)
    else:
        with pytest.raises(IllegalMove, match=f"{before} to {after}"):
            jobs.move(job, after)


VERBS = {
    "start": lambda job: jobs.start(job, NOW),
    "order": lambda job: jobs.order(job, make_attempt(job.id)),
    "cancel": lambda job: jobs.request_cancel(job, NOW),
    "succeed": lambda job: jobs.succeed(job, NOW, (make_asset(),), ()),
    "fail": lambda job: jobs.fail(job, NOW, ERROR, Outcome.FAILED),
    "expire": lambda job: jobs.fail(job, NOW, ERROR, Outcome.ABANDONED, State.EXPIRED),
    "stop": lambda job: jobs.stop(job, NOW),
}


@given(some.lists(some.sampled_from(sorted(VERBS)), max_size=12))
def test_any_order_of_verbs_keeps_to_the_table_and_to_its_first_end(verbs):
    job = make_job()
    for verb in verbs:
        try:
            after = VERBS[verb](job)
        except IllegalMove:
            continue
        assert after.state is job.state or after.state in TRANSITIONS[job.state]
        if job.done:
            assert after == job
        job = after
    if job.done:
        assert job.phase is Phase.DONE
        assert job.finished_at == NOW
        assert job.expires_at == NOW + 86400
        assert job.attempt is None
        assert (job.eta_at, job.upstream_position) == (None, None)


# -- what each verb writes


def test_success_charges_the_estimate_once_and_keeps_each_warning_once():
    job = in_state(State.RUNNING, warnings=("old",), attempts=(make_attempt("job_1"),))
    done = jobs.succeed(job, NOW + 5, (make_asset(),), ("old", "new"))
    assert (done.final, done.charged, done.progress) == (400_000_000, True, 1.0)
    assert done.warnings == ("old", "new")
    assert done.attempts[0].outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize("estimated", [None, 0])
def test_what_has_no_price_is_not_charged(estimated):
    done = jobs.succeed(in_state(State.RUNNING, estimated=estimated), NOW, (make_asset(),), ())
    assert done.charged is (None if estimated is None else False)
    assert done.final == estimated


@pytest.mark.parametrize("verb", ["fail", "expire", "stop"])
def test_no_other_end_is_charged(verb):
    job = in_state(State.CANCELING if verb == "stop" else State.RUNNING, attempts=(make_attempt("job_1"),))
    done = VERBS[verb](job)
    assert (done.final, done.charged) == (0, False)
    assert done.attempts[0].outcome is not None


def test_an_order_is_not_written_for_a_job_that_is_being_canceled():
    job = jobs.request_cancel(in_state(State.RUNNING), NOW)
    assert jobs.order(job, make_attempt(job.id)) is job


@given(some.lists(some.sampled_from(Outcome), max_size=8))
def test_a_long_wait_leaves_no_long_list_of_attempts(outcomes):
    job = in_state(State.RUNNING)
    for number, outcome in enumerate(outcomes, 1):
        job = jobs.end_attempt(jobs.order(job, make_attempt(job.id, number)), outcome)
    job = jobs.order(job, make_attempt(job.id, len(outcomes) + 1))
    silent = {Outcome.REFUSED, Outcome.NOT_SENT}
    told = [number for number, outcome in enumerate(outcomes, 1) if outcome not in silent]
    assert [attempt.number for attempt in job.attempts] == [*told, len(outcomes) + 1]
    assert job.attempt is job.attempts[-1]


def test_asking_twice_to_cancel_changes_nothing():
    once = jobs.request_cancel(make_job(), NOW)
    assert jobs.request_cancel(once, NOW + 9) is once
    done = jobs.stop(once, NOW)
    assert jobs.request_cancel(done, NOW + 9) is done


def test_the_deadline_is_for_the_start_and_then_for_the_run():
    job = make_job()
    assert job.deadline == job.start_by
    assert jobs.start(job, NOW + 10).deadline == NOW + 10 + job.run_seconds


def test_a_job_kept_for_ever_never_expires():
    assert jobs.stop(in_state(State.CANCELING, retention=None), NOW).expires_at is None


# -- how often clients poll

moments = some.floats(min_value=0, max_value=4e9)


@given(some.sampled_from(sorted(set(State) - ENDS)), some.none() | moments, moments)
def test_an_open_job_is_polled_between_twice_a_second_and_every_five_seconds(state, eta_at, now):
    wait = jobs.poll_after_ms(in_state(state, eta_at=eta_at), now)
    assert isinstance(wait, int)
    assert 500 <= wait <= 5000


@given(moments, some.floats(min_value=0, max_value=1000), some.floats(min_value=0, max_value=1000))
def test_the_nearer_the_end_the_shorter_the_wait(now, near, far):
    near, far = sorted((near, far))
    job = in_state(State.RUNNING)
    waits = [jobs.poll_after_ms(replace(job, eta_at=now + seconds), now) for seconds in (near, far)]
    assert waits == sorted(waits)


@pytest.mark.parametrize("state", sorted(ENDS))
def test_nobody_polls_what_is_done(state):
    assert jobs.poll_after_ms(in_state(state), NOW) is None


# -- going elsewhere


def away(job: Job, outcome: Outcome = Outcome.REFUSED, number: int = 1) -> Job:
    return jobs.reroute(job, replace(make_attempt(job.id, number), outcome=outcome), "second", "m2")


@pytest.mark.parametrize("written", [True, False])
def test_who_goes_elsewhere_takes_the_story_along(written):
    job = in_state(State.RUNNING)
    job = away(jobs.order(job, make_attempt(job.id)) if written else job)
    assert (job.vendor, job.upstream_model, job.attempt) == ("second", "m2", None)
    assert [(past.vendor, past.outcome) for past in job.attempts] == [("sim", Outcome.REFUSED)]
    job = jobs.order(job, make_attempt(job.id, 2, vendor="second", model="m2"))
    assert [past.number for past in job.attempts] == [1, 2]
    assert job.attempt is job.attempts[-1]


def test_who_was_canceled_meanwhile_stays_and_tells_the_attempt():
    job = in_state(State.RUNNING)
    job = away(jobs.request_cancel(jobs.order(job, make_attempt(job.id)), NOW))
    assert (job.state, job.vendor, job.upstream_model) == (State.CANCELING, "sim", "sim_text_to_video")
    assert [past.outcome for past in job.attempts] == [Outcome.REFUSED]
    assert jobs.stop(job, NOW).state is State.CANCELED


@given(some.lists(some.sampled_from([Outcome.REFUSED, Outcome.NOT_SENT]), min_size=1, max_size=6))
def test_refusals_at_one_vendor_never_hide_those_of_another(outcomes):
    job = away(jobs.order(in_state(State.RUNNING), make_attempt("job_1")))
    for number, outcome in enumerate(outcomes, 2):
        attempt = make_attempt("job_1", number, vendor="second", model="m2")
        job = jobs.end_attempt(jobs.order(job, attempt), outcome)
    assert [(past.vendor, past.number) for past in job.attempts] == [("sim", 1), ("second", len(outcomes) + 1)]


def test_a_warning_is_told_once():
    job = jobs.warn(jobs.warn(make_job(), ["a", "b"]), ["b", "c"])
    assert job.warnings == ("a", "b", "c")

"""Events: ids that sort as positions do, and one type for every change of a job."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as some
from store.sample_jobs import make_job

from penstock.domain.events import ENDINGS, Event, EventType, event_id, parse_event_id, type_of
from penstock.domain.jobs import TRANSITIONS, State

positions = some.integers(min_value=0, max_value=(1 << 63) - 1)


@given(positions)
def test_an_id_tells_its_position(position):
    assert parse_event_id(event_id(position)) == position
    assert parse_event_id(event_id(position).upper().replace("EVT_", "evt_")) == position


@given(positions, positions)
def test_ids_sort_as_positions_do(one, other):
    assert (event_id(one) < event_id(other)) == (one < other)


@given(some.text())
def test_anything_else_is_no_event_id(text):
    assert parse_event_id(text) is None or event_id(parse_event_id(text)).removeprefix("evt_") in text.lower()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "evt_",
        "evt_1",
        "evt_" + "0" * 12,
        "evt_" + "0" * 14,
        "evt_" + "z" * 13,
        "evt_" + "i" * 13,
        "job_" + "0" * 13,
    ],
)
def test_near_misses_are_refused(text):
    assert parse_event_id(text) is None


def test_an_event_is_named_by_its_position():
    assert Event(7, EventType.QUEUED, 1, 0.0, make_job()).id == event_id(7)


MOVES = [(before, after) for before, after in product(State, State) if after in TRANSITIONS[before]]


@pytest.mark.parametrize(("before", "after"), MOVES)
def test_every_move_is_one_event(before, after):
    job = make_job()
    told = type_of(replace(job, state=before), replace(job, state=after))
    if after.done:
        assert told is ENDINGS[after]
    elif after is State.RUNNING:
        assert told is EventType.STARTED
    else:
        assert told is EventType.PROGRESS


def test_every_end_has_its_own_event_and_a_beginning_has_one():
    assert set(ENDINGS) == {state for state in State if state.done}
    assert len(set(ENDINGS.values())) == len(ENDINGS)
    assert type_of(None, make_job()) is EventType.QUEUED


@given(some.sampled_from(State))
def test_news_within_a_state_is_progress(state):
    job = replace(make_job(), state=state)
    assert type_of(job, replace(job, progress=0.5)) is EventType.PROGRESS

"""How often vendors are polled: never a storm, and never long after an order is done."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.jobs.polling import MAX_INTERVAL_SECONDS, MAX_ROUTES, Cadence, wait_before_poll

leasts = some.floats(min_value=0.01, max_value=60)
seconds = some.floats(min_value=0, max_value=100_000)
histories = some.lists(some.floats(min_value=0, max_value=10_000), max_size=20)


@given(histories, seconds, some.none() | some.floats(), leasts)
def test_no_more_often_than_the_vendor_may_be_asked_and_not_too_seldom(known, elapsed, eta, least):
    wait = wait_before_poll(known, elapsed, eta, least)
    assert least <= wait <= max(least, MAX_INTERVAL_SECONDS)


@given(histories, seconds, seconds, seconds, leasts)
def test_the_nearer_the_end_that_the_vendor_tells_the_closer_the_polls(known, elapsed, one, other, least):
    near, far = sorted((one, other))
    waits = [wait_before_poll(known, elapsed, eta, least) for eta in (near, far)]
    assert waits == sorted(waits)
    assert wait_before_poll(known, elapsed, 0, least) == least


@given(some.lists(some.floats(min_value=1, max_value=3600), min_size=5, max_size=20), some.floats(0.05, 5))
def test_an_order_that_takes_as_long_as_one_before_is_seen_soon_after_its_end(known, least):
    for length in known:
        now, polls = 0.0, 0
        while now < length:
            now += wait_before_poll(known, now, None, least)
            polls += 1
        assert now - length <= max(least, length / 19)
        assert polls <= 2 + length / MAX_INTERVAL_SECONDS + 25 * math.log(1 + length / min(known)) + length / least


@given(some.floats(min_value=0.05, max_value=5), some.floats(min_value=1, max_value=3600))
def test_where_nothing_is_known_it_is_seen_after_a_tenth_of_its_time(least, length):
    now = 0.0
    while now < length:
        now += wait_before_poll((), now, None, least)
    assert now - length <= max(least, length / 9)


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_an_odd_word_harms_nobody(odd):
    assert 2 <= wait_before_poll((), 5, odd, 2) <= MAX_INTERVAL_SECONDS


def test_each_way_has_its_own_history_and_all_of_them_are_bounded():
    cadence = Cadence()
    for _ in range(10):
        cadence.learn(("slow", "m"), 100)
        cadence.learn(("quick", "m"), 2)
    assert cadence.wait(("slow", "m"), 1, None, 0.1) == MAX_INTERVAL_SECONDS
    assert cadence.wait(("quick", "m"), 1, None, 0.1) == pytest.approx(0.8)
    for number in range(2 * MAX_ROUTES):
        cadence.learn(("many", str(number)), 1)
    assert cadence.wait(("slow", "m"), 1, None, 0.1) == pytest.approx(0.1), "the oldest is forgotten"

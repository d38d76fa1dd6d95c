"""Rate limits of keys: buckets never give more than they hold, waits that they tell are true, tokens are settled."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.errors import RateLimited
from penstock.keys import ApiKey, Limits
from penstock.rates import MAX_KEYS, Bucket, Rates, write_duration

EPSILON = 1e-6
limits = some.integers(1, 100_000)
pauses = some.floats(0, 120)


def make_key(public_id: str = "k", requests: int | None = None, tokens: int | None = None) -> ApiKey:
    return ApiKey(
        public_id=public_id,
        account_id="a",
        account="default",
        name="test",
        secret_hash=b"",
        lineage=public_id,
        limits=Limits(requests_per_minute=requests, tokens_per_minute=tokens),
    )


# -- buckets


@given(limits, some.lists(some.tuples(pauses, some.floats(0, 1)), min_size=1, max_size=40))
def test_in_no_window_is_more_taken_than_the_limit_and_what_flows_in(limit, asks):
    now, taken = 50.0, list[tuple[float, float]]()
    bucket = Bucket(limit, now)
    for pause, share in asks:
        now += pause
        amount = share * limit
        if bucket.wait(amount, now) == 0:
            bucket.take(amount, now)
            taken.append((now, amount))
    for start, (began, _) in enumerate(taken):
        total = 0.0
        for at, amount in taken[start:]:
            total += amount
            assert total <= (limit + (at - began) * limit / 60) * (1 + EPSILON)


@given(limits, some.lists(some.tuples(pauses, some.floats(-2, 3)), max_size=20), some.floats(0, 2))
def test_a_wait_is_true_and_not_too_long(limit, takes, share):
    now = 0.0
    bucket = Bucket(limit, now)
    for pause, part in takes:
        now += pause
        bucket.take(part * limit, now)
        assert bucket.level(now) <= limit
    amount = share * limit
    wait = bucket.wait(amount, now)
    assert wait >= 0
    if wait > 0.001:
        assert bucket.wait(amount, now + wait - 0.001) > 0
    assert bucket.wait(amount, now + wait + 0.001) == 0


def test_what_is_larger_than_the_bucket_needs_a_full_one_and_is_owed():
    bucket = Bucket(600, 0)
    bucket.take(1, 0)
    assert bucket.wait(9000, 0) == pytest.approx(0.1)
    assert bucket.wait(9000, 0.1) == 0
    bucket.take(9000, 0.1)
    assert bucket.level(0.1) == -8400
    assert bucket.wait(1, 0.1) == pytest.approx(840.1)


def test_a_clock_that_goes_back_gives_nothing():
    bucket = Bucket(60, 100)
    bucket.take(60, 100)
    assert bucket.level(50) == 0
    assert bucket.level(101) == pytest.approx(1)


@given(limits, pauses, some.floats(0, 2))
def test_headers_say_what_is_left_and_when_all_is_back(limit, pause, share):
    bucket = Bucket(limit, 0)
    bucket.take(share * limit, 0)
    told = dict(bucket.describe(pause, "requests"))
    assert list(told) == [f"x-ratelimit-{word}-requests" for word in ("limit", "remaining", "reset")]
    assert told["x-ratelimit-limit-requests"] == str(limit)
    left = int(told["x-ratelimit-remaining-requests"])
    assert 0 <= left <= limit
    assert left == 0 or bucket.wait(left, pause) == 0
    reset = read_duration(told["x-ratelimit-reset-requests"])
    assert bucket.level(pause + reset + 0.001) == limit
    assert left == limit or reset > 0


# -- durations


def read_duration(text: str) -> float:
    if found := re.fullmatch(r"(\d{1,3})ms", text):
        return int(found[1]) / 1000
    found = re.fullmatch(r"(?:([1-9]\d*)m)?(\d{1,2}(?:\.\d{0,2}[1-9])?)s", text)
    assert found, text
    assert float(found[2]) < 60
    return int(found[1] or 0) * 60 + float(found[2])


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *[(0, "0ms"), (0.012, "12ms"), (0.0001, "1ms"), (1, "1s"), (1.5, "1.5s"), (10, "10s"), (59.9999, "1m0s")],
        *[(60, "1m0s"), (360, "6m0s"), (61.25, "1m1.25s"), (3600, "60m0s")],
    ],
)
def test_durations_are_written_as_clients_know_them(seconds, text):
    assert write_duration(seconds) == text


@given(some.floats(0, 1e6))
def test_durations_are_never_too_short(seconds):
    assert seconds <= read_duration(write_duration(seconds)) + EPSILON
    assert read_duration(write_duration(seconds)) <= seconds + 0.001 + EPSILON


# -- keys


def test_a_key_without_limits_is_not_counted():
    assert Rates().take(make_key(), 10**9, 0) is None


def test_requests_are_counted_and_the_wait_is_told():
    rates, key = Rates(), make_key(requests=3)
    leases = [rates.take(key, 5, 100.0) for _ in range(3)]
    assert [lease.describe(100.0)[1][1] for lease in leases if lease] == ["0"] * 3
    with pytest.raises(RateLimited) as caught:
        rates.take(key, 5, 110.0)
    error = caught.value
    assert error.retry_after == pytest.approx(10)
    assert "3 requests per minute" in error.message
    assert "try again in 10s" in error.message
    assert error.headers["x-ratelimit-remaining-requests"] == "0"
    assert rates.take(key, 5, 120.01) is not None


def test_a_refused_request_takes_nothing():
    rates, key = Rates(), make_key(requests=10, tokens=100)
    rates.take(key, 100, 0)
    for _ in range(20):
        with pytest.raises(RateLimited) as caught:
            rates.take(key, 50, 0)
    assert caught.value.headers["x-ratelimit-remaining-requests"] == "9"
    assert caught.value.retry_after == pytest.approx(30)
    assert "100 tokens per minute" in caught.value.message


@given(some.integers(0, 300), some.lists(some.integers(0, 300), min_size=1, max_size=5))
def test_tokens_are_settled_up_and_down(reserved, settled):
    rates, key = Rates(), make_key(tokens=200)
    lease = rates.take(key, reserved, 0)
    assert lease is not None
    for tokens in settled:  # the last one counts
        lease.settle(tokens, 0)
        assert dict(lease.describe(0))["x-ratelimit-remaining-tokens"] == str(max(0, 200 - tokens))


def test_what_was_used_beyond_the_limit_is_owed():
    rates, key = Rates(), make_key(tokens=60)
    lease = rates.take(key, 1, 0)
    assert lease is not None
    lease.settle(180, 0)
    with pytest.raises(RateLimited) as caught:
        rates.take(key, 10, 0)
    assert caught.value.retry_after == pytest.approx(130)
    assert rates.take(key, 10, 130.1) is not None


def test_keys_do_not_share_their_limits():
    rates = Rates()
    for name in "abc":
        rates.take(make_key(name, requests=1), 1, 0)
        with pytest.raises(RateLimited):
            rates.take(make_key(name, requests=1), 1, 0)


def test_a_changed_limit_counts_at_once():
    rates = Rates()
    rates.take(make_key(requests=1), 1, 0)
    for _ in range(5):
        rates.take(make_key(requests=5), 1, 0)
    with pytest.raises(RateLimited):
        rates.take(make_key(requests=5), 1, 0)


def test_the_key_used_longest_ago_is_forgotten_first():
    rates, busy = Rates(), make_key("busy", requests=2)
    rates.take(busy, 1, 0)
    for number in range(MAX_KEYS):
        rates.take(make_key(str(number), requests=1), 1, 0)
        if number == MAX_KEYS // 2:
            rates.take(busy, 1, 0)
    with pytest.raises(RateLimited):
        rates.take(busy, 1, 0)


@given(
    some.integers(1, 20),
    some.integers(1, 2000),
    some.lists(some.tuples(some.floats(0, 20), some.integers(0, 400), some.integers(0, 400)), max_size=40),
)
def test_a_key_never_gets_more_than_its_limits(requests, tokens, asks):
    rates, key, now = Rates(), make_key(requests=requests, tokens=tokens), 0.0
    taken: list[tuple[float, int]] = []
    for pause, guess, real in asks:
        now += pause
        try:
            lease: Any = rates.take(key, guess, now)
        except RateLimited as error:
            now += (error.retry_after or 0) + 0.001
            lease = rates.take(key, guess, now)  # the wait that was told is enough
        lease.settle(real, now)
        taken.append((now, real))
    for start, (began, _) in enumerate(taken):
        for end, (at, _) in enumerate(taken[start:], start):
            assert end - start + 1 <= requests + (at - began) * requests / 60 + EPSILON
            before = sum(real for _, real in taken[start:end])  # the last one may go over
            assert before <= tokens + 400 + (at - began) * tokens / 60 + EPSILON

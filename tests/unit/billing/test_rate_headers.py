"""How limits per minute are told: headers that are true, and durations as clients know them, never too short."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.billing.rate_headers import describe_bucket, write_duration

EPSILON = 1e-6
limits = some.integers(1, 100_000)


@given(limits, some.floats(-2, 1))
def test_headers_say_what_is_left_and_when_all_is_back(limit, share):
    level = share * limit
    told = dict(describe_bucket("requests", limit, level))
    assert list(told) == [f"x-ratelimit-{word}-requests" for word in ("limit", "remaining", "reset")]
    assert told["x-ratelimit-limit-requests"] == str(limit)
    left = int(told["x-ratelimit-remaining-requests"])
    assert 0 <= left <= limit
    assert left <= max(0, level) + EPSILON < left + 1 + EPSILON
    reset = read_duration(told["x-ratelimit-reset-requests"])
    assert level + reset * limit / 60 >= limit - EPSILON
    assert left == limit or reset > 0


def test_a_full_bucket_has_nothing_to_wait_for():
    assert [value for _, value in describe_bucket("tokens", 600, 600.0)] == ["600", "600", "0ms"]


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

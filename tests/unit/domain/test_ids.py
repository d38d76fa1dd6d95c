"""Ids sort by time, never repeat and cannot be guessed."""

import re
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.ids import ALPHABET, encode, first_id, new_id, timestamp

SHAPE = re.compile(rf"job_[{ALPHABET}]{{26}}")
MOMENTS = st.floats(0, 4e9)


def test_an_id_says_what_it_names():
    assert SHAPE.fullmatch(new_id("job"))
    assert new_id("file").startswith("file_")


def test_ids_made_one_after_the_other_sort_in_that_order():
    made = [new_id("job") for _ in range(10_000)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)


def test_ids_made_in_many_threads_are_unique_and_sort_within_each():
    with ThreadPoolExecutor(8) as threads:
        series = list(threads.map(lambda _: [new_id("job") for _ in range(2_000)], range(8)))
    assert all(made == sorted(made) for made in series)
    assert len({made for each in series for made in each}) == 16_000


def test_half_of_an_id_is_random():
    tails = {new_id("job")[-12:] for _ in range(1_000)}
    assert len(tails) == 1_000


def test_an_id_lies_between_the_moments_around_it():
    before = time.time()
    made = new_id("job")
    assert first_id("job", before - 0.001) < made < first_id("job", time.time() + 1)


@given(MOMENTS, MOMENTS)
def test_first_ids_sort_as_their_moments_do(one, other):
    earlier, later = sorted((one, other))
    assert first_id("job", earlier) <= first_id("job", later)
    assert SHAPE.fullmatch(first_id("job", one))


def test_a_moment_before_the_epoch_is_before_every_id():
    assert first_id("job", -5) == first_id("job", 0) < new_id("job")


@given(st.integers(0, 2**64), st.integers(0, 2**64))
def test_encoding_keeps_order_and_tells_numbers_apart(one, other):
    assert (encode(one, 14) < encode(other, 14)) == (one < other)
    assert set(encode(one, 14)) <= set(ALPHABET)


@given(st.floats(0, 4e9))
def test_a_timestamp_is_rfc_3339_in_utc(moment):
    text = timestamp(moment)
    assert text is not None
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", text)
    assert abs(datetime.fromisoformat(text).timestamp() - moment) <= 0.001
    assert datetime.fromisoformat(text).tzinfo == UTC


def test_no_moment_has_no_timestamp():
    assert timestamp(None) is None
    assert timestamp(0) == "1970-01-01T00:00:00.000Z"

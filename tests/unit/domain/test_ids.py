"""Ids sort by time, never repeat and cannot be guessed."""

import random
import re
import subprocess
import sys
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.ids import ALPHABET, IdSource, encode, first_id, new_id, timestamp, use

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


# -- another source


@contextmanager
def used(source: IdSource) -> Generator[None]:
    previous = use(source)
    try:
        yield
    finally:
        assert use(previous) is source


def make_source(seed: int, nanoseconds: int = 10**18) -> IdSource:
    return IdSource(lambda: nanoseconds, random.Random(seed).randbytes)  # noqa: S311  a test's own


def draw(source: IdSource, number: int = 1_000) -> list[str]:
    with used(source):
        return [new_id("job") for _ in range(number)]


def test_a_source_of_the_same_time_and_bits_makes_the_same_ids():
    assert draw(make_source(1)) == draw(make_source(1))


def test_ids_of_sources_with_other_bits_differ():
    assert not set(draw(make_source(1))) & set(draw(make_source(2)))


def test_sources_that_take_turns_do_not_change_each_other():
    sources = [make_source(1), make_source(2)]
    pairs = [(*draw(sources[0], 1), *draw(sources[1], 1)) for _ in range(1_000)]
    assert [list(made) for made in zip(*pairs, strict=True)] == [draw(make_source(1)), draw(make_source(2))]


def test_after_the_block_ids_come_from_the_former_source():
    before = new_id("job")
    later = draw(make_source(1, 2 * 10**18), 1)[0]
    assert before < new_id("job") < later


@given(st.lists(st.integers(0, 2**62), min_size=1))
def test_ids_sort_and_differ_whatever_the_clock_shows(moments):
    clock = iter(moments)
    made = draw(IdSource(lambda: next(clock)), len(moments))
    assert made == sorted(set(made))
    assert made[0] >= first_id("job", moments[0] // 1000 / 1_000_000 - 1)


FORK = """
import os
from penstock.domain.ids import IdSource, new_id, use
source = IdSource(lambda: 10**18)
former = use(source)
new_id("job")  # the pool is full
use(former)
if child := os.fork():
    assert os.waitpid(child, 0)[1] == 0
use(source)
print(new_id("job"))
"""


def test_a_forked_process_draws_bits_of_its_own():
    """Also from a source that was not in use at that moment."""
    ran = subprocess.run(  # noqa: S603  our own text
        [sys.executable, "-c", FORK], capture_output=True, text=True, check=True, timeout=60
    )
    one, other = ran.stdout.split()
    assert one[:-13] == other[:-13], "the clock stands still"
    assert one != other


# -- order


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

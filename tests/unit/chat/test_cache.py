"""The response cache: bounded by bytes, the answer used longest ago goes first, nobody gets another account's."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as some

from penstock.chat import request
from penstock.chat.cache import MIN_CACHED_ANSWERS, CachedAnswer, ChatCache, cache_key
from penstock.domain.chat import Ask

ROOM = 1600
LARGEST = ROOM // MIN_CACHED_ANSWERS
MESSAGES = [{"role": "user", "content": "Hello"}]


def answer(size: int = 10, until: float = 100.0, letter: bytes = b"x") -> CachedAnswer:
    return CachedAnswer(letter * size, "vendor", until)


def make_ask(**fields: Any) -> Ask:
    return request.read(json.dumps({"model": "m", "messages": MESSAGES, **fields}).encode())


# -- what is kept


def test_an_answer_is_found_until_its_time_is_over():
    cache = ChatCache()
    assert cache.get(b"a", 0) is None
    cache.put(b"a", answer(until=10), ROOM)
    assert cache.get(b"a", 9.99) == answer(until=10)
    assert cache.get(b"a", 10) is None
    assert cache.get(b"a", 0) is None, "it is gone for good"


def test_an_answer_that_is_too_large_is_not_kept():
    cache = ChatCache()
    cache.put(b"fits", answer(LARGEST), ROOM)
    cache.put(b"large", answer(LARGEST + 1), ROOM)
    assert cache.get(b"fits", 0)
    assert cache.get(b"large", 0) is None


def test_the_answer_used_longest_ago_goes_first():
    cache = ChatCache()
    places = [b"%d" % number for number in range(MIN_CACHED_ANSWERS)]
    for place in places:
        cache.put(place, answer(LARGEST), ROOM)
    assert cache.get(places[0], 0)
    cache.put(b"new", answer(LARGEST), ROOM)
    kept = [place for place in [*places, b"new"] if cache.get(place, 0)]
    assert kept == [places[0], *places[2:], b"new"]


def test_an_answer_takes_the_place_of_the_one_before():
    cache = ChatCache()
    for letter in b"abc" * 100:
        cache.put(b"a", answer(LARGEST, letter=bytes([letter])), ROOM)
    cache.put(b"b", answer(LARGEST), ROOM)
    found = cache.get(b"a", 0)
    assert found
    assert found.body == b"c" * LARGEST
    assert cache.get(b"b", 0)


def test_less_room_counts_from_the_next_answer_on():
    cache = ChatCache()
    for number in range(MIN_CACHED_ANSWERS):
        cache.put(b"%d" % number, answer(LARGEST), ROOM)
    cache.put(b"new", answer(10), 2 * LARGEST)
    assert cache.get(b"new", 0)
    assert [number for number in range(MIN_CACHED_ANSWERS) if cache.get(b"%d" % number, 0)] == [MIN_CACHED_ANSWERS - 1]


@given(
    some.lists(
        some.tuples(some.integers(0, 30), some.integers(0, LARGEST + 20), some.integers(0, 50), some.booleans()),
        max_size=200,
    )
)
def test_it_never_holds_more_than_its_room(steps):
    cache, latest = ChatCache(), dict[bytes, CachedAnswer]()
    for now, (number, size, lasts, asks) in enumerate(steps):
        place = b"%d" % number
        if asks:
            found = cache.get(place, now)
            assert found is None or (found == latest[place] and found.until > now)
        else:
            kept = answer(size, now + lasts, bytes([now % 256]))
            cache.put(place, kept, ROOM)
            if size <= LARGEST:
                latest[place] = kept
                assert cache.get(place, now) is (kept if lasts else None)
    found_all = [cache.get(b"%d" % number, 0) for number in range(31)]
    assert sum(len(found.body) for found in found_all if found) <= ROOM


# -- the place of an answer


def test_the_order_of_fields_does_not_matter():
    one = request.read(b'{"model":"m","messages":[{"role":"user"}],"n":1,"seed":7}')
    two = request.read(b'{"seed":7,"n":1,"messages":[{"role":"user"}],"model":"m"}')
    assert cache_key("a", one) == cache_key("a", two)


def test_null_is_absent_and_a_whole_float_is_an_integer():
    assert cache_key("a", make_ask(n=None, stop=None)) == cache_key("a", make_ask())
    assert cache_key("a", make_ask(n=1.0)) == cache_key("a", make_ask(n=1))


def test_every_field_and_the_account_tell_answers_apart():
    asks = [
        {},
        {"n": 1},
        {"n": 2},
        {"stream": True},
        {"stream": False},
        {"seed": 1},
        {"temperature": 1},
        {"model": "o"},
    ]
    asks += [{"stream": True, "stream_options": {"include_usage": flag}} for flag in (True, False)]
    asks += [{"messages": [{"role": "user", "content": "hello"}]}, {"user": "x"}, {"invented": 1}, {"": 1}]
    places = {cache_key(account, make_ask(**fields)) for account in ("a", "b") for fields in asks}
    assert len(places) == 2 * len(asks)


names = some.text(some.characters(exclude_categories=["Cs"]), max_size=4).filter(lambda name: name not in CHECKED)
CHECKED = {"model", "messages", "stream_options", *request.CHECKS}
fields_of = some.dictionaries(names, some.integers(0, 20) | some.text("ab", max_size=3), max_size=4)


@given(some.tuples(some.sampled_from("abc"), fields_of), some.tuples(some.sampled_from("abc"), fields_of))
def test_only_the_same_request_of_the_same_account_has_the_same_place(one, two):
    (account, fields), (other, others) = one, two
    same = account == other and fields == others
    assert (cache_key(account, make_ask(**fields)) == cache_key(other, make_ask(**others))) is same

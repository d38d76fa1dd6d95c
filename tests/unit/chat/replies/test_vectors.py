"""Vectors in replies: base64 and numbers hold the very same bits, and no reply that lacks something is passed on."""

import base64
import json
import math
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.chat.doors.embedding_request import read_embedding_request
from penstock.chat.replies.broken import Broken, Malformed
from penstock.chat.replies.vectors import pass_vectors, to_base64, to_floats
from penstock.domain.chat import Ask, Usage

SINGLE = some.floats(width=32, allow_nan=False, allow_infinity=False)
VECTORS = some.lists(SINGLE, min_size=1, max_size=40)
TEXT = some.text(some.characters(exclude_categories=["Cs"]), min_size=1)
INPUTS = some.one_of(TEXT, some.lists(TEXT, min_size=1), some.lists(some.integers(0), min_size=1))


def ask_for(count: int, encoding: str | None = None) -> Ask:
    body = {"model": "m", "input": ["x"] * count, "encoding_format": encoding}
    return read_embedding_request(json.dumps(body).encode())


def reply_of(vectors: list[Any], **more: Any) -> bytes:
    data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
    usage = {"prompt_tokens": 3, "total_tokens": 3}
    return json.dumps({"object": "list", "model": "theirs", "data": data, "usage": usage, **more}).encode()


def read(body: bytes) -> list[Any]:
    return [item["embedding"] for item in json.loads(body)["data"]]


def bits_of(vector: list[float]) -> bytes:
    return struct.pack(f"<{len(vector)}f", *vector)


@given(VECTORS)
def test_base64_and_numbers_are_equal_to_the_last_bit(vector: list[float]):
    packed = to_base64(vector)
    assert base64.b64decode(packed) == bits_of(vector)
    assert bits_of(to_floats(packed)) == bits_of(vector)
    assert [math.copysign(1, number) for number in to_floats(packed)] == [math.copysign(1, n) for n in vector]
    assert to_base64(to_floats(packed)) == packed


@given(some.lists(VECTORS.filter(lambda vector: len(vector) < 20), min_size=1, max_size=4))
def test_the_other_form_has_the_same_bits_after_the_way_through_json(vectors: list[list[float]]):
    width = min(map(len, vectors))
    vectors = [vector[:width] for vector in vectors]
    packed, usage, characters = pass_vectors(reply_of(vectors), ask_for(len(vectors), "base64"))
    assert [base64.b64decode(text) for text in read(packed)] == [bits_of(vector) for vector in vectors]
    assert (usage, characters) == (Usage(3), 0)
    numbers, _, _ = pass_vectors(packed, ask_for(len(vectors)))
    assert [bits_of(vector) for vector in read(numbers)] == [bits_of(vector) for vector in vectors]


@pytest.mark.parametrize(("vector", "encoding"), [([0.1, 0.2], "float"), (to_base64([0.1, 0.2]), "base64")])
def test_a_reply_in_the_right_form_keeps_every_byte(vector: Any, encoding: str):
    body = reply_of([vector, vector], more={"kept": [1.0, "x"]})
    assert pass_vectors(body, ask_for(2, encoding))[0] is body


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": "3"}, {"prompt_tokens": None, "total_tokens": None}, 3])
def test_tokens_that_nobody_counted_are_estimated(usage: Any):
    ask = ask_for(1)
    body, counted, _ = pass_vectors(reply_of([[1.0]], usage=usage), ask)
    assert counted is None
    assert json.loads(body)["usage"] == {"prompt_tokens": ask.prompt, "total_tokens": ask.prompt}


@pytest.mark.parametrize(
    "vectors",
    [
        [[1.0]],
        [[1.0], [1.0], [1.0]],
        [[1.0], [1.0, 2.0]],
        [[], []],
        ["", ""],
        ["AAAA", "AAAA"],
        [to_base64([1.0]), "AAA=AAA="],
        [base64.b64encode(struct.pack("<f", math.nan)).decode()] * 2,
        [[None], [None]],
        [["1"], ["1"]],
        [[[1.0]], [[1.0]]],
        [None, None],
    ],
    ids=str,
)
def test_what_is_no_vector_for_each_text_is_not_passed_on(vectors: list[Any]):
    with pytest.raises(Malformed):
        pass_vectors(reply_of(vectors), ask_for(2))


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"data":[]}', b"\xff", b"null", b'{"data":{}}'])
def test_what_is_no_reply_is_not_passed_on(body: bytes):
    with pytest.raises(Malformed):
        pass_vectors(body, ask_for(1))


@given(some.binary(max_size=40))
def test_any_bytes_are_either_read_or_refused(body: bytes):
    with pytest.raises((Malformed, Broken)):
        pass_vectors(body, ask_for(1))


def test_an_error_in_a_good_status_is_an_error():
    with pytest.raises(Broken):
        pass_vectors(b'{"error":{"message":"no"}}', ask_for(1))


def test_a_mark_at_the_beginning_is_no_part_of_it():
    body = reply_of([[1.0]])
    assert pass_vectors(b"\xef\xbb\xbf" + body, ask_for(1))[0] == body


# -- requests


@given(INPUTS)
def test_tokens_are_estimated_within_what_a_body_can_hold(given: Any):
    ask = read_embedding_request(json.dumps({"model": "m", "input": given}).encode())
    assert 1 <= ask.prompt <= ask.size
    assert (ask.max_tokens, ask.stream) == (0, False)
    if isinstance(given, list) and isinstance(given[0], int):
        assert ask.prompt == len(given)

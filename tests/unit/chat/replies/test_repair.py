"""Chunks and replies that fall short of OpenAI's dialect: lame ones are mended, malformed ones left out and counted."""

import json
from typing import Any

import pytest
from chat_chunks import (
    COUNTS,
    DONE,
    END,
    HEAD,
    Json,
    characters_in,
    choice_of,
    chunk_of,
    good_chunks,
    make_ask,
    make_stream,
    read,
    read_fault,
    read_whole,
    run,
    text_of,
    texts,
    write,
)
from hypothesis import given
from hypothesis import strategies as some

from penstock.chat.replies.broken import Broken, Malformed
from penstock.chat.replies.chunks.completion import pass_whole
from penstock.domain.chat import Usage

# -- lame and malformed chunks

JUNK: list[bytes] = [
    b"{not json",
    b"17",
    b"null",
    b'"text"',
    b"",
    b'["\xff"]',
    b'{"type":"ping"}',
    b'{"choices":null}',
    b'{"choices":[],"usage":' + b'{"a_tokens_details":' * 900 + b"1" + b"}" * 900 + b"}",
]
"""Nothing of an answer can be in it."""
UNREADABLE: list[bytes] = [
    b'{"choices":[{"index":0,"delta":{"content":"a',
    b'{"choices":[{"index":0,"delta":[1],"finish_reason":null}]}',
    b'{"choices":{"index":0,"delta":{"content":"a"},"finish_reason":null}}',
    b'{"choices":["a"]}',
    b'{"choices":[{"index":0,"delta":{"content":[5]},"finish_reason":null}]}',
    b'{"choices":[{"index":0,"delta":{"tool_calls":[5]},"finish_reason":null}]}',
    b'{"choices":[{"index":0,"delta":{"tool_calls":"f()"},"finish_reason":null}]}',
    b'{"choices":' + b"[" * 100_000 + b"]" * 100_000 + b"}",  # no Python reads so deep
    b'{"content":"a","stop":false}',
    b'{"response":"a","done":false}',
    b'{"data":{"choices":[{"index":0,"delta":{"content":"a"}}]}}',
]
"""Some of the answer may be in it, and nobody knows how."""


@given(good_chunks(), some.lists(some.tuples(some.integers(0, 20), some.sampled_from(JUNK)), max_size=6), some.data())
def test_events_that_are_no_chunks_are_left_out_and_counted(chunks, junk, data):
    upstream: list[Any] = [*chunks]
    for place, bad in junk:
        upstream.insert(place % len(chunks), bad)
    stream = make_stream()
    places = data.draw(some.lists(some.integers(0, 20_000), max_size=5))
    assert read_whole(run(stream, write(*upstream) + DONE, places)) == chunks
    # An object without a choice is no loss.
    assert stream.malformed == sum(not bad.startswith(b'{"') for _, bad in junk)
    assert stream.characters == characters_in(chunks)


@pytest.mark.parametrize("first", JUNK, ids=lambda bad: bad[:40])
def test_a_first_event_that_is_no_chunk_says_nothing_of_the_rest(first):
    stream = make_stream()
    assert read_whole(run(stream, write(first, text_of("Hi"), END) + DONE)) == [text_of("Hi"), END]


@pytest.mark.parametrize("bad", UNREADABLE, ids=lambda bad: bad[:60])
def test_a_chunk_that_cannot_be_read_ends_the_stream_as_broken(bad):
    """Its text would be missing in an answer that looks whole."""
    stream = make_stream()
    out = run(stream, write(text_of("Hi"), bad, text_of("there"), END) + DONE)
    assert read(out) == [text_of("Hi")]
    assert isinstance(stream.broken, Malformed)


anything = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
named = some.sampled_from(
    [*HEAD, "choices", "usage", "index", "delta", "message", "content", "tool_calls", "finish_reason", "reasoning"]
)
likely = some.recursive(
    some.none() | some.booleans() | some.integers(-2, 2) | texts,
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(named, inner, max_size=5),
    max_leaves=20,
)


def check_chunk(chunk: Json) -> None:
    """What every client relies on in every chunk; the head is looked for on the first one only."""
    for choice in chunk["choices"]:
        assert type(choice["index"]) is int
        assert isinstance(choice["delta"], dict)
        assert choice["finish_reason"] is None or (choice["finish_reason"] and isinstance(choice["finish_reason"], str))
        assert isinstance(choice["delta"].get("content"), str | None)


@given(some.lists(some.one_of(likely, anything), max_size=5), some.booleans(), some.booleans())
def test_no_json_at_all_breaks_a_stream_or_its_output(chunks, include_usage, begins_well):
    stream = make_stream(include_usage=include_usage)
    upstream = [json.dumps(chunk).encode() for chunk in chunks]
    out = run(stream, write(*([text_of("Hi")] * begins_well), *upstream) + DONE)
    for chunk in read(out.removesuffix(DONE)):
        check_chunk(chunk)
    for place, _ in enumerate(chunks):  # and not the mending of a whole reply either
        try:
            body, _, _ = pass_whole(upstream[place], make_ask(), "chatcmpl-ours", 1234)
        except (Malformed, Broken):
            continue
        assert json.loads(body)["choices"]


@given(some.binary(max_size=300), some.lists(some.integers(0, 300), max_size=5))
def test_no_bytes_at_all_break_a_stream_or_make_it_whole(text, places):
    stream = make_stream()
    out = run(stream, text, places)
    assert not stream.complete
    assert out == b""


def test_an_end_without_a_beginning_is_no_answer():
    stream = make_stream(include_usage=True)
    assert run(stream, DONE) == b""
    assert not stream.complete


LAME: list[tuple[Json, Json]] = [
    ({"delta": {"content": "a"}}, choice_of({"content": "a"})),
    ({"index": 0, "delta": {"content": "a"}, "finish_reason": ""}, choice_of({"content": "a"})),
    ({"index": 0, "delta": {"content": [{"type": "text", "text": "a"}, {"text": "b"}]}}, choice_of({"content": "ab"})),
    ({"index": 0, "delta": None, "finish_reason": "stop"}, choice_of({}, "stop")),
    ({"index": 0, "finish_reason": "stop"}, choice_of({}, "stop")),
    ({"index": 0, "delta": {"reasoning": "a"}}, choice_of({"reasoning": "a", "reasoning_content": "a"})),
    (
        {"index": 0, "delta": {"tool_calls": [{"id": "c", "function": {"name": "f", "arguments": ""}}]}},
        choice_of(
            {"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}]}
        ),
    ),
    ({"index": "0", "delta": {"content": "a"}}, choice_of({"content": "a"})),
    ({"index": [], "delta": {"content": "a"}}, choice_of({"content": "a"})),
    ({"index": 0, "delta": "a"}, choice_of({"content": "a"})),
    ({"index": 0, "text": "a"}, choice_of({"content": "a"})),
    ({"index": 0, "message": {"content": "a"}}, choice_of({"content": "a"})),
    ({"index": 0, "delta": {"content": 5}}, choice_of({"content": "5"})),
    ({"index": 0, "delta": {"content": ["a", {"text": "b"}]}}, choice_of({"content": "ab"})),
    ({"index": 0, "delta": {"content": {"type": "text", "text": "a"}}}, choice_of({"content": "a"})),
    (
        {"delta": {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "a"}]}]}},
        choice_of({"content": "", "reasoning_content": "a"}),
    ),
]


@pytest.mark.parametrize("has_head", [False, True])
@pytest.mark.parametrize(("lame", "mended"), LAME)
def test_what_falls_short_is_mended(lame, mended, has_head):
    stream = make_stream()
    head = HEAD if has_head else {}
    once = [] if "tool_calls" in str(lame) else [{**head, "choices": [lame]}]  # a call's name is passed once
    found = read(stream.feed(write(*once, {**head, "choices": [lame]})))[-1]
    expected = mended if "stop" not in str(lame) else {**mended, "finish_reason": None}  # said twice
    assert [{**choice, "logprobs": None} for choice in found["choices"]] == [expected]
    ours = {"id": "chatcmpl-ours", "object": "chat.completion.chunk", "created": 1234, "model": "fast-chat"}
    assert {name: found[name] for name in HEAD} == (HEAD if has_head else ours)
    assert stream.malformed == 0


@pytest.mark.parametrize("lame", [{"created": 1741569952.25}, {"id": 7}, {"model": None}, {"object": ""}, {"id": [1]}])
def test_a_head_of_another_kind_is_mended(lame):
    head = {**HEAD, **lame}
    ours = {"id": "chatcmpl-ours", "object": "chat.completion.chunk", "created": 1234, "model": "fast-chat"}
    if "object" in lame:
        head["created"] = 1.5  # an empty text alone is not looked for
    found = read(make_stream().feed(write({**head, "choices": [choice_of({"content": "a"})]})))[0]
    wrong = {name for name in HEAD if head[name] != HEAD[name]}
    assert {name: found[name] for name in HEAD} == {name: ours[name] if name in wrong else HEAD[name] for name in HEAD}
    whole = json.dumps({**reply_of(), **lame}).encode()
    told = json.loads(pass_whole(whole, make_ask(), "chatcmpl-ours", 1234)[0])
    assert isinstance(told["id"], str)
    assert isinstance(told["created"], int)
    assert isinstance(told["model"], str)


def test_a_finish_reason_is_passed_once_for_each_choice():
    ends = [chunk_of(choice_of({}, "stop", index)) for index in (0, 1, 0, 1)]
    found = read_whole(run(make_stream(), write(text_of("a"), text_of("b", 1), *ends) + DONE))
    assert [chunk["choices"][0]["finish_reason"] for chunk in found] == [None, None, "stop", "stop", None, None]


# -- replies that are not streamed

MESSAGE = {"role": "assistant", "content": "Hi", "refusal": None}


def reply_of(message: Json | None = None, **choice: Any) -> Json:
    whole = {"index": 0, "message": message or MESSAGE, "logprobs": None, "finish_reason": "stop", **choice}
    return {**HEAD, "object": "chat.completion", "choices": [whole], "usage": COUNTS}


def test_a_whole_reply_passes_as_it_is():
    body = json.dumps(reply_of(), indent=2).encode() + b"\n"
    assert pass_whole(body, make_ask(), "chatcmpl-ours", 1) == (body, Usage(19, 7, 3, 2), 2)


@pytest.mark.parametrize(
    ("lame", "mended"),
    [
        (reply_of(finish_reason=None), reply_of()),
        (reply_of(finish_reason=""), reply_of()),
        (reply_of({"content": "Hi"}), reply_of({"content": "Hi", "role": "assistant", "refusal": None})),
        (reply_of({**MESSAGE, "tool_calls": []}), reply_of()),
        (reply_of({**MESSAGE, "tool_calls": None}), reply_of()),
        (reply_of({**MESSAGE, "content": [{"type": "text", "text": "Hi"}]}), reply_of()),
        (
            reply_of({**MESSAGE, "reasoning": "Hm"}),
            reply_of({**MESSAGE, "reasoning": "Hm", "reasoning_content": "Hm"}),
        ),
        (reply_of() | {"error": None}, reply_of()),
        (reply_of() | {"id": None}, reply_of() | {"id": "chatcmpl-ours"}),
    ],
)
def test_a_whole_reply_that_falls_short_is_mended(lame, mended):
    body, _, _ = pass_whole(json.dumps(lame).encode(), make_ask(), "chatcmpl-ours", 1234)
    assert json.loads(body) == mended


PLAIN_COUNTS: Json = {"prompt_tokens": 19, "completion_tokens": 7, "total_tokens": 26}


@pytest.mark.parametrize(
    ("told", "mended"),
    [
        (None, None),
        ({}, None),
        ("19", None),
        ({"prompt_tokens": None, "completion_tokens": None, "total_tokens": None}, None),
        ({"prompt_tokens": 19}, None),
        ({"total_tokens": 26}, None),
        (PLAIN_COUNTS | {"prompt_tokens": 3.5}, None),
        (PLAIN_COUNTS | {"prompt_tokens": "19"}, None),
        (PLAIN_COUNTS | {"prompt_tokens": True}, None),
        (PLAIN_COUNTS | {"total_tokens": None}, PLAIN_COUNTS),
        (PLAIN_COUNTS | {"completion_tokens": None}, PLAIN_COUNTS),
        ({name: float(count) for name, count in PLAIN_COUNTS.items()}, PLAIN_COUNTS),
        (
            PLAIN_COUNTS | {"completion_tokens_details": {"reasoning_tokens": 2.0}},
            PLAIN_COUNTS | {"completion_tokens_details": {"reasoning_tokens": 2}},
        ),
    ],
)
def test_usage_of_a_whole_reply_has_whole_numbers_or_is_left_out(told, mended):
    body, usage, _ = pass_whole(json.dumps(reply_of() | {"usage": told}).encode(), make_ask(), "chatcmpl-ours", 1234)
    assert json.loads(body).get("usage", "absent") == (mended or "absent")
    assert (usage and (usage.prompt, usage.completion)) == (mended and (19, 7))


def test_usage_of_a_stream_may_be_written_with_a_point():
    stream = make_stream(include_usage=True)
    told = {name: float(count) for name, count in PLAIN_COUNTS.items()}
    found = read_whole(
        run(stream, write(text_of("a"), chunk_of(choice_of({}, "stop")), chunk_of() | {"usage": told}) + DONE)
    )
    assert found[-1]["usage"] == PLAIN_COUNTS
    assert stream.usage == Usage(19, 7)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"null",
        b"{}",
        b'{"choices":[]}',
        b'{"choices":{}}',
        b'{"choices":[{"message":"text"}]}',
        b'{"choices":[{"message":{"content":[7]}}]}',
        b'{"choices":[7]}',
        json.dumps(reply_of())[:-1].encode(),
    ],
)
def test_a_whole_reply_that_is_none(body):
    with pytest.raises(Malformed):
        pass_whole(body, make_ask(), "chatcmpl-ours", 1234)


def test_an_error_in_the_place_of_a_reply():
    with pytest.raises(Broken) as caught:
        pass_whole(b'{"error":{"message":"no"}}', make_ask(), "chatcmpl-ours", 1234)
    assert caught.value.fault(read_fault).message == "no"

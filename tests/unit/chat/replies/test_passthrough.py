"""Streams in OpenAI's dialect: good chunks come out as they are, counted, and no end is told that was not said."""

import json

import pytest
from chat_chunks import (
    COUNTS,
    DONE,
    END,
    HEAD,
    USED,
    Json,
    characters_in,
    choice_of,
    chunk_of,
    good_chunks,
    make_stream,
    read,
    read_fault,
    read_whole,
    run,
    text_of,
    write,
)
from hypothesis import given
from hypothesis import strategies as some

from penstock.domain.chat import MOST_TOKENS, Blame, Fault, Usage


def show_usage(chunks: list[Json], how: str) -> list[Json]:
    """As vendors write it: on no chunk but the last, null on all others, or the count so far on all."""
    if how == "absent":
        return chunks
    value = None if how == "null" else COUNTS
    return [{**chunk, "usage": value} for chunk in chunks]


@given(
    good_chunks(),
    some.booleans(),
    some.sampled_from(["absent", "null", "counted"]),
    some.sampled_from([None, ", "]),
    some.sampled_from(["\n", "\r\n"]),
    some.booleans(),
    some.lists(some.integers(0, 5000), max_size=12),
)
def test_good_chunks_come_out_as_they_are(chunks, include_usage, how, comma, newline, tells_end, places):
    stream = make_stream(include_usage=include_usage)
    separators = None if comma else (",", ":")
    upstream = [*show_usage(chunks, how), USED]
    texts = [json.dumps(chunk, separators=separators, ensure_ascii=bool(comma)) for chunk in upstream]
    events = [f"data: {text}" for text in texts] + ["data: [DONE]"] * tells_end
    text = "".join(event + newline * 2 for event in events).encode()
    found = read_whole(run(stream, text, places))
    if include_usage:
        assert found == [*({**chunk, "usage": None} for chunk in chunks), USED]
    else:
        assert found == chunks
    assert stream.usage == Usage(19, 7, 3, 2)
    assert stream.characters == characters_in(chunks)
    assert (stream.malformed, stream.complete, stream.ended, stream.broken) == (0, True, True, None)


@given(good_chunks(), some.lists(some.integers(0, 5000), max_size=5))
def test_bytes_are_not_written_anew(chunks, places):
    """Numbers, escapes and the order of fields stay as the vendor wrote them."""
    chunks[0]["choices"][0]["score"] = 1.25
    odd = (
        write(*chunks).replace(b'"score":1.25', b'"score":1.250e0').replace(b'"model":"upstream"', rb'"model":"\u0075"')
    )
    assert run(make_stream(), odd, places) == odd + DONE


@pytest.mark.parametrize("include_usage", [False, True])
def test_usage_that_comes_on_the_last_chunk_only(include_usage):
    stream = make_stream(include_usage=include_usage)
    found = read_whole(run(stream, write(text_of("Hi"), {**END, "usage": COUNTS, "timings": {"n": 1}}) + DONE))
    assert stream.usage == Usage(19, 7, 3, 2)
    assert [chunk["choices"] for chunk in found[:2]] == [text_of("Hi")["choices"], END["choices"]]
    assert [chunk.get("usage", "absent") for chunk in found[:2]] == [None if include_usage else "absent"] * 2
    assert [chunk["usage"]["total_tokens"] for chunk in found[2:]] == [26] * include_usage


def test_writes_to_the_vendors_cache_are_counted():
    details = {"cached_tokens": 3, "cache_write_tokens": 9, "cache_write_1h_tokens": 4}
    told = chunk_of(usage=COUNTS | {"prompt_tokens_details": details})
    stream = make_stream(include_usage=True)
    found = read_whole(run(stream, write(text_of("Hi"), END, told) + DONE))
    assert found[-1] == told
    assert stream.usage == Usage(19, 7, 3, 2, cache_writes=9, cache_writes_1h=4)
    assert stream.usage.as_json()["prompt_tokens_details"] == details


def test_usage_that_nobody_told_is_estimated_and_marked():
    stream = make_stream(include_usage=True)
    found = read_whole(run(stream, write(text_of("x" * 40), END) + DONE))
    assert stream.usage is None
    assert found[-1]["choices"] == []
    assert {**HEAD, "usage": found[-1]["usage"], "choices": []} == found[-1]
    assert (found[-1]["usage"]["completion_tokens"], found[-1]["usage"]["estimated"]) == (10, True)


@pytest.mark.parametrize(
    "counts", [{}, {"prompt_tokens": None}, {"prompt_tokens": "19"}, {"total_tokens": 1.5}, "many", [1]]
)
def test_usage_of_another_shape_is_taken_for_none(counts):
    stream = make_stream(include_usage=True)
    found = read_whole(run(stream, write(text_of("Hello"), END, chunk_of(usage=counts)) + DONE))
    assert stream.usage is None
    assert found[-1]["usage"] == {**found[-1]["usage"], "total_tokens": found[-1]["usage"]["prompt_tokens"] + 2}
    assert found[-1]["usage"]["estimated"] is True


@given(some.integers(-(10**30), 10**30), some.integers(-(10**30), 10**30))
def test_counts_beyond_belief_stay_within_what_the_store_holds(prompt, completion):
    stream = make_stream()
    run(stream, write(END, chunk_of(usage={"prompt_tokens": prompt, "completion_tokens": completion})) + DONE)
    assert stream.usage is not None
    assert stream.usage.prompt == min(max(0, prompt), MOST_TOKENS)
    assert stream.usage.completion == min(max(0, completion), MOST_TOKENS)


def test_an_event_of_several_lines_becomes_one_line():
    upstream = b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,\ndata: "model":"m",\r\ndata:'
    upstream += b'"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'
    assert read_whole(run(make_stream(), upstream))[0]["choices"][0]["delta"] == {"content": "Hi"}


# -- ends


@pytest.mark.parametrize("azure", [False, True])
def test_a_choice_without_its_end_is_noticed(azure):
    """Also where the first chunk holds no choice at all, as Azure's."""
    begin = [chunk_of(prompt_filter_results=[])] if azure else []
    stream = make_stream()
    run(stream, write(*begin, text_of("b", 1), text_of("a"), text_of("a"), chunk_of(choice_of({}, "stop", 1))))
    assert not stream.complete
    alone = make_stream()
    run(alone, write(*begin, text_of("a"), text_of("b", 1), chunk_of(choice_of({}, "stop", 0))))
    assert not alone.complete


@given(good_chunks(), some.integers(0, 10_000))
def test_a_stream_that_is_cut_before_its_last_end_is_not_whole(chunks, place):
    count = sum(chunk["choices"][0]["finish_reason"] is not None for chunk in chunks)
    chunks = [*(chunk_of(choice_of({"role": "assistant"}, index=index)) for index in range(count)), *chunks]
    begun, text = len(write(*chunks[:count])), write(*chunks)
    stream = make_stream()
    out = run(stream, text[: begun + place % (len(text) - begun - 3)])  # the last `}` is missing at least
    assert not stream.complete
    assert DONE not in out
    assert all(chunk in chunks for chunk in read(out))


@pytest.mark.parametrize("include_usage", [False, True])
def test_the_end_is_told_once(include_usage):
    """Also where the vendor left out the blank line after its last and only chunk."""
    stream = make_stream(include_usage=include_usage)
    assert stream.feed(write(END)[:-2]) == b""
    read_whole(stream.end())
    assert stream.ended


def test_nothing_counts_after_the_end():
    stream = make_stream()
    out = run(stream, write(text_of("Hi"), END) + DONE + write(text_of("more"), {"error": {"message": "late"}}))
    assert read_whole(out) == [text_of("Hi"), END]
    assert stream.broken is None


# -- faults


@pytest.mark.parametrize("before", [[], [text_of("Hi")], [text_of("Hi"), END]])
@pytest.mark.parametrize("error", [{"error": {"message": "no"}}, {**HEAD, "choices": [], "error": {"message": "no"}}])
def test_an_error_after_content_in_the_same_read(before, error):
    stream = make_stream()
    out = stream.feed(write(*before, error, text_of("never")) + DONE)
    assert read(out) == before
    assert stream.broken is not None
    assert stream.broken.fault(read_fault) == Fault(Blame.BUSY, "no")
    assert stream.characters == len(before and "Hi")


def test_an_error_that_is_null_is_none():
    stream = make_stream()
    found = read_whole(run(stream, write({**text_of("Hi"), "error": None}, {**END, "error": None}) + DONE))
    assert found == [text_of("Hi"), END]

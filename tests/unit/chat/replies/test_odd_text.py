r"""Text that strict parsers stumble over: half surrogate pairs, NaN, bytes that are no UTF-8. None of it is dropped."""

import json
from typing import Any

import pytest
from chat_chunks import (
    DONE,
    END,
    HEAD,
    Json,
    choice_of,
    chunk_of,
    make_ask,
    make_stream,
    read_whole,
    run,
    text_of,
    write,
)
from chat_samples import SAMPLES, make_vendor
from chat_samples import make_ask as make_vendor_ask

from penstock.chat.replies.broken import Malformed
from penstock.chat.replies.chunks.completion import pass_whole
from penstock.chat.replies.chunks.writer import ChunkWriter
from penstock.chat.replies.translated import TranslatedStream, render_whole
from penstock.vendor_api.lenient_json import read_json, write_json

HALVES = ["\ud83d", "\ude00"]


def texts_of(chunks: list[Json]) -> list[str]:
    return [choice["delta"].get("content", "") for chunk in chunks for choice in chunk["choices"]]


def dump(found: Any) -> bytes:
    """Write as vendors do: half pairs as escapes."""
    return json.dumps(found, separators=(",", ":")).encode()


@pytest.mark.parametrize("include_usage", [False, True])
@pytest.mark.parametrize("usage", [{}, {"usage": None}, {"usage": {"prompt_tokens": 1, "completion_tokens": 2}}])
def test_a_pair_that_is_split_over_two_events(include_usage, usage):
    stream = make_stream(include_usage=include_usage)
    chunks = [text_of("a "), *(text_of(half) for half in HALVES), text_of(" b"), END]
    found = read_whole(run(stream, write(*(dump({**chunk, **usage}) for chunk in chunks)) + DONE))
    assert texts_of(found)[:5] == ["a ", *HALVES, " b", ""]
    together = "".join(texts_of(found)).encode("utf-16", "surrogatepass").decode("utf-16")
    assert together == "a 😀 b"
    assert (stream.malformed, stream.broken, stream.characters) == (0, None, 6)


def test_half_a_pair_that_stays_alone():
    found = read_whole(run(make_stream(), write(dump(text_of("a\ud83db")), END) + DONE))
    assert texts_of(found) == ["a\ud83db", ""]


ODD: dict[str, tuple[bytes, str]] = {
    "NaN": (b'"logprobs":{"content":[{"token":"a","logprob":NaN}]}', "a"),
    "infinity": (b'"logprobs":{"content":[{"token":"a","logprob":-Infinity}]}', "a"),
    "a number too large": (b'"logprobs":1e999', "a"),
    "half a pair elsewhere": (b'"logprobs":{"content":[{"token":"\\ud83d"}]}', "a"),
}


@pytest.mark.parametrize("kind", ODD)
def test_a_chunk_with_a_number_or_text_that_json_has_not(kind):
    odd, text = ODD[kind]
    upstream = write(text_of(text)).replace(b'"logprobs":null', odd)
    assert odd in upstream
    stream = make_stream()
    out = run(stream, write(text_of("1")) + upstream + write(text_of("2"), END) + DONE)
    assert texts_of(read_whole(out)) == ["1", text, "2", ""]
    assert b"NaN" not in out
    assert b"Infinity" not in out
    assert (stream.malformed, stream.broken) == (0, None)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"caf\xe9", "caf\ufffd"),  # Latin-1
        (b"\xf0\x9f", "\ufffd"),  # the first half of an emoji's bytes
        (b"\xed\xa0\xbd", "\ufffd\ufffd\ufffd"),  # a half pair, written as bytes
        (b"a\tb", "a\tb"),
        (b"a\x01b", "a\x01b"),
        ("é😀".encode(), "é😀"),
    ],
)
def test_bytes_that_no_json_has(raw, text):
    upstream = write(text_of("HERE")).replace(b"HERE", raw)
    stream = make_stream()
    found = read_whole(run(stream, write(text_of("1")) + upstream + write(text_of("2"), END) + DONE))
    assert texts_of(found) == ["1", text, "2", ""]
    assert (stream.malformed, stream.broken) == (0, None)


def test_several_events_without_blank_lines_between_them():
    text = write(text_of("a"), text_of("b")).replace(b"\n\n", b"\n") + b"\n" + write(END) + DONE
    assert texts_of(read_whole(run(make_stream(), text))) == ["a", "b", ""]


def test_an_indented_chunk_without_field_names():
    text = b"data: " + json.dumps(text_of("a"), indent=2).encode() + b"\n\n" + write(END) + DONE
    assert texts_of(read_whole(run(make_stream(), text))) == ["a", ""]


def test_a_whole_message_at_the_end_is_not_said_twice():
    last = {
        **HEAD,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "ab"}, "finish_reason": "stop"}],
    }
    assert texts_of(read_whole(run(make_stream(), write(text_of("a"), text_of("b"), last) + DONE))) == ["a", "b", ""]
    only = read_whole(run(make_stream(), write(last) + DONE))
    assert texts_of(only) == ["ab"]
    assert only[0]["choices"][0]["finish_reason"] == "stop"


def test_choices_without_end_are_given_up():
    stream = make_stream()
    run(stream, write(*(chunk_of(choice_of({"content": "a"}, index=number)) for number in range(1_100))))
    assert isinstance(stream.broken, Malformed)


def test_events_without_content_without_end_are_given_up():
    stream = make_stream()
    run(stream, write(text_of("a")) + b"data: {}\n\n" * 11_000)
    assert isinstance(stream.broken, Malformed)


def test_a_large_event_of_many_values_is_not_parsed():
    stream = make_stream()
    run(stream, write(text_of("a"), b'{"choices":[' + b"[]," * 200_000 + b"[]]}"))
    assert isinstance(stream.broken, Malformed)
    large = text_of("x" * 5_000_000)  # a picture may be as large
    assert read_whole(run(make_stream(), write(large, END) + DONE)) == [large, END]


# -- whole replies


def whole_of(content: Any) -> Json:
    message = {"role": "assistant", "content": content, "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    return {**HEAD, "object": "chat.completion", "choices": [choice]}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (dump(whole_of("a\ud83db")), "a\ud83db"),
        (dump(whole_of("😀")), "😀"),
        (dump(whole_of("HERE")).replace(b"HERE", b"caf\xe9"), "caf\ufffd"),
        (dump(whole_of("a")).replace(b'"logprobs":null', b'"logprobs":{"content":[{"logprob":NaN}]}'), "a"),
        (b"\xef\xbb\xbf" + dump(whole_of("a")), "a"),
        (b"\xef\xbb\xbf" + dump(whole_of("a\ud83d")), "a\ud83d"),
        (dump(whole_of(7)), "7"),
        (dump(whole_of(["a", {"text": "b"}])), "ab"),
        (dump({"choices": [{"text": "a", "finish_reason": "stop"}]}), "a"),
    ],
)
def test_a_whole_reply(body, text):
    found, _, characters = pass_whole(body, make_ask(), "chatcmpl-ours", 1)
    assert json.loads(found)["choices"][0]["message"]["content"] == text
    assert b"NaN" not in found
    assert not found.startswith(b"\xef")
    assert characters == len(text)


# -- other dialects


@pytest.mark.parametrize("vendor", ["anthropic", "gemini"])
def test_half_a_pair_in_another_dialect(vendor):
    ask = make_vendor_ask(stream=True)
    sample = SAMPLES[vendor]
    events = [dump(event).replace(b'"Hi"', b'"\\ud83d"') for event in sample.stream]
    assert sum(b"ud83d" in event for event in events)
    stream = TranslatedStream(ask, make_vendor(vendor).translator(ask), ChunkWriter(ask, "ours", 1))
    out = run(stream, write(*events))
    assert "".join(texts_of(read_whole(out))) == "\ud83d"
    assert (stream.malformed, stream.broken) == (0, None)
    whole = dump(sample.whole).replace(b'"Hi"', b'"\\ud83d"')
    body, _, _ = render_whole(make_vendor(vendor).translator(ask).whole(whole), ask, ChunkWriter(ask, "ours", 1))
    assert json.loads(body)["choices"][0]["message"]["content"] == "\ud83d"


@pytest.mark.parametrize("vendor", ["anthropic", "gemini"])
@pytest.mark.parametrize("bad", [b'{"delta": {"text": "lost', b'{"candidates": [5]}', b'{"content": "lost"}'])
def test_an_event_of_another_dialect_that_cannot_be_read_ends_the_stream(vendor, bad):
    ask = make_vendor_ask(stream=True)
    events = [dump(event) for event in SAMPLES[vendor].stream]
    stream = TranslatedStream(ask, make_vendor(vendor).translator(ask), ChunkWriter(ask, "ours", 1))
    out = run(stream, write(*events[:-1], bad, events[-1]))
    assert DONE not in out
    assert stream.broken is not None


@pytest.mark.parametrize("vendor", ["anthropic", "gemini"])
@pytest.mark.parametrize("told", [b'{"object": "error", "message": "no"}', b'{"detail": "no"}', b'{"error": "no"}'])
def test_a_flat_error_in_another_dialect_ends_the_stream(vendor, told):
    ask = make_vendor_ask(stream=True)
    events = [dump(event) for event in SAMPLES[vendor].stream]
    stream = TranslatedStream(ask, make_vendor(vendor).translator(ask), ChunkWriter(ask, "ours", 1))
    out = run(stream, write(*events[:-1], told, events[-1]))
    assert DONE not in out
    assert stream.broken is not None


def test_json_of_vendors():
    assert read_json(b'[NaN, -Infinity, 1e999, 1.5, "\\ud83d", "\xff"]') == [None, None, None, 1.5, "\ud83d", "\ufffd"]
    assert write_json(["\ud83d", "é"]) == b'["\\ud83d","\\u00e9"]'
    assert write_json(["é", float("nan")]) == '["é",null]'.encode()
    with pytest.raises(ValueError, match="Invalid JSON"):
        read_json(b"{")

"""Replies of every chat vendor there is, in each form: none breaks anything, none is taken for whole that is not."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from chat_samples import SAMPLES, Json, anything, bodies, check_fault, every_sample, likely, make_ask, make_vendor
from hypothesis import given, note
from hypothesis import strategies as some

from penstock.chat.replies.broken import Broken, Malformed
from penstock.chat.replies.chunks.completion import pass_whole
from penstock.chat.replies.chunks.passthrough import PassthroughStream
from penstock.chat.replies.chunks.writer import ChunkWriter
from penstock.chat.replies.translated import TranslatedStream, render_whole
from penstock.domain.chat import Ask, Part

READABLE = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What a translator may raise: all of it tells of a malformed reply."""


def is_understood(parts: Iterator[Part] | Any) -> bool:
    """Whether these are parts, or what a translator may raise."""
    try:
        return all(isinstance(part, get_args(Part)) for part in parts)
    except READABLE:
        return True


@given(body=some.binary(max_size=60) | bodies | likely.map(lambda found: json.dumps(found).encode()))
def test_no_bytes_break_a_translator(body):
    for name in SAMPLES:
        note(name)
        check_translator(name, body)


def check_translator(name: str, body: bytes) -> None:
    translator = make_vendor(name).translator(make_ask(stream=True, **SAMPLES[name].fields))
    if translator is not None:
        assert is_understood(translator.event("message", body))
        assert is_understood(translator.whole(body))


def open_stream(name: str, **fields: Any) -> PassthroughStream | TranslatedStream:
    """As the gateway does it."""
    ask = make_ask(stream=True, **SAMPLES[name].fields, **fields)
    translator = make_vendor(name).translator(ask)
    return (
        PassthroughStream(ask, "ours", 1)
        if translator is None
        else TranslatedStream(ask, translator, ChunkWriter(ask, "ours", 1))
    )


def write(events: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def run(stream: PassthroughStream | TranslatedStream, text: bytes, places: list[int]) -> bytes:
    ends = sorted({place % (len(text) + 1) for place in places} | {len(text)})
    out, start = b"", 0
    for end in ends:
        if end > start and not stream.broken:
            out += stream.feed(text[start:end])
        start = end
    return out if stream.broken else out + stream.end()


def check_output(out: bytes) -> list[Json]:
    """Every event is framed exactly and is a chunk that clients understand."""
    chunks = [event.removeprefix(b"data: ") for event in out.removesuffix(b"data: [DONE]\n\n").split(b"\n\n")]
    assert chunks.pop() == b""
    found = [json.loads(chunk) for chunk in chunks]
    for chunk in found:
        for choice in chunk["choices"]:
            assert type(choice["index"]) is int
            assert isinstance(choice["delta"].get("content"), str | None)
            assert isinstance(choice["delta"].get("reasoning_content"), str | None)
            for call in choice["delta"].get("tool_calls") or ():
                assert isinstance((call.get("function") or {}).get("arguments"), str | None)
    return found


@given(text=some.binary(max_size=300), places=some.lists(some.integers(0, 300), max_size=5))
def test_no_bytes_make_a_whole_stream(text, places):
    for name in SAMPLES:
        note(name)
        stream = open_stream(name)
        check_output(run(stream, text, places))
        assert not stream.complete


@given(place=some.integers(0, 5000), places=some.lists(some.integers(0, 5000), max_size=8))
def test_a_stream_is_whole_when_the_vendor_said_so_and_not_before(place, places):
    for name in SAMPLES:
        note(name)
        check_cut(name, place, places)


def check_cut(name: str, place: int, places: list[int]) -> None:
    sample = SAMPLES[name]
    text = write(sample.stream)
    end = len(write(sample.stream[: sample.ends_at + 1]))
    cut = place % len(text)
    stream = open_stream(name, stream_options={"include_usage": True})
    out = run(stream, text[:cut], places)
    chunks = check_output(out)
    assert stream.complete is (cut >= end - 2)  # the blank line may be missing
    assert out.endswith(b"data: [DONE]\n\n") is stream.complete
    reasons = [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"]]
    given_reasons = ["stop"] if isinstance(stream, PassthroughStream) else reasons[-1:]
    assert [reason for reason in reasons if reason] == given_reasons * stream.complete


@every_sample
def test_a_whole_reply_is_understood(name):
    ask, body = make_ask(**SAMPLES[name].fields), json.dumps(SAMPLES[name].whole).encode()
    whole, usage, characters = read_whole(name, ask, body)
    assert json.loads(whole)["choices"][0]["message"]["content"] == "Hi"
    assert json.loads(whole)["choices"][0]["finish_reason"] == "stop"
    assert usage is not None
    assert (usage.prompt, characters) == (5, 2)


def read_whole(name: str, ask: Ask, body: bytes) -> Any:
    translator = make_vendor(name).translator(ask)
    if translator is None:
        return pass_whole(body, ask, "ours", 1)
    return render_whole(translator.whole(body), ask, ChunkWriter(ask, "ours", 1))


def places_in(found: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value."""
    yield path
    items: Mapping[Any, Any] = (
        found if isinstance(found, dict) else dict(enumerate(found if isinstance(found, list) else ()))
    )
    for key, inner in items.items():
        yield from places_in(inner, (*path, key))


def put(found: Any, path: tuple[Any, ...], value: Any) -> Any:
    """The same JSON with another value in one place."""
    if not path:
        return value
    changed = dict(found) if isinstance(found, dict) else list(found)
    changed[path[0]] = put(found[path[0]], path[1:], value)
    return changed


odd = anything | some.sampled_from([10**30, -1, 1.5, [], {}, [{}], "", True, {"type": "text"}, [[[]]]])


@every_sample
@given(data=some.data(), value=odd)
def test_a_reply_with_anything_in_any_place_breaks_nothing(name, data, value):
    sample = SAMPLES[name]
    event = data.draw(some.integers(0, len(sample.stream) - 1))
    path = data.draw(some.sampled_from(list(places_in(sample.stream[event]))))
    events = [*sample.stream[:event], put(sample.stream[event], path, value), *sample.stream[event + 1 :]]
    stream = open_stream(name, stream_options={"include_usage": True})
    check_output(run(stream, write(events), []))
    assert stream.usage is None or all(type(count) is int for count in (stream.usage.prompt, stream.usage.completion))
    assert type(stream.characters) is int
    if isinstance(stream.broken, Broken):
        check_fault(stream.broken.fault(make_vendor(name).fault))
    path = data.draw(some.sampled_from(list(places_in(sample.whole))))
    try:
        read_whole(name, make_ask(**sample.fields), json.dumps(put(sample.whole, path, value)).encode())
    except Broken as broken:
        check_fault(broken.fault(make_vendor(name).fault))
    except Malformed:
        pass

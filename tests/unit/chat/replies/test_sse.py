"""Server-sent events: the same ones come out, whatever line ends, fields, comments and pieces they come in."""

from collections.abc import Iterable
from itertools import repeat

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.chat.replies.sse import MAX_EVENT_BYTES, MAX_EVENT_LINES, EventTooLarge, Splitter

Event = tuple[bytes, list[bytes]]
LINE_ENDS = (b"\n", b"\r\n", b"\r")
lines = some.binary(max_size=12).map(lambda line: line.replace(b"\r", b"").replace(b"\n", b""))
names = some.sampled_from([b"", b"message", b"content_block_delta", b"ping"])
events = some.lists(some.tuples(names, some.lists(lines, min_size=1, max_size=3)), max_size=6)


@some.composite
def written(draw: some.DrawFn) -> tuple[list[Event], bytes]:
    """Events, and one of the many ways to write them."""
    wanted = draw(events)
    end = draw(some.sampled_from(LINE_ENDS))
    text = draw(some.sampled_from([b"", b"\xef\xbb\xbf"]))
    for name, data in wanted:
        rows = [b"event:" + draw(some.sampled_from([b"", b" "])) + name] if name else []
        # After the colon one space is no part of the value; a value that begins with one needs it.
        rows += [
            b"data:" + (b" " if line.startswith(b" ") else draw(some.sampled_from([b"", b" "]))) + line for line in data
        ]
        noise = some.sampled_from([b": a comment", b":", b"id: 7", b"retry: 3000", b"no colon", b"datum: 1"])
        for row in draw(some.lists(noise, max_size=2)):
            rows.insert(draw(some.integers(0, len(rows))), row)
        text += end.join([*rows, b""]) + end * draw(some.integers(1, 3))
    return wanted, text


def cut(text: bytes, places: list[int]) -> list[bytes]:
    """The text in pieces, none of them empty."""
    ends = sorted({place % len(text) for place in places} - {0}) if text else []
    return [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True) if end > start]


def split(pieces: list[bytes]) -> list[tuple[bytes, bytes]]:
    splitter = Splitter()
    found = [event for piece in pieces for event in splitter.feed(piece)]
    return found + splitter.end()


@given(written(), some.lists(some.integers(0, 1000), max_size=20))
def test_events_come_out_the_same_however_they_are_written_and_cut(sample, places):
    wanted, text = sample
    assert split(cut(text, places)) == [(name, b"\n".join(data)) for name, data in wanted]


@given(written())
def test_events_come_out_the_same_byte_by_byte(sample):
    wanted, text = sample
    assert split([bytes([byte]) for byte in text]) == [(name, b"\n".join(data)) for name, data in wanted]


@given(some.binary(max_size=200), some.lists(some.integers(0, 1000), max_size=5))
def test_any_bytes_at_all_come_out_the_same_however_they_are_cut(text, places):
    assert split(cut(text, places)) == split([text] if text else [])


@given(events)
def test_an_event_comes_out_as_soon_as_it_is_whole(wanted):
    splitter = Splitter()
    for name, data in wanted:
        rows = [b"event: " + name, *(b"data: " + line for line in data)]
        assert splitter.feed(b"\n".join(rows)) == []
        assert splitter.feed(b"\n") == []
        assert splitter.feed(b"\n") == [(name, b"\n".join(data))]
    assert splitter.end() == []


@pytest.mark.parametrize("pieces", [[b"\xef", b"\xbb", b"\xbfdata: a\n\n"], [b"\xef\xbb", b"\xbf", b"data: a\n\n"]])
def test_a_byte_order_mark_in_pieces_is_no_part_of_the_first_event(pieces):
    assert split(pieces) == [(b"", b"a")]


def test_only_the_first_bytes_are_a_byte_order_mark():
    assert split([b"\xef\xbb", b"data: a\n\ndata: b\n\n"]) == [(b"", b"b")]
    assert split([b"data: a\n\n", b"\xef\xbb\xbfdata: b\n\n"]) == [(b"", b"a")]


def test_comments_are_counted_and_are_no_events():
    splitter = Splitter()
    assert splitter.feed(b": one\n\n:two\r\n\r\n") == []
    assert splitter.feed(b":\n: OPENROUTER PROCESSING\ndata: a\n\n") == [(b"", b"a")]
    assert splitter.comments == 4


def test_the_last_event_counts_without_its_blank_line():
    for ending in (b"", b"\n", b"\r", b"\r\n"):
        assert split([b"data: a\n\n", b"data: b" + ending]) == [(b"", b"a"), (b"", b"b")]


def test_an_event_that_never_ends_is_given_up():
    splitter = Splitter()
    piece = b"data: " + b"x" * (MAX_EVENT_BYTES // 2)
    assert splitter.feed(piece) == []
    with pytest.raises(EventTooLarge):
        splitter.feed(piece)
    small = Splitter()
    assert len(small.feed(b"data: x\n\n" * 1000)) == 1000
    assert len(small.feed(b"data: " + b"x" * MAX_EVENT_BYTES + b"\n\n")) == 1  # it has ended


def feed_all(splitter: Splitter, pieces: Iterable[bytes]) -> None:
    for piece in pieces:
        splitter.feed(piece)


@pytest.mark.parametrize("nothing", [b": still thinking\n\n", b":\n\n", b"\n", b"id: 7\n\n", b"\r\n"])
def test_comments_and_blank_lines_without_end_are_given_up(nothing, monkeypatch):
    limit = 200_000
    monkeypatch.setattr("penstock.chat.replies.sse.MAX_IDLE_BYTES", limit)
    splitter = Splitter()
    piece = nothing * (8192 // len(nothing))
    for _ in range((limit - 20_000) // len(piece)):  # as much as is allowed
        assert splitter.feed(piece) == []
    assert splitter.feed(b"\n\ndata: a\n\n") == [(b"", b"a")]
    with pytest.raises(EventTooLarge, match="comments only"):
        feed_all(splitter, repeat(piece, 3 * limit // len(piece)))


@pytest.mark.parametrize("line", [b": a comment\n", b"data: x\n", b"id: 7\n"])
def test_an_event_of_too_many_lines_is_given_up(line):
    with pytest.raises(EventTooLarge):
        Splitter().feed(line * (MAX_EVENT_LINES + 2) + b"\n")
    with pytest.raises(EventTooLarge):
        feed_all(Splitter(), repeat(line, MAX_EVENT_LINES + 2))


def test_a_large_event_in_small_pieces_is_joined_once():
    splitter, text = Splitter(), b"data: " + b"x" * (MAX_EVENT_BYTES - 100)
    for start in range(0, len(text), 4096):
        assert splitter.feed(text[start : start + 4096]) == []
    assert splitter.feed(b"\n") == []
    assert splitter.feed(b"\ndata: b\n\n") == [(b"", text[6:]), (b"", b"b")]


def test_json_in_several_lines_is_one_event():
    text = b'data: {\n  "a": [\n    1\n  ],\n"b": 2\n}\n\n'
    assert split([text]) == [(b"", b'{\n  "a": [\n    1\n  ],\n"b": 2\n}')]
    assert split([b"data: {\nfoo: bar\nnothing\n\n"]) == [(b"", b"{")]

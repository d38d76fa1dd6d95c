"""Replies of any vendor through any door: nothing is lost, and what is cut anywhere is never taken for whole."""

import json
from collections.abc import Iterator
from itertools import pairwise

import pytest
from doors.conversations import arguments, names, texts
from doors.door_replies import STREAMS, WHOLES, Unfinished
from doors.door_requests import WRITERS
from doors.neutral import Conversation, Heard, Message, Text, Tool
from doors.speakers import DOORS, VENDORS, Sent, relay, relay_whole, send
from doubles.scripted.turns import INPUT_TOKENS, OUTPUT_TOKENS, Call, Reply, Request, Turn
from doubles.scripted.turns import Tool as Declared
from doubles.scripted.vendor import DIALECTS
from hypothesis import given, settings
from hypothesis import strategies as some

from penstock.chat.replies.broken import Broken, Malformed

CELLS = [(door, vendor) for door in DOORS for vendor in VENDORS]
TOOLS = ("get_weather", "look-up", "f", "Read_2")
ASKED = Conversation(
    (Message("user", (Text("Hello"),)),), tools=tuple(Tool(name, "Do it.", {"type": "object"}) for name in TOOLS)
)
turns = some.builds(
    Turn,
    text=texts,
    reasoning=texts,
    calls=some.lists(some.builds(Call, names, arguments), max_size=3).map(tuple),
).filter(lambda turn: turn.text or turn.calls)
places = some.lists(some.integers(0, 4_000), max_size=6)


def ask(door: str, vendor: str, *, stream: bool) -> Sent:
    more = {"stream_options": {"include_usage": True}} if door == "chat" and stream else {}
    return send(door, vendor, {**WRITERS[door](ASKED), "stream": stream, **more})


def make_reply(turn: Turn, *, stream: bool) -> Reply:
    return Reply(Request("m", stream, "", ("Hello",), {name: Declared(name) for name in TOOLS}, ()), turn, 1)


def speak_events(vendor: str, turn: Turn) -> list[bytes]:
    """Return the events of a vendor's answer in its own dialect."""
    return list(DIALECTS[vendor].stream(make_reply(turn, stream=True)))


def speak(vendor: str, turn: Turn, *, stream: bool) -> bytes:
    """Return a vendor's answer in its own dialect."""
    if stream:
        return b"".join(speak_events(vendor, turn))
    return json.dumps(DIALECTS[vendor].whole(make_reply(turn, stream=False))).encode()


def cut(whole: bytes, ends: list[int]) -> Iterator[bytes]:
    bounds = sorted({0, len(whole), *(end for end in ends if end < len(whole))})
    return (whole[begin:end] for begin, end in pairwise(bounds))


def check_whole(heard: Heard, turn: Turn) -> None:
    assert heard.text == turn.text
    assert heard.reasoning == turn.reasoning
    assert heard.called == [(call.name, call.arguments) for call in turn.calls]
    assert heard.finish == ("tool_calls" if turn.calls else "stop")
    assert all(call.id for call in heard.calls)
    assert len({call.id for call in heard.calls}) == len(turn.calls)


def check(door: str, vendor: str, turn: Turn, ends: list[int]) -> None:
    """Check an answer in pieces, and whole."""
    heard = STREAMS[door](
        relay(door, vendor, ask(door, vendor, stream=True), cut(speak(vendor, turn, stream=True), ends))
    )
    check_whole(heard, turn)
    assert (heard.input_tokens, heard.output_tokens) == (INPUT_TOKENS, OUTPUT_TOKENS)
    body = relay_whole(door, vendor, ask(door, vendor, stream=False), speak(vendor, turn, stream=False))
    heard = WHOLES[door](body)
    check_whole(heard, turn)
    assert (heard.input_tokens, heard.output_tokens) == (INPUT_TOKENS, OUTPUT_TOKENS)


def check_truncated(door: str, vendor: str, turn: Turn, share: float) -> None:
    """Check that a stream and a body that break off somewhere are errors, unless all of the answer came before."""
    stream, body = (speak(vendor, turn, stream=streamed) for streamed in (True, False))
    came = relay(door, vendor, ask(door, vendor, stream=True), [stream[: int(len(stream) * share)]])
    try:
        heard = STREAMS[door](came)
    except Unfinished:
        pass
    else:
        check_whole(heard, turn)
    with pytest.raises((Broken, Malformed)):
        relay_whole(door, vendor, ask(door, vendor, stream=False), body[: int((len(body) - 1) * share)])


shares = some.floats(0, 1, exclude_max=True)


@pytest.mark.parametrize(("door", "vendor"), CELLS)
def test_answers(door: str, vendor: str) -> None:
    @settings(max_examples=15)
    @given(turns, places)
    def run(turn: Turn, ends: list[int]) -> None:
        check(door, vendor, turn, ends)

    run()


@pytest.mark.parametrize(("door", "vendor"), CELLS)
def test_answers_that_break_off(door: str, vendor: str) -> None:
    @settings(max_examples=15)
    @given(turns, shares)
    def run(turn: Turn, share: float) -> None:
        check_truncated(door, vendor, turn, share)

    run()


@pytest.mark.long
@pytest.mark.parametrize(("door", "vendor"), CELLS)
def test_many_answers(door: str, vendor: str) -> None:
    @settings(max_examples=300)
    @given(turns, places, shares)
    def run(turn: Turn, ends: list[int], share: float) -> None:
        check(door, vendor, turn, ends)
        check_truncated(door, vendor, turn, share)

    run()


@pytest.mark.parametrize(("door", "vendor"), CELLS)
def test_an_answer_that_breaks_off_in_its_last_event(door: str, vendor: str) -> None:
    turn = Turn("Hi")
    *events, last = speak_events(vendor, turn)
    for end in range(len(last)):
        try:
            heard = STREAMS[door](relay(door, vendor, ask(door, vendor, stream=True), [*events, last[:end]]))
        except Unfinished:
            continue
        check_whole(heard, turn)


@pytest.mark.long
@pytest.mark.parametrize(("door", "vendor"), CELLS)
def test_an_answer_that_breaks_off_at_any_byte(door: str, vendor: str) -> None:
    turn = Turn("Grüße 👋", (Call("f", {"a": "ü"}), Call("get_weather", {})), "Hm … 🤔")
    length = len(speak(vendor, turn, stream=True))
    for end in range(length):
        check_truncated(door, vendor, turn, end / length)

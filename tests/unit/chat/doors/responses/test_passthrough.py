"""Streams of vendors that speak Responses, in any pieces."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.chat.doors.responses.door import ResponsesDoor
from penstock.chat.doors.responses.passthrough import PassedResponse
from penstock.chat.replies.broken import Broken, Malformed
from penstock.chat.replies.sse import MAX_EVENT_BYTES, EventTooLarge
from penstock.domain.chat import Blame, Usage
from penstock.errors import VendorFailed
from penstock.vendor_api.dialects.openai_errors import read_fault

DOOR = ResponsesDoor()
USAGE = {"input_tokens": 12, "output_tokens": 9, "input_tokens_details": {"cached_tokens": 3}}


def make_stream() -> PassedResponse:
    ask = DOOR.read(b'{"model":"m","input":"Hi","stream":true}', {})
    return DOOR.pass_stream(ask, "chatcmpl-req_1", 1_790_000_000)


def event(kind: str, **fields: Any) -> bytes:
    data = json.dumps({"type": kind, **fields}, separators=(",", ":"), ensure_ascii=False).encode()
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), data)


def delta(text: str, number: int = 0) -> bytes:
    return event("response.output_text.delta", sequence_number=number, item_id="msg_1", delta=text, logprobs=[])


CREATED = event("response.created", sequence_number=0, response={"id": "resp_9"})
DONE = event("response.completed", sequence_number=9, response={"id": "resp_9", "status": "completed", "usage": USAGE})
WHOLE = CREATED + delta("Hello", 1) + delta(' "you"', 2) + delta("\N{SNOWMAN}", 3) + DONE


@given(st.lists(st.integers(0, len(WHOLE)), max_size=9))
def test_any_pieces_pass_as_whole_events(cuts):
    stream, passed = make_stream(), b""
    places = sorted({0, len(WHOLE), *cuts})
    for start, end in pairwise(places):
        data = WHOLE[start:end]
        quick = stream.quick
        out = (quick(data) if quick else None) or stream.feed(data)
        assert out == b"" or out.endswith(b"\n\n")
        passed += out
    assert passed == WHOLE
    assert (stream.ended, stream.complete, stream.broken) == (True, True, None)
    assert stream.usage == Usage(12, 9, 3)
    assert stream.characters == len('Hello "you"') + 1
    assert stream.end() == b""


def test_plain_text_takes_the_quick_path():
    stream = make_stream()
    assert stream.quick is None
    stream.feed(CREATED)
    assert stream.quick is not None
    assert stream.quick(delta("Hello", 1) + delta(" you", 2)) == delta("Hello", 1) + delta(" you", 2)
    assert stream.characters == 9
    for other in (delta('"', 3), delta("\N{SNOWMAN}", 3), DONE, delta("x", 3)[:-1], delta("x", 3) + DONE):
        assert stream.quick(other) is None


@pytest.mark.parametrize(
    ("failure", "blame"),
    [
        (event("response.failed", response={"error": {"code": "server_error", "message": "x"}}), Blame.VENDOR),
        (event("response.failed", response={"error": {"code": "rate_limit_exceeded", "message": "x"}}), Blame.LIMIT),
        (event("error", code="context_length_exceeded", message="too long"), Blame.CALLER),
        (event("error", code="insufficient_quota", message="x"), Blame.CREDENTIAL),
        (b'data: {"error":{"message":"x","type":"server_error"}}\n\n', Blame.VENDOR),
        (b'event: error\ndata: {"type":"server_error","message":"x"}\n\n', Blame.VENDOR),
    ],
)
def test_an_error_ends_the_stream_with_the_vendors_event(failure, blame):
    stream = make_stream()
    assert stream.feed(CREATED + delta("a") + failure + DONE) == CREATED + delta("a")
    assert isinstance(stream.broken, Broken)
    assert stream.broken.event == failure
    assert stream.broken.fault(read_fault).blame is blame
    assert not stream.complete


def test_a_limit_with_a_wait():
    stream = make_stream()
    message = "Rate limit reached. Please try again in 1.5s."
    stream.feed(event("response.failed", response={"error": {"code": "rate_limit_exceeded", "message": message}}))
    assert isinstance(stream.broken, Broken)
    assert stream.broken.fault(read_fault).retry_after == 1.5


def test_a_cut_stream_is_not_complete_and_fails_with_its_id():
    stream = make_stream()
    stream.feed(CREATED + delta("a", 4) + DONE[:-20])
    assert stream.end() == b""
    assert not stream.complete
    failed = json.loads(stream.fail(VendorFailed("Cut."), "req_1").split(b"\n")[1][6:])
    assert (failed["type"], failed["sequence_number"]) == ("response.failed", 5)
    assert (failed["response"]["id"], failed["response"]["status"]) == ("resp_9", "failed")


def test_the_last_event_may_lack_its_blank_line():
    stream = make_stream()
    stream.feed(CREATED + DONE[:-2])
    assert not stream.complete
    assert stream.end() == DONE
    assert stream.complete


def test_comments_and_unreadable_events():
    stream = make_stream()
    assert stream.feed(b": wait\n\n" + CREATED + b"data: {oops\n\n" + DONE) == b": wait\n\n" + CREATED + DONE
    assert (stream.comments, stream.malformed, stream.complete) == (1, 1, True)


def test_an_endless_event():
    with pytest.raises(EventTooLarge):
        make_stream().feed(b"data: " + b"x" * (MAX_EVENT_BYTES + 1))


def test_a_whole_response_passes():
    item = {"type": "message", "content": [{"type": "output_text", "text": "Hello"}]}
    call = {"type": "function_call", "arguments": "{}"}
    body = json.dumps(
        {"id": "r", "status": "completed", "output": [item, call], "usage": USAGE, "error": None}
    ).encode()
    ask = DOOR.read(b'{"model":"m","input":"Hi"}', {})
    assert DOOR.pass_whole(body, ask, "", 0) == (body, Usage(12, 9, 3), 7)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"status": "failed", "error": {"code": "server_error", "message": "x"}, "output": []}, Broken),
        ({"error": {"message": "x"}}, Broken),
        ({"choices": []}, Malformed),
        ([], Malformed),
    ],
)
def test_a_whole_reply_that_is_no_response(body, error):
    ask = DOOR.read(b'{"model":"m","input":"Hi"}', {})
    with pytest.raises(error):
        DOOR.pass_whole(json.dumps(body).encode(), ask, "", 0)

"""Errors in the place of chunks and replies, in the shapes that vendors have for them: none becomes an answer."""

import json
from typing import Any

import pytest
from chat_chunks import DONE, END, HEAD, choice_of, chunk_of, make_ask, make_stream, read, run, text_of, write
from work import count_lines

from penstock.chat.replies.broken import Broken
from penstock.chat.replies.chunks.completion import pass_whole
from penstock.chat.replies.flat_errors import find_error, write_error
from penstock.domain.chat import Blame
from penstock.vendor_api.dialects.openai_errors import read_fault
from penstock.vendor_api.generation import Reply

SAID = "It does not work"
ERRORS: dict[str, tuple[Any, str, Blame]] = {
    "nested": ({"error": {"message": SAID, "type": "server_error", "code": 503}}, SAID, Blame.BUSY),
    "a text": ({"error": SAID}, SAID, Blame.VENDOR),
    "flat, as vLLM's": (
        {"object": "error", "message": SAID, "type": "BadRequestError", "param": None, "code": 400},
        SAID,
        Blame.CALLER,
    ),
    "flat, a code as text": ({"object": "error", "message": SAID, "code": "429"}, SAID, Blame.LIMIT),
    "by its type": ({"type": "error", "message": SAID}, SAID, Blame.VENDOR),
    "by its type, nested": (
        {"type": "error", "error": {"type": "overloaded_error", "message": SAID, "code": 503}},
        SAID,
        Blame.BUSY,
    ),
    "a code and a message": ({"code": 401, "message": SAID}, SAID, Blame.CREDENTIAL),
    "a word and a message": ({"code": "Throttling", "message": SAID, "request_id": "7"}, SAID, Blame.VENDOR),
    "a message": ({"message": SAID}, SAID, Blame.VENDOR),
    "a detail": ({"detail": SAID}, SAID, Blame.VENDOR),
    "a detail with a status": ({"status": 429, "detail": SAID}, SAID, Blame.LIMIT),
    "details as FastAPI's": ({"detail": [{"loc": ["body"], "msg": SAID, "type": "value_error"}]}, SAID, Blame.VENDOR),
    "errors": ({"success": False, "errors": [{"code": 7003, "message": SAID}]}, SAID, Blame.VENDOR),
    "by numbers": ({"error_code": 429, "error_msg": SAID}, SAID, Blame.LIMIT),
    "a status": ({"status": "error", "message": SAID}, SAID, Blame.VENDOR),
    "no success": ({"success": False}, "", Blame.VENDOR),
    "in a response": ({"base_resp": {"status_code": 1004, "status_msg": SAID}, "choices": None}, SAID, Blame.VENDOR),
    "beside an empty choice": (
        {**HEAD, "error": {"code": 502, "message": SAID}, "choices": [choice_of({"content": ""}, "error")]},
        SAID,
        Blame.VENDOR,
    ),
    "in a choice": (
        {**HEAD, "choices": [{**choice_of({}), "error": {"code": 429, "message": SAID}}]},
        SAID,
        Blame.LIMIT,
    ),
    "as a reason": ({**HEAD, "choices": [choice_of({}, "error")]}, "", Blame.VENDOR),
}


@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.parametrize("before", [[], [text_of("Hi")], [text_of("Hi"), END]])
def test_an_error_in_a_stream(kind, before):
    told, message, blame = ERRORS[kind]
    stream = make_stream(include_usage=True)
    out = run(stream, write(*before, told, text_of("never"), END) + DONE)
    assert [chunk["choices"] for chunk in read(out)] == [chunk["choices"] for chunk in before]
    assert isinstance(stream.broken, Broken)
    fault = stream.broken.fault(read_fault)
    assert (fault.message, fault.blame) == (message, blame)


@pytest.mark.parametrize("kind", ERRORS)
def test_an_error_in_the_place_of_a_whole_reply(kind):
    told, message, blame = ERRORS[kind]
    with pytest.raises(Broken) as caught:
        pass_whole(json.dumps(told).replace('"delta"', '"message"').encode(), make_ask(), "chatcmpl-ours", 1)
    fault = caught.value.fault(read_fault)
    assert (fault.message, fault.blame) == (message, blame)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (SAID.encode(), SAID),
        (json.dumps({"message": SAID}).encode(), SAID),
        (json.dumps({"error": SAID}).encode(), SAID),
        (json.dumps(SAID).encode(), SAID),
        (json.dumps(text_of("Hi")).encode(), ""),
        (b"two\ndata: lines", "two lines"),
        (b"", ""),
    ],
)
def test_an_event_that_is_called_error(data, message):
    stream = make_stream()
    out = run(stream, write(text_of("Hi")) + b"event: error\ndata: " + data + b"\n\n" + write(END) + DONE)
    assert read(out) == [text_of("Hi")]
    assert isinstance(stream.broken, Broken)
    assert stream.broken.fault(read_fault).message == message


@pytest.mark.parametrize(
    "harmless",
    [
        {},
        {"type": "ping"},
        {"type": "error_check", "status": "ok"},
        {"error": None},
        {"error": ""},
        {"error": {}},
        {"message": None},
        {**HEAD, "choices": []},
        {**HEAD, "choices": [], "prompt_filter_results": [{"message": "a"}]},
        {**HEAD, "choices": [], "base_resp": {"status_code": 0, "status_msg": ""}},
        {**HEAD, "choices": [choice_of({"content": "a"})], "message": "all is well", "detail": "x"},
        {"object": "chat.completion.chunk", "usage": None},
    ],
)
def test_what_is_no_error(harmless):
    assert find_error(harmless) is None
    stream = make_stream()
    run(stream, write(text_of("Hi"), harmless, END) + DONE)
    assert (stream.broken, stream.complete) == (None, True)


@pytest.mark.parametrize(
    "told", [None, 7, [], [[]], [{}], {"error": [[[[[7]]]]]}, {"message": {"a": "\ud83d"}}, "\ud83d"]
)
def test_anything_can_be_written_as_an_error(told):
    found = json.loads(write_error(told))["error"]
    assert found["message"].encode().decode() == found["message"]


def test_a_long_message_is_cut():
    assert len(json.loads(write_error({"message": "x" * 100_000}))["error"]["message"]) == 2_000


def test_the_end_of_a_choice_that_was_said_is_kept():
    """An error after the end is still one: nobody knows what was to come."""
    stream = make_stream()
    run(stream, write(text_of("Hi"), chunk_of(choice_of({}, "stop")), {"message": SAID}))
    assert isinstance(stream.broken, Broken)


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'{"error": {}}', b'{"error": {"message": {}, "detail": [{}]}}'])
def test_little_work_is_done_to_find_no_reason(body):
    assert count_lines(lambda: read_fault(Reply(500, {}, body))) < 500

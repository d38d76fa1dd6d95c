"""Streams that are translated: texts pass by a template, with the result that a parser would give."""

import json
from itertools import pairwise

import pytest
from chat_chunks import Json, chunk_of, make_ask, read_whole, text_of, write
from hypothesis import given
from hypothesis import strategies as some

from penstock.chat.replies.chunks.parts import ChunkTranslation
from penstock.chat.replies.chunks.writer import ChunkWriter
from penstock.chat.replies.translated import TranslatedStream
from penstock.vendor_api.dialects.responses_reply import ResponsesTranslation
from penstock.vendors.anthropic import AnthropicTranslation

BLOCK = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
START = {"type": "message_start", "message": {"id": "msg_1", "model": "m", "content": [], "usage": {"input_tokens": 3}}}
PING = {"type": "ping"}
FINISH = [
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}},
    {"type": "message_stop"},
]


def delta_of(text: str, index: int = 0) -> Json:
    return {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}}


def write_named(*events: Json, end: str = "\n") -> bytes:
    lines = (f"event: {event['type']}{end}data: {json.dumps(event)}{end}{end}" for event in events)
    return "".join(lines).encode()


def make_stream() -> TranslatedStream:
    ask = make_ask()
    return TranslatedStream(ask, AnthropicTranslation(), ChunkWriter(ask, "chatcmpl-ours", 1234))


def pour(stream: TranslatedStream, *pieces: bytes) -> str:
    """Return the text that a caller gets of these reads of a whole reply."""
    out = b""
    for piece in pieces:
        quick = stream.quick(piece) if stream.quick else None
        out += stream.feed(piece) if quick is None else quick
    chunks = read_whole(out + stream.end())
    return "".join(choice["delta"].get("content", "") for chunk in chunks for choice in chunk["choices"])


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_several_events_in_one_read_are_enough_to_learn_the_template(end):
    stream = make_stream()
    stream.feed(write_named(START, BLOCK, delta_of("a"), delta_of("b"), end=end))
    assert stream.quick is not None
    passed = stream.quick(write_named(delta_of("c"), delta_of("d"), end=end))
    assert passed is not None
    assert b'"content":"c"' in passed
    assert stream.characters == 4


def test_the_template_is_not_learned_of_an_event_that_began_in_an_earlier_read():
    stream = make_stream()
    text = write_named(delta_of("a"))
    stream.feed(write_named(START, BLOCK) + text[:9])
    stream.feed(text[9:])
    assert stream.quick is None


def test_a_ping_is_no_text_even_if_the_text_is_its_name():
    pings = [write_named(PING)] * 3
    reads = [write_named(START), write_named(BLOCK, delta_of("ping"), PING), *pings, write_named(*FINISH)]
    assert pour(make_stream(), *reads) == "ping"


def test_a_text_of_another_block_is_parsed():
    reads = [write_named(START, BLOCK, delta_of("a")), write_named(delta_of("b", 1)), write_named(*FINISH)]
    assert pour(make_stream(), *reads) == "ab"


def test_the_whole_message_at_the_end_is_not_passed_on_again():
    ask = make_ask()
    stream = TranslatedStream(ask, ChunkTranslation(ask, "ours", 1), ChunkWriter(ask, "chatcmpl-ours", 1234))
    whole = {"index": 0, "message": {"role": "assistant", "content": "Hello you"}, "finish_reason": "stop"}
    reads = [write(text_of("Hel")), write(text_of("lo ")), write(text_of("you")), write(chunk_of(whole))]
    assert pour(stream, *reads, b"data: [DONE]\n\n") == "Hello you"


def test_numbers_and_padding_of_events_differ():
    ask = make_ask()
    stream = TranslatedStream(ask, ResponsesTranslation(), ChunkWriter(ask, "chatcmpl-ours", 1234))
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    texts = ["Hel", "lo ", '"sequence_number":9,', "you"]
    deltas = [
        {"type": "response.output_text.delta", "sequence_number": number, **place, "delta": text, "obfuscation": "xyz"}
        for number, text in enumerate(texts, 8)
    ]
    done = {"type": "response.completed", "response": {"status": "completed", "output": []}}
    created = {"type": "response.created", "sequence_number": 0, "response": {"id": "resp_1"}}
    first, *others = (write_named(event) for event in deltas)
    stream.feed(write_named(created))
    stream.feed(first)
    assert stream.quick is not None
    assert stream.quick(others[0]) is not None
    assert stream.quick(others[1]) is None
    assert stream.characters == 6
    again = TranslatedStream(ask, ResponsesTranslation(), ChunkWriter(ask, "chatcmpl-ours", 1234))
    assert pour(again, first, *others, write_named(done)) == "".join(texts)


texts = some.text(some.sampled_from('abc "\\{}:\u00e9\U0001f600\n'), max_size=6)
others = some.sampled_from([PING, {"type": "new_event", "text": "no"}])
events = some.lists(some.one_of(texts.map(delta_of), texts.map(lambda text: delta_of(text, 1)), others), max_size=20)


@given(events, some.lists(some.integers(0, 4000), max_size=8), some.booleans())
def test_templates_change_nothing(given_events, places, is_cut_by_event):
    raw = [write_named(event) for event in (START, BLOCK, *given_events, *FINISH)]
    whole = b"".join(raw)
    ends = sorted({place % (len(whole) + 1) for place in places} | {0, len(whole)})
    reads = raw if is_cut_by_event else [whole[start:end] for start, end in pairwise(ends)]
    expected = "".join(event["delta"]["text"] for event in given_events if "delta" in event)
    stream = make_stream()
    assert pour(stream, *reads) == expected
    assert stream.characters == len(expected)

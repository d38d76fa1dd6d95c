"""Streams in the caller's own dialect: bytes and counts do not depend on how they are cut into reads."""

import json
from itertools import pairwise

import pytest
from chat_chunks import Json, make_ask
from hypothesis import given
from hypothesis import strategies as some

from penstock.chat.doors.messages.door import MessagesDoor
from penstock.chat.doors.responses.door import ResponsesDoor
from penstock.chat.replies.stream import Stream

PLACE = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
texts = some.lists(some.text(some.sampled_from('abc "\\{}:\u00e9\n'), min_size=1, max_size=6), max_size=12)


def write_messages(pieces: list[str]) -> list[Json]:
    message = {"id": "msg_1", "model": "m", "content": [], "usage": {"input_tokens": 3, "output_tokens": 1}}
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": it}} for it in pieces),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    ]


def write_responses(pieces: list[str]) -> list[Json]:
    usage = {"input_tokens": 3, "output_tokens": 7}
    events: list[Json] = [
        {"type": "response.created", "response": {"id": "resp_1"}},
        *({"type": "response.output_text.delta", **PLACE, "delta": piece, "logprobs": []} for piece in pieces),
        {"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "usage": usage}},
    ]
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


DIALECTS = {"messages": (MessagesDoor(), write_messages), "responses": (ResponsesDoor(), write_responses)}


def pour(stream: Stream, reads: list[bytes]) -> bytes:
    out = b""
    for read in reads:
        quick = stream.quick(read) if stream.quick else None
        out += stream.feed(read) if quick is None else quick
    return out + stream.end()


@pytest.mark.parametrize("dialect", DIALECTS)
@given(texts, some.lists(some.integers(0, 4000), max_size=6), some.booleans())
def test_bytes_and_counts_do_not_depend_on_the_reads(dialect, pieces, places, is_cut_by_event):
    door, write = DIALECTS[dialect]
    raw = [
        f"event: {event['type']}\ndata: {json.dumps(event, separators=(',', ':'))}\n\n".encode()
        for event in write(pieces)
    ]
    whole = b"".join(raw)
    ends = sorted({place % (len(whole) + 1) for place in places} | {0, len(whole)})
    stream = door.pass_stream(make_ask(), "chatcmpl-ours", 1234)
    assert pour(stream, raw if is_cut_by_event else [whole[start:end] for start, end in pairwise(ends)]) == whole
    assert stream.usage is not None
    assert (stream.usage.prompt, stream.usage.completion) == (3, 7)
    assert stream.characters == sum(map(len, pieces))

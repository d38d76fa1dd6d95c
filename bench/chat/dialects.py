"""A vendor for the benches that speaks three dialects: chat completions, Anthropic's Messages, OpenAI's Responses.

python -m bench.chat.dialects PORT

It answers by the path that is asked, as `bench.chat.upstream` does: a stream has the same 64 pieces of text in each
dialect, with the events that the dialect has around them.
"""

import json
import sys
from typing import Any, ClassVar, Final

import uvloop

from bench.chat.upstream import CHUNKS, PLAIN_REPLY, STREAM_HEAD, WRITES, Replies, Vendor, reply, serve

TEXTS: Final = [f" token{number}" for number in range(CHUNKS)]
WHOLE_TEXT: Final = " token" * CHUNKS


def write_event(kind: str, **fields: Any) -> bytes:
    """Return an event with a name, as an HTTP chunk."""
    body = json.dumps({"type": kind, **fields}, separators=(",", ":")).encode()
    event = b"event: %b\ndata: %b\n\n" % (kind.encode(), body)
    return b"%x\r\n%b\r\n" % (len(event), event)


def end_stream(writes: list[bytes]) -> list[bytes]:
    """Return the writes with the head before the first and the end after the last."""
    return [STREAM_HEAD + writes[0], *writes[1:-1], writes[-1] + b"0\r\n\r\n"]


# -- Anthropic's Messages

MESSAGE: Final[dict[str, Any]] = {
    "id": "msg_bench",
    "type": "message",
    "role": "assistant",
    "model": "bench",
    "content": [],
    "stop_reason": None,
    "stop_sequence": None,
    "usage": {
        "input_tokens": 80,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": 1,
        "service_tier": "standard",
    },
}
MESSAGES: Final = Replies(
    end_stream(
        [
            write_event("message_start", message=MESSAGE),
            write_event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
            write_event("ping"),
            *(write_event("content_block_delta", index=0, delta={"type": "text_delta", "text": it}) for it in TEXTS),
            write_event("content_block_stop", index=0),
            write_event(
                "message_delta",
                delta={"stop_reason": "end_turn", "stop_sequence": None},
                usage={"input_tokens": 80, "output_tokens": CHUNKS},
            ),
            write_event("message_stop"),
        ]
    ),
    reply(
        json.dumps(
            MESSAGE
            | {"content": [{"type": "text", "text": WHOLE_TEXT}], "stop_reason": "end_turn"}
            | {"usage": MESSAGE["usage"] | {"output_tokens": CHUNKS}},
            separators=(",", ":"),
        ).encode()
    ),
)

# -- OpenAI's Responses

RESPONSE: Final[dict[str, Any]] = {
    "id": "resp_bench",
    "object": "response",
    "created_at": 1_700_000_000,
    "status": "in_progress",
    "background": False,
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "max_output_tokens": None,
    "model": "bench",
    "output": [],
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": {"effort": None, "summary": None},
    "store": False,
    "temperature": 0.7,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
    "truncation": "disabled",
    "usage": None,
    "user": None,
    "metadata": {},
}
COUNTS: Final[dict[str, Any]] = {
    "input_tokens": 80,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": CHUNKS,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 80 + CHUNKS,
}


def make_item(status: str, *content: dict[str, Any]) -> dict[str, Any]:
    """Return the message that a response consists of."""
    return {"id": "msg_bench", "type": "message", "status": status, "role": "assistant", "content": list(content)}


def make_part(text: str) -> dict[str, Any]:
    """Return the text of a message."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def complete(text: str) -> dict[str, Any]:
    """Return the response once it has this text."""
    return RESPONSE | {"status": "completed", "output": [make_item("completed", make_part(text))], "usage": COUNTS}


def list_response_events() -> list[bytes]:
    """Return the events of a response, numbered."""
    place = {"item_id": "msg_bench", "output_index": 0, "content_index": 0}
    text = "".join(TEXTS)
    events: list[tuple[str, dict[str, Any]]] = [
        ("response.created", {"response": RESPONSE}),
        ("response.in_progress", {"response": RESPONSE}),
        ("response.output_item.added", {"output_index": 0, "item": make_item("in_progress")}),
        ("response.content_part.added", {**place, "part": make_part("")}),
        *(("response.output_text.delta", {**place, "delta": piece, "logprobs": []}) for piece in TEXTS),
        ("response.output_text.done", {**place, "text": text, "logprobs": []}),
        ("response.content_part.done", {**place, "part": make_part(text)}),
        ("response.output_item.done", {"output_index": 0, "item": make_item("completed", make_part(text))}),
        ("response.completed", {"response": complete(text)}),
    ]
    return [write_event(kind, sequence_number=number, **fields) for number, (kind, fields) in enumerate(events)]


RESPONSES: Final = Replies(
    end_stream(list_response_events()), reply(json.dumps(complete(WHOLE_TEXT), separators=(",", ":")).encode())
)


class DialectVendor(Vendor):
    """Answers in the dialect of the path."""

    replies: ClassVar = {
        b"/messages": MESSAGES,
        b"/responses": RESPONSES,
        b"/completions": Replies(WRITES, PLAIN_REPLY),
    }


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), DialectVendor))

"""Answers put together from streams that are whole, cut, or odd."""

import json
from typing import Any

import pytest

from penstock.domain.chat import Dialect
from penstock.domain.content.answers import read_answer


def stream(*events: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + b"data: [DONE]\n\n"


def delta(choice: int = 0, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": choice, "delta": fields, "finish_reason": None}]}


def call(index: int, **fields: Any) -> dict[str, Any]:
    return {"index": index, **fields}


CHAT = stream(
    delta(role="assistant", reasoning_content="so "),
    delta(content="Hel"),
    delta(content="lo"),
    delta(1, content="Bye"),
    delta(tool_calls=[call(0, id="a", function={"name": "f", "arguments": '{"x":'})]),
    delta(tool_calls=[call(1, id="b", function={"name": "g", "arguments": "{}"})]),
    delta(tool_calls=[call(0, function={"arguments": " 1}"})]),
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
)


def test_a_stream_of_chat():
    first, second = read_answer(Dialect.CHAT, CHAT, is_stream=True)
    assert first.finish_reason == "tool_calls"
    assert first.parts == [
        {"type": "reasoning", "content": "so "},
        {"type": "text", "content": "Hello"},
        {"type": "tool_call", "id": "a", "name": "f", "arguments": '{"x": 1}'},
        {"type": "tool_call", "id": "b", "name": "g", "arguments": "{}"},
    ]
    assert second.parts == [{"type": "text", "content": "Bye"}]


@pytest.mark.parametrize("at", range(0, len(CHAT), 37))
def test_a_stream_may_be_cut_anywhere(at):
    found = read_answer(Dialect.CHAT, CHAT[:at], is_stream=True)
    texts = [part["content"] for message in found for part in message.parts if part["type"] == "text"]
    assert all("Hello".startswith(text) or text == "Bye" for text in texts)


def test_a_cut_stream_of_responses_has_what_came():
    body = stream(
        {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "role": "assistant"}},
        {"type": "response.output_text.delta", "output_index": 0, "delta": "Hel"},
        {"type": "response.output_text.delta", "output_index": 0, "delta": "lo"},
        {
            "type": "response.output_item.added",
            "output_index": 1,
            "item": {"type": "function_call", "call_id": "a", "name": "f", "arguments": ""},
        },
        {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": '{"x"'},
    )
    text, function = read_answer(Dialect.RESPONSES, body, is_stream=True)
    assert text.parts == [{"type": "text", "content": "Hello"}]
    assert function.parts == [{"type": "tool_call", "id": "a", "name": "f", "arguments": '{"x"'}]


def test_a_stream_of_messages():
    body = stream(
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "so"}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Hi"}},
        {
            "type": "content_block_start",
            "index": 2,
            "content_block": {"type": "tool_use", "id": "a", "name": "f", "input": {}},
        },
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"x": 1}'}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    )
    [message] = read_answer(Dialect.MESSAGES, body, is_stream=True)
    assert message.finish_reason == "tool_use"
    assert [part["type"] for part in message.parts] == ["reasoning", "text", "tool_call"]
    assert message.parts[2]["arguments"] == '{"x": 1}'


@pytest.mark.parametrize("dialect", list(Dialect))
@pytest.mark.parametrize("is_stream", [True, False])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"data: 7\n\n",
        b'data: {"choices": 7}\n\n',
        b'{"choices": [7, {"message": 7}], "content": 7, "output": [7]}',
        b'data: {"choices": [{"index": "x", "delta": {"content": 7, "tool_calls": [7]}}]}\n\n',
        b'data: {"type": "content_block_delta", "index": -1, "delta": {"text": "x"}}\n\n',
        b"[" * 100_000,
    ],
)
def test_odd_bodies_are_read_as_far_as_they_can_be(dialect, is_stream, body):
    assert isinstance(read_answer(dialect, body, is_stream=is_stream), list)

"""Replies written as responses, each event validated with the SDK's types."""

import json
from typing import Any

import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from penstock.chat.doors.responses.door import ResponsesDoor
from penstock.chat.doors.responses.writer import ResponsesWriter
from penstock.domain.chat import (
    Arguments,
    Finish,
    Opening,
    Part,
    Reason,
    Reasoning,
    RefusalText,
    Seal,
    Text,
    ToolCall,
    Usage,
)
from penstock.errors import ChatRateLimited, InsufficientBudget, InvalidRequest, PenstockError, VendorFailed

DOOR = ResponsesDoor()
EVENTS = TypeAdapter(ResponseStreamEvent)
USAGE = Usage(12, 9, 3, 2)
SEALED = "penstock-anthropic-e30"
TOOLS: list[Any] = [
    {"type": "function", "name": "f"},
    {"type": "namespace", "name": "files", "description": "Files.", "tools": [{"type": "function", "name": "read"}]},
    {"type": "custom", "name": "patch"},
]


def make_writer(**fields: Any) -> ResponsesWriter:
    ask = DOOR.read(json.dumps({"model": "m", "input": "Hi", **fields}).encode(), {})
    return DOOR.make_writer(ask, "chatcmpl-req_1", 1_790_000_000)


def read_events(out: bytes) -> list[Any]:
    """Events of a stream: named, numbered without a gap, and of shapes that the SDK knows."""
    *events, rest = out.split(b"\n\n")
    assert rest == b""
    found: list[Any] = []
    for number, event in enumerate(events):
        name, data = event.split(b"\n")
        record = json.loads(data.removeprefix(b"data: "))
        assert name == b"event: " + record["type"].encode()
        assert record["sequence_number"] == number
        EVENTS.validate_python(record)
        found.append(record)
    return found


def stream(*parts: Part, **fields: Any) -> list[Any]:
    writer = make_writer(stream=True, **fields)
    return read_events(b"".join(map(writer.take, parts)) + writer.finish(USAGE))


def whole(*parts: Part, **fields: Any) -> dict[str, Any]:
    writer = make_writer(**fields)
    assert b"".join(map(writer.take, parts)) == b""
    body = writer.whole(USAGE)
    Response.model_validate_json(body)
    return json.loads(body)


PARTS: list[Part] = [
    Opening("upstream", "m-2026"),
    Reasoning("I "),
    Reasoning("think."),
    Seal(SEALED),
    Text("Hello"),
    Text(' "you"\n'),
    RefusalText("No."),
    ToolCall("c1", "f"),
    Arguments('{"a"'),
    Arguments(":1}"),
    ToolCall("c2", "files__read"),
    ToolCall("c3", "patch"),
    Arguments('{"input":"é\\n"}'),
    Finish(Reason.TOOL_CALLS),
]


def test_whole_and_stream_hold_one_output():
    fields = {"tools": TOOLS, "include": ["reasoning.encrypted_content"], "instructions": "Be brief."}
    events = stream(*PARTS, **fields)
    last, body = events[-1]["response"], whole(*PARTS, **fields)
    assert last["output"] == body["output"]
    assert [item["type"] for item in last["output"]] == [
        "reasoning",
        "message",
        "function_call",
        "function_call",
        "custom_tool_call",
    ]
    reasoning, message, first, second, custom = last["output"]
    assert (reasoning["summary"][0]["text"], reasoning["encrypted_content"]) == ("I think.", SEALED)
    assert [part.get("text", part.get("refusal")) for part in message["content"]] == ['Hello "you"\n', "No."]
    assert (first["call_id"], first["name"], first["arguments"]) == ("c1", "f", '{"a":1}')
    assert (second["name"], second["namespace"], second["arguments"]) == ("read", "files", "{}")
    assert (custom["name"], custom["input"]) == ("patch", "é\n")
    assert last["usage"] == {
        "input_tokens": 12,
        "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 0},
        "output_tokens": 9,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 21,
    }
    assert (body["id"], body["model"], body["instructions"]) == ("resp_req_1", "m-2026", "Be brief.")


def test_items_are_announced_and_ended_in_order():
    events = stream(*PARTS, tools=TOOLS)
    added = [event for event in events if event["type"] == "response.output_item.added"]
    done = [event for event in events if event["type"] == "response.output_item.done"]
    assert [event["output_index"] for event in added] == [event["output_index"] for event in done] == [0, 1, 2, 3, 4]
    assert [event["item"]["id"] for event in added] == [event["item"]["id"] for event in done]
    assert [event["item"] for event in done] == events[-1]["response"]["output"]
    open_items: list[int] = []
    for event in events:
        if event["type"] == "response.output_item.added":
            open_items.append(event["output_index"])
        elif event["type"] == "response.output_item.done":
            open_items.remove(event["output_index"])
        elif "output_index" in event:
            assert open_items == [event["output_index"]]


def test_reasoning_is_never_inside_text():
    """As litellm#32357 for Messages: each block of reasoning is an item of its own."""
    events = stream(Text("a"), Reasoning("b"), Text("c"), Finish(Reason.STOP))
    assert [item["type"] for item in events[-1]["response"]["output"]] == ["message", "reasoning", "message"]


def test_a_seal_travels_in_the_call_id_if_the_client_does_not_ask_for_it():
    call = whole(Reasoning("x"), Seal(SEALED), ToolCall("c1", "f"), Finish(Reason.TOOL_CALLS))["output"][-1]
    assert call["call_id"] == f"c1_sealed_{SEALED}"


def test_a_seal_without_a_text():
    first = whole(Seal(SEALED), Text("x"), Finish(Reason.STOP), include=["reasoning.encrypted_content"])["output"][0]
    assert first == {"id": "rs_req_1_0", "type": "reasoning", "summary": [], "encrypted_content": SEALED}


@pytest.mark.parametrize(
    ("reason", "status", "detail"),
    [
        (Reason.STOP, "completed", None),
        (Reason.LENGTH, "incomplete", {"reason": "max_output_tokens"}),
        (Reason.FILTER, "incomplete", {"reason": "content_filter"}),
    ],
)
def test_ends(reason, status, detail):
    last = stream(Text("x"), Finish(reason))[-1]
    assert (last["type"], last["response"]["status"]) == (f"response.{status}", status)
    assert last["response"]["incomplete_details"] == detail
    assert last["response"]["output"][0]["status"] == status


def test_an_answer_without_a_text():
    events = stream(Finish(Reason.STOP))
    assert [event["type"] for event in events] == ["response.created", "response.in_progress", "response.completed"]
    assert events[-1]["response"]["output"] == []


def test_nothing_is_written_before_the_first_part():
    assert make_writer(stream=True).take(Opening("x", "y")) == b""


def test_the_quick_path_counts_on():
    writer = make_writer(stream=True)
    out = writer.take(Text("He")) + writer.frame(b"llo ") + writer.frame(b"you") + writer.take(Text("\N{SNOWMAN}"))
    events = read_events(out + writer.take(Finish(Reason.STOP)) + writer.finish(USAGE))
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "Hello you\N{SNOWMAN}"
    deltas = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
    assert deltas == ["He", "llo ", "you", "\N{SNOWMAN}"]


def test_half_of_a_surrogate_pair_does_no_harm():
    writer = make_writer(stream=True, instructions="x")
    out = writer.take(Text("\ud83d")) + writer.take(Text("\ude42")) + writer.take(Finish(Reason.STOP))
    text = json.loads((out + writer.finish(USAGE)).split(b"\n\n")[-2].split(b"\n")[1][6:])["response"]["output"]
    assert text[0]["content"][0]["text"] == "\N{SLIGHTLY SMILING FACE}"


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (VendorFailed("Broken."), "server_error", "Broken."),
        (ChatRateLimited("Too many.", retry_after=6.2), "rate_limit_exceeded", "Too many. Please try again in 7s."),
        (InsufficientBudget("Spent."), "insufficient_quota", "Spent."),
        (InvalidRequest("Long.", code="context_length_exceeded"), "context_length_exceeded", "Long."),
        (InvalidRequest("Bad."), "invalid_prompt", "Bad."),
    ],
)
def test_failures(error: PenstockError, code, message):
    writer = make_writer(stream=True)
    begun = writer.take(Text("Hel"))
    failed = json.loads(writer.fail(error, "req_1").split(b"\n")[1][6:])
    assert failed["type"] == "response.failed"
    assert failed["response"]["id"] == "resp_req_1"
    assert failed["response"]["status"] == "failed"
    assert failed["response"]["error"] == {"code": code, "message": message}
    assert failed["sequence_number"] == begun.count(b"event: ")


def test_what_the_request_said_is_repeated():
    asked: dict[str, Any] = {
        "temperature": 0.5,
        "top_p": 0.9,
        "max_output_tokens": 50,
        "metadata": {"a": "b"},
        "tools": TOOLS,
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "text": {"verbosity": "low"},
        "reasoning": {"effort": "low"},
        "user": "u",
        "prompt_cache_key": "k",
        "safety_identifier": "s",
        "service_tier": "flex",
        "truncation": "auto",
    }
    body = whole(Text("x"), Finish(Reason.STOP), **asked)
    assert {name: body[name] for name in asked.keys() - {"tools", "text"}} == {
        name: value for name, value in asked.items() if name not in ("tools", "text")
    }
    assert body["text"] == {"format": {"type": "text"}, "verbosity": "low"}
    assert body["tools"][0] == {"type": "function", "name": "f", "parameters": None, "strict": False}
    assert body["tools"][1:] == TOOLS[1:]
    assert body["store"] is False

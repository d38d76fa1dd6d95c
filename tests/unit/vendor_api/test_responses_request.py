"""Chat requests for vendors that speak Responses."""

import json
from typing import Any

import pytest

from penstock.chat import request
from penstock.errors import InvalidRequest
from penstock.vendor_api import seals
from penstock.vendor_api.dialects.responses_request import translate_request

USER = {"role": "user", "content": "Hi"}
ITEM = {"id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "gAAA"}


def translate(*messages: Any, **fields: Any) -> dict[str, Any]:
    body = {"model": "m", "messages": messages or [USER], **fields}
    found, _ = translate_request(request.read(json.dumps(body).encode()), wants_seals=False)
    return {
        name: value if isinstance(value, list | dict | int | bool) else json.loads(bytes(value))
        for name, value in found.items()
    }


def test_messages():
    image = {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}}
    file = {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA"}}
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
    found = translate(
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "See"}, image, file]},
        {"role": "assistant", "content": "Let me see.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "one"},
        {"role": "assistant", "content": None, "refusal": "No."},
    )["input"]
    assert found == [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "See"},
                {"type": "input_image", "image_url": "https://x/y.png", "detail": "low"},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AA"},
            ],
        },
        {"role": "assistant", "content": [{"type": "output_text", "text": "Let me see."}]},
        {"type": "function_call", "name": "f", "arguments": '{"a":1}', "call_id": "c1"},
        {"type": "function_call_output", "call_id": "c1", "output": "one"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
    ]


@pytest.mark.parametrize("place", ["message", "call"])
def test_seals_come_back_before_the_call(place):
    sealed = seals.seal("openai", [ITEM])
    call_id = seals.attach("c1", sealed) if place == "call" else "c1"
    call = {"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}}
    kept = {"sealed_reasoning": [sealed]} if place == "message" else {}
    found = translate(
        USER,
        {"role": "assistant", "content": None, "tool_calls": [call], **kept},
        {"role": "tool", "tool_call_id": call_id, "content": "x"},
    )["input"]
    assert found[1] == {**ITEM, "type": "reasoning"}
    assert found[2]["call_id"] == found[3]["call_id"] == "c1"


def test_seals_of_others_and_long_ids():
    call_id = seals.attach("c" * 99, seals.seal("anthropic", {}))
    call = {"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}}
    found = translate(
        USER,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": "x"},
    )["input"]
    assert [item.get("type") for item in found] == [None, "function_call", "function_call_output"]
    assert found[1]["call_id"] == found[2]["call_id"]
    assert len(found[1]["call_id"]) <= 64


def test_fields():
    schema = {"name": "a", "schema": {"type": "object"}, "strict": True}
    grammar = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "x"}}
    found = translate(
        max_tokens=50,
        reasoning_effort="low",
        verbosity="high",
        response_format={"type": "json_schema", "json_schema": schema},
        tools=[
            {"type": "function", "function": {"name": "f", "parameters": {}}},
            {"type": "custom", "custom": {"name": "p", "format": grammar}},
        ],
        tool_choice={"type": "function", "function": {"name": "f"}},
        parallel_tool_calls=False,
        user="u",
    )
    assert found == {
        "input": [USER],
        "store": False,
        "max_output_tokens": 50,
        "reasoning": {"effort": "low"},
        "text": {"verbosity": "high", "format": {"type": "json_schema", **schema}},
        "tools": [
            {"type": "function", "parameters": {}, "strict": False, "name": "f"},
            {"type": "custom", "name": "p", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}},
        ],
        "tool_choice": {"type": "function", "name": "f"},
        "parallel_tool_calls": False,
        "user": "u",
    }


def test_allowed_tools():
    tool = {"type": "function", "function": {"name": "f"}}
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [tool]}}
    found = translate(tools=[tool], tool_choice=choice)["tool_choice"]
    assert found == {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n": 2}, "n"),
        ({"stop": "x"}, "stop"),
        ({"logit_bias": {"1": 2}}, "logit_bias"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"tools": [{"type": "function"}]}, "tools[0]"),
        ({"response_format": {"type": "sonnet"}}, "response_format"),
    ],
)
def test_what_is_refused(fields, param):
    with pytest.raises(InvalidRequest) as caught:
        translate(**fields)
    assert caught.value.param == param


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}]},
        {"role": "function", "name": "f", "content": "x"},
        {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "assistant", "tool_calls": [{"id": "c", "type": "function"}]},
    ],
)
def test_messages_that_are_refused(message):
    with pytest.raises(InvalidRequest) as caught:
        translate(USER, message)
    assert str(caught.value.param).startswith("messages[1]")


def test_what_has_no_effect_or_no_place():
    body = {"model": "m", "messages": [USER], "seed": 1, "top_k": 5, "n": 1, "stop": [], "metadata": {"a": "b"}}
    fields, left_out = translate_request(request.read(json.dumps(body).encode()), wants_seals=True)
    assert left_out == ("seed", "top_k")
    assert fields.keys() == {"input", "metadata", "store", "include"}

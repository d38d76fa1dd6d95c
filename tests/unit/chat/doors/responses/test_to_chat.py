"""Responses requests in the chat dialect."""

import json
from typing import Any

import pytest

from penstock.chat.doors.responses.door import ResponsesDoor
from penstock.domain.chat import Ask
from penstock.errors import InvalidRequest

DOOR = ResponsesDoor()
USER = {"role": "user", "content": "Hi"}


def read(**fields: Any) -> Ask:
    return DOOR.read(json.dumps({"model": "m", "input": "Hi", **fields}).encode(), {})


def translate(**fields: Any) -> dict[str, Any]:
    """The fields of the chat request."""
    ask = DOOR.to_chat(read(**fields))
    return {name: ask.field(name) for name in ask.fields}


def messages(*items: Any, **fields: Any) -> list[Any]:
    return translate(input=list(items), **fields)["messages"]


def left_out(**fields: Any) -> tuple[str, ...]:
    return DOOR.to_chat(read(**fields)).left_out


# -- reading


def test_a_text():
    ask = read(instructions="Be brief.", stream=True, max_output_tokens=7)
    assert (ask.model, ask.stream, ask.max_tokens) == ("m", True, 7)
    chat = DOOR.to_chat(ask)
    assert (chat.dialect, chat.stream, chat.max_tokens, chat.prompt) == ("chat", True, 7, ask.prompt)
    assert chat.field("messages") == [{"role": "system", "content": "Be brief."}, USER]
    assert chat.field("max_completion_tokens") == 7


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"input": None}, "input", "missing_required_parameter"),
        ({"input": None, "instructions": "Hi"}, "input", "missing_required_parameter"),
        ({"input": []}, "input", "empty_array"),
        ({"input": 7}, "input", "invalid_type"),
        ({"model": None}, "model", "missing_required_parameter"),
        ({"stream": "yes"}, "stream", "invalid_type"),
        ({"max_output_tokens": 0}, "max_output_tokens", "integer_below_min_value"),
        ({"conversation": "conv_1"}, "conversation", "unsupported_parameter"),
        ({"prompt": {"id": "p"}}, "prompt", "unsupported_parameter"),
    ],
)
def test_what_is_wrong_is_named(fields, param, code):
    with pytest.raises(InvalidRequest) as caught:
        read(**fields)
    assert (caught.value.param, caught.value.code) == (param, code)
    if code == "unsupported_parameter":
        assert caught.value.suggestion


def test_what_is_switched_off_is_no_error():
    assert read(store=False, background=False, previous_response_id=None).model == "m"


# -- messages


def test_items_of_the_assistant_are_one_message():
    call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": '{"a":1}'}
    found = messages(
        USER,
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me see."}]},
        call,
        {**call, "call_id": "c2"},
        {"type": "function_call_output", "call_id": "c1", "output": "one"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "two"}]},
    )
    calls = [
        {"id": name, "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}} for name in ("c1", "c2")
    ]
    assert found == [
        USER,
        {"role": "assistant", "content": "Let me see.", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "content": "one"},
        {"role": "tool", "tool_call_id": "c2", "content": "two"},
    ]


def test_parts_of_a_message():
    image = "data:image/png;base64,AAAA"
    (found,) = messages(
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "See"},
                {"type": "input_image", "image_url": image, "detail": "low"},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AA"},
            ],
        }
    )
    assert found["content"] == [
        {"type": "text", "text": "See"},
        {"type": "image_url", "image_url": {"url": image, "detail": "low"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA"}},
    ]


def test_roles_in_mid_conversation_and_refusals():
    found = messages(
        {"role": "developer", "content": [{"type": "input_text", "text": "Be kind."}]},
        USER,
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        {"role": "system", "content": "Be brief."},
    )
    assert [message["role"] for message in found] == ["developer", "user", "assistant", "system"]
    assert found[2]["content"] == [{"type": "refusal", "refusal": "No."}]
    assert found[3]["content"] == "Be brief."


def test_pictures_of_tools_follow_all_outputs():
    call = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
    picture = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
    found = messages(
        call,
        {**call, "call_id": "c2"},
        {"type": "function_call_output", "call_id": "c1", "output": [picture]},
        {"type": "function_call_output", "call_id": "c2", "output": "two"},
        USER,
    )
    assert [message["role"] for message in found] == ["assistant", "tool", "tool", "user", "user"]
    assert found[3]["content"][0]["type"] == "image_url"


def test_reasoning_goes_to_the_message_that_follows():
    found = messages(
        USER,
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "Hm."}],
            "encrypted_content": "penstock-anthropic-e30",
        },
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "x"},
    )
    assert found[1]["sealed_reasoning"] == ["penstock-anthropic-e30"]
    assert found[1]["reasoning_content"] == "Hm."
    assert found[1]["content"] is None


def test_encrypted_reasoning_of_others_is_left_out():
    items = [
        USER,
        {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"},
        {"role": "assistant", "content": "x"},
    ]
    assert left_out(input=items) == ("reasoning.encrypted_content",)


def test_calls_of_other_tools():
    action = {"type": "exec", "command": ["ls"]}
    found = messages(
        {"type": "local_shell_call", "call_id": "c1", "status": "completed", "action": action},
        {"type": "local_shell_call_output", "call_id": "c1", "output": "a.txt"},
    )
    function = found[0]["tool_calls"][0]["function"]
    assert (function["name"], json.loads(function["arguments"])) == ("local_shell", {"action": action})
    assert found[1]["content"] == "a.txt"
    assert left_out(input=[USER, {"type": "web_search_call", "id": "ws_1"}]) == ("input.web_search_call",)


@pytest.mark.parametrize(
    "item",
    [
        {"type": "item_reference", "id": "msg_1"},
        {"type": "compaction", "encrypted_content": "x"},
        {"role": "critic", "content": "x"},
        {"role": "user", "content": [{"type": "input_image", "file_id": "file_1"}]},
        {"role": "user", "content": [{"type": "hologram"}]},
        {"role": "user", "content": 7},
        {"type": "function_call", "name": "f", "arguments": "{}"},
        "text",
    ],
)
def test_items_that_cannot_be_translated_are_refused(item):
    with pytest.raises(InvalidRequest) as caught:
        messages(item)
    assert caught.value.param is not None
    assert caught.value.param.startswith("input[0]")


# -- the other fields


def test_settings():
    schema = {"type": "object", "properties": {}}
    found = translate(
        reasoning={"effort": "low", "summary": "auto"},
        text={"verbosity": "low", "format": {"type": "json_schema", "name": "a", "schema": schema, "strict": True}},
        temperature=0.5,
        top_p=0.9,
        user="u",
        prompt_cache_key="k",
        metadata={"a": "b"},
        include=["reasoning.encrypted_content"],
        client_metadata={"x": "y"},
        truncation="disabled",
    )
    assert found == {
        "model": "m",
        "messages": [USER],
        "reasoning_effort": "low",
        "verbosity": "low",
        "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema, "strict": True}},
        "temperature": 0.5,
        "top_p": 0.9,
        "user": "u",
        "prompt_cache_key": "k",
    }


def test_what_chat_has_not_is_named():
    assert left_out(truncation="auto", max_tool_calls=3, top_logprobs=0, include=["web_search_call.results"]) == (
        "truncation",
        "max_tool_calls",
    )

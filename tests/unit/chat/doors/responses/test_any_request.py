"""Requests of any shape: translated, or refused with a reason."""

import json
from typing import Any

from chat_samples import anything, plain
from hypothesis import given
from hypothesis import strategies as some

from penstock.chat.doors.responses.door import ResponsesDoor
from penstock.domain.chat import Finish, Reason, Text, ToolCall, Usage
from penstock.errors import InvalidRequest
from penstock.vendor_api.dialects.responses_request import adapt_request

DOOR = ResponsesDoor()
WORDS = some.sampled_from(
    [
        *("type", "role", "content", "text", "name", "namespace", "call_id", "arguments", "input", "output", "tools"),
        *("summary", "encrypted_content", "image_url", "file_data", "refusal", "mode", "format", "schema", "effort"),
    ]
)
VALUES = some.sampled_from(
    [
        *(
            "message",
            "function_call",
            "function_call_output",
            "custom_tool_call",
            "custom_tool_call_output",
            "reasoning",
        ),
        *("user", "assistant", "developer", "input_text", "input_image", "input_file", "output_text", "namespace"),
        *("function", "custom", "web_search", "allowed_tools", "auto", "required", "json_schema", "json_object"),
        *(
            "additional_tools",
            "local_shell_call",
            "penstock-openai-e30",
            "penstock-openai-W3t9XQ",
            "c_sealed_penstock-x-",
        ),
    ]
)
LIKELY = some.recursive(
    plain | VALUES,
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(WORDS, inner, max_size=5),
    max_leaves=15,
)
FIELDS = some.dictionaries(
    some.sampled_from(
        [
            *("instructions", "tools", "tool_choice", "reasoning", "text", "include", "metadata", "truncation", "user"),
            *("parallel_tool_calls", "max_output_tokens", "store", "prompt", "stream_options", "temperature", "else"),
        ]
    ),
    LIKELY | anything,
    max_size=4,
)


@given(given_input=some.lists(LIKELY, min_size=1, max_size=4) | LIKELY, fields=FIELDS)
def test_any_request_is_translated_or_refused_with_a_reason(given_input, fields):
    try:
        messages = translate(json.dumps({"model": "m", "input": given_input, **fields}).encode())
    except InvalidRequest as error:
        refusal = error
    else:
        assert all(message["role"] in ("system", "developer", "user", "assistant", "tool") for message in messages)
        return
    assert refusal.message
    assert refusal.param
    assert refusal.code


def translate(body: bytes) -> list[Any]:
    ask = DOOR.read(body, {})
    check_adapted(adapt_request(ask)[0])
    chat = DOOR.to_chat(ask)
    writer = DOOR.make_writer(ask, "chatcmpl-req_1", 1)
    for part in (Text("x"), ToolCall("c", "f"), Finish(Reason.STOP)):
        writer.take(part)
    json.loads(writer.whole(Usage()))
    return chat.field("messages")


def check_adapted(fields: dict[str, Any]) -> None:
    found = fields["input"]
    items = [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
    sealed = [str(item.get("encrypted_content")) for item in items if item.get("type") == "reasoning"]
    assert not any(text.startswith("penstock-") for text in sealed)

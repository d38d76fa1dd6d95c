"""Every field that an SDK can send: each vendor gets it, or it is refused, or it is named as left out."""

from typing import Any

import pytest
from anthropic.types.message_create_params import MessageCreateParamsBase
from doors.neutral import Json
from doors.speakers import DOORS, VENDORS, send
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from openai.types.responses.response_create_params import ResponseCreateParamsBase

from penstock.errors import InvalidRequest
from penstock.vendor_api.seals import attach, seal

FUNCTION: Json = {"name": "f", "description": "Do it.", "parameters": {"type": "object", "properties": {}}}
SCHEMA: Json = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
BASES: dict[str, Json] = {
    "chat": {
        "messages": [{"role": "user", "content": "Hello"}],
        "tools": [{"type": "function", "function": FUNCTION}],
    },
    "messages": {
        "messages": [{"role": "user", "content": "Hello"}],
        "max_tokens": 100,
        "tools": [{"name": "f", "description": "Do it.", "input_schema": FUNCTION["parameters"]}],
    },
    "responses": {"input": "Hello", "tools": [{"type": "function", **FUNCTION}]},
}
"""A request with a tool, so that settings of tools have a meaning."""
SHARED: Json = {
    "metadata": {"project": "x"},
    "moderation": {"model": "omni-moderation-latest"},
    "parallel_tool_calls": False,
    "prompt_cache_key": "key",
    "prompt_cache_options": {"mode": "explicit"},
    "prompt_cache_retention": "24h",
    "safety_identifier": "user-1",
    "service_tier": "priority",
    "store": True,
    "temperature": 0.5,
    "top_logprobs": 3,
    "top_p": 0.5,
    "user": "user-1",
}
VALUES: dict[str, Json] = {
    "chat": SHARED
    | {
        "audio": {"voice": "alloy", "format": "wav"},
        "frequency_penalty": 1,
        "function_call": "auto",
        "functions": [FUNCTION],
        "logit_bias": {"50256": -100},
        "logprobs": True,
        "max_completion_tokens": 7,
        "max_tokens": 7,
        "modalities": ["text", "audio"],
        "n": 2,
        "prediction": {"type": "content", "content": "x"},
        "presence_penalty": 1,
        "reasoning_effort": "high",
        "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}},
        "seed": 7,
        "stop": ["END"],
        "tool_choice": "required",
        "verbosity": "low",
        "web_search_options": {"search_context_size": "low"},
    },
    "messages": {
        "cache_control": {"type": "ephemeral"},
        "container": "container_1",
        "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]},
        "diagnostics": {"previous_message_id": "msg_1"},
        "inference_geo": "eu",
        "mcp_servers": [{"type": "url", "url": "https://example.com", "name": "x"}],
        "metadata": {"user_id": "user-1"},
        "output_config": {"effort": "high"},
        "service_tier": "standard_only",
        "speed": "fast",
        "stop_sequences": ["END"],
        "system": "Be brief.",
        "temperature": 0.5,
        "thinking": {"type": "enabled", "budget_tokens": 2048},
        "tool_choice": {"type": "any"},
        "top_k": 3,
        "top_p": 0.5,
        "user_profile_id": "profile_1",
        "workspace_id": "workspace_1",
    },
    "responses": SHARED
    | {
        "access_programs": ["x"],
        "background": True,
        "context_management": [{"type": "compaction", "compact_threshold": 1000}],
        "conversation": "conv_1",
        "image": {"x": 1},
        "instructions": "Be brief.",
        "max_output_tokens": 7,
        "max_tool_calls": 2,
        "previous_response_id": "resp_1",
        "prompt": {"id": "pmpt_1"},
        "reasoning": {"effort": "high"},
        "text": {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}},
        "tool_choice": "required",
        "truncation": "auto",
    },
}
"""A value of each field that asks for something."""
BASIC = {"model", "messages", "input", "max_tokens", "tools", "stream_options", "include"}
"""Fields of every request, and those about the form of the reply, which the gateway itself obeys."""
OBEYED = {
    ("responses", "chat", "metadata"),
    ("responses", "anthropic", "metadata"),
    ("responses", "gemini", "metadata"),
}
OBEYED |= {(door, "gemini", "parallel_tool_calls") for door in DOORS}
OBEYED |= {("responses", vendor, field) for vendor in VENDORS for field in ("background", "store")}
"""What the gateway itself does: it returns metadata, keeps responses, and drops all calls but the first."""
RENAMED = {"stop_sequences": "stop", "metadata": "user"}
"""Names of the chat dialect, under which a vendor may report fields of another."""
SDKS: dict[str, Any] = {
    "chat": CompletionCreateParamsBase,
    "messages": MessageCreateParamsBase,
    "responses": ResponseCreateParamsBase,
}
CASES = [(door, vendor, field) for door in DOORS for vendor in VENDORS for field in VALUES[door]]


@pytest.mark.parametrize("door", DOORS)
def test_all_fields_of_the_sdk_are_tried(door: str) -> None:
    assert SDKS[door].__annotations__.keys() - BASIC <= VALUES[door].keys()


@pytest.mark.parametrize(("door", "vendor", "field"), CASES)
def test_no_field_is_dropped_silently(door: str, vendor: str, field: str) -> None:
    base = BASES[door] | ({"logprobs": True} if (door, field) == ("chat", "top_logprobs") else {})
    before = send(door, vendor, BASES[door]).body
    try:
        sent = send(door, vendor, {**base, field: VALUES[door][field]})
    except InvalidRequest as refused:
        told = refused.message
        assert field in told or RENAMED.get(field, "logprobs") in told, told
        return
    left_out = {name.partition(".")[0] for name in sent.left_out} - set(send(door, vendor, BASES[door]).left_out)
    if sent.body == before:
        is_named = left_out & {field, RENAMED.get(field, field)}
        assert is_named or (door, vendor, field) in OBEYED, f"{field} is dropped silently: {sent.left_out}"


@pytest.mark.parametrize("vendor", VENDORS)
def test_what_has_no_effect_is_not_named(vendor: str) -> None:
    idle = {"store": False, "n": 1, "logprobs": False, "metadata": {}, "service_tier": "auto", "verbosity": "medium"}
    assert send("chat", vendor, BASES["chat"] | idle | {"presence_penalty": 0}).left_out == ()


PIXEL = "data:image/png;base64,iVBORw0KGgo="
PARTS: dict[str, tuple[Json, str]] = {
    "a name": ({"role": "user", "content": "Hello", "name": "Ann"}, "messages.name"),
    "detail": (
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": PIXEL, "detail": "high"}}]},
        "messages.content.image_url.detail",
    ),
    "a cache mark": (
        {"role": "user", "content": [{"type": "text", "text": "Hello", "cache_control": {"type": "ephemeral"}}]},
        "messages.content.cache_control",
    ),
    "reasoning": ({"role": "assistant", "content": "Hi", "reasoning_content": "Hm."}, "reasoning"),
    "audio": ({"role": "assistant", "content": "Hi", "audio": {"id": "audio_1"}}, "messages.audio"),
}
"""Messages, each with something that only OpenAI's chat has."""


@pytest.mark.parametrize("vendor", ["anthropic", "gemini"])
@pytest.mark.parametrize("part", PARTS)
def test_no_field_of_a_message_is_dropped_silently(part: str, vendor: str) -> None:
    message, name = PARTS[part]
    body = {"messages": [{"role": "user", "content": "Hello"}, message, {"role": "user", "content": "Go on."}]}
    assert send("chat", vendor, body).left_out == (name,)


@pytest.mark.parametrize("vendor", ["anthropic", "gemini"])
def test_strict_tools_are_named(vendor: str) -> None:
    tools = [{"type": "function", "function": {**FUNCTION, "strict": True}}]
    assert send("chat", vendor, BASES["chat"] | {"tools": tools}).left_out == ("tools.strict",)


@pytest.mark.parametrize("vendor", ["responses", "anthropic", "gemini"])
def test_a_refusal_of_an_earlier_turn_is_sent(vendor: str) -> None:
    turns = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": None, "refusal": "I will not."}]
    assert "I will not." in str(send("chat", vendor, {"messages": [*turns, turns[0]]}).body)


@pytest.mark.parametrize("data", [7, "x", {"type": "thinking"}, [7], [{"type": "tool_use"}], None])
@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("sealer", ["anthropic", "openai", "gemini", "none"])
def test_a_forged_seal_does_no_harm(sealer: str, vendor: str, data: Any) -> None:
    """Callers can write seals themselves: no vendor gets anything but reasoning from them."""
    sealed = seal(sealer, data)
    call = {"type": "tool_use", "id": attach("toolu_1", sealed), "name": "f", "input": {}}
    turn = [{"type": "thinking", "thinking": "Hm.", "signature": sealed}, call]
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "Done."}
    messages = [("user", "Hello"), ("assistant", turn), ("user", [result])]
    body = {"messages": [{"role": role, "content": content} for role, content in messages], "max_tokens": 100}
    send("messages", vendor, BASES["messages"] | body)
    function = {"name": "f", "arguments": "{}"}
    called = {"role": "assistant", "tool_calls": [{"id": call["id"], "type": "function", "function": function}]}
    answered = {"role": "tool", "tool_call_id": call["id"], "content": "Done."}
    send("chat", vendor, BASES["chat"] | {"messages": [*BASES["chat"]["messages"], called, answered]})
    thought = {"type": "reasoning", "summary": [], "encrypted_content": sealed}
    item = {"type": "function_call", "call_id": call["id"], "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": call["id"], "output": "Done."}
    send("responses", vendor, BASES["responses"] | {"input": [thought, item, output]})

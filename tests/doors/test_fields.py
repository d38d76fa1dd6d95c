"""Every field that an SDK can send: each vendor gets it, or it is refused, or it is named as left out."""

from typing import Any

import pytest
from anthropic.types.message_create_params import MessageCreateParamsBase
from doors.neutral import Json
from doors.speakers import DOORS, VENDORS, send
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from openai.types.responses.response_create_params import ResponseCreateParamsBase

from penstock.errors import InvalidRequest

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
"""What the gateway itself does: it returns metadata with the response, and drops all calls but the first."""
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

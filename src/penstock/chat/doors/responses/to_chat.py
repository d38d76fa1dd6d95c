"""Translates a Responses request into the chat dialect."""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec

from penstock.chat.doors.responses.items import Conversation
from penstock.chat.doors.responses.tools import ToolTable, read_table, translate_choice
from penstock.domain.chat import Ask
from penstock.errors import InvalidRequest

Json: TypeAlias = dict[str, Any]

PASSED: Final = (
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "stream",
    "temperature",
    "top_p",
    "user",
)
"""Fields with one name in both dialects."""
READ: Final = frozenset(
    {"input", "instructions", "max_output_tokens", "model", "parallel_tool_calls", "reasoning", "text", "tool_choice"}
    | {"tools"}
)
"""Fields that are translated below."""
SILENT: Final = frozenset({"background", "client_metadata", "include", "metadata", "store", "stream_options"})
"""Fields without an effect on the answer. Metadata is returned with it; chat takes it only with stored answers."""
IDLE: Final[Mapping[str, Any]] = {"top_logprobs": 0, "truncation": "disabled"}
"""Fields that chat cannot express, each with the value that has no effect."""

_encode = msgspec.json.Encoder().encode


def translate(ask: Ask) -> Ask:
    """Return the request in the chat dialect, with the names of fields that it cannot express."""
    table = read_table(ask)
    conversation = _read_conversation(ask, table)
    translated: Json = {"messages": conversation.messages, **_translate_tools(ask, table), **_translate_output(ask)}
    if ask.max_tokens is not None:
        translated["max_completion_tokens"] = ask.max_tokens
    fields: dict[str, msgspec.Raw] = {"model": ask.fields["model"]}
    fields |= {name: msgspec.Raw(_encode(value)) for name, value in translated.items()}
    fields |= {name: ask.fields[name] for name in PASSED if name in ask.fields}
    return Ask(
        model=ask.model,
        fields=fields,
        stream=ask.stream,
        max_tokens=ask.max_tokens,
        size=ask.size,
        prompt=ask.prompt,
        left_out=(*_find_lost(ask), *table.left_out, *conversation.left_out),
    )


def _read_conversation(ask: Ask, table: ToolTable) -> Conversation:
    conversation = Conversation(table)
    match ask.field("instructions"):
        case None | "":
            pass
        case str(text):
            conversation.add_text("system", text)
        case [*items]:
            conversation.add_all(items, "instructions")
        case _:
            raise _wrong_type("instructions", "a string")
    match ask.field("input"):
        case str(text):
            conversation.add_text("user", text)
        case items:
            conversation.add_all(items, "input")
    return conversation


def _translate_tools(ask: Ask, table: ToolTable) -> Json:
    choice = ask.field("tool_choice")
    if not table:
        if choice in (None, "auto", "none"):
            return {}
        raise InvalidRequest(
            "Invalid 'tool_choice': none of the tools is supported with this model.",
            param="tool_choice",
            code="invalid_value",
        )
    found: Json = {"tools": table.functions}
    if choice is not None:
        found["tool_choice"] = translate_choice(choice, table)
    if "parallel_tool_calls" in ask.fields:
        found["parallel_tool_calls"] = ask.fields["parallel_tool_calls"]
    return found


def _translate_output(ask: Ask) -> Json:
    """Return the effort of reasoning, and the format and verbosity of the text."""
    found: Json = {}
    reasoning: Json = ask.field("reasoning") or {}
    if reasoning.get("effort") is not None:
        found["reasoning_effort"] = reasoning["effort"]
    text: Json = ask.field("text") or {}
    if text.get("verbosity") is not None:
        found["verbosity"] = text["verbosity"]
    match text.get("format"):
        case None | {"type": "text"}:
            pass
        case {"type": "json_object"}:
            found["response_format"] = {"type": "json_object"}
        case {"type": "json_schema", "schema": {}, **rest}:
            named = {name: rest[name] for name in ("name", "description", "strict") if rest.get(name) is not None}
            schema = {"name": "answer", **named, "schema": text["format"]["schema"]}
            found["response_format"] = {"type": "json_schema", "json_schema": schema}
        case _:
            raise InvalidRequest(
                "Invalid 'text.format': expected text, json_object, or json_schema with a 'schema'.",
                param="text.format",
                code="invalid_value",
            )
    return found


def _find_lost(ask: Ask) -> list[str]:
    known = READ | SILENT | set(PASSED)
    lost = [name for name in ask.fields if name not in known and ask.has(name, but=IDLE.get(name))]
    if "include" in ask.fields and b"logprobs" in bytes(ask.fields["include"]):
        lost.append("include.message.output_text.logprobs")
    return lost


def _wrong_type(name: str, expected: str) -> InvalidRequest:
    return InvalidRequest(f"Invalid type for '{name}': expected {expected}.", param=name, code="invalid_type")

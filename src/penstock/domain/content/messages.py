"""Messages of any chat dialect, read into the shape of OpenTelemetry's `gen_ai` conventions."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

from penstock.domain.guardrails.contents import decode_arguments, read_value

Json: TypeAlias = dict[str, Any]
Part: TypeAlias = dict[str, Any]
"""One part of a message: `type`, and `content`, the fields of a tool call, or the facts of a file."""

_CALLS: Final = frozenset({"function_call", "custom_tool_call", "mcp_call"})
_TEXTS: Final = frozenset({"text", "input_text", "output_text", "summary_text", "reasoning_text"})
_WHOLE: Final = frozenset({"content", "tool_calls", "function_call", "reasoning_content", "reasoning", "refusal"})
"""Fields of a message that are read one by one. If it has none of them, all its texts are taken."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a conversation."""

    role: str
    parts: list[Part]
    finish_reason: str | None = None

    def describe(self) -> Json:
        """Return the message as records show it."""
        end = {} if self.finish_reason is None else {"finish_reason": self.finish_reason}
        return {"role": self.role, "parts": self.parts, **end}


@dataclass(frozen=True, slots=True)
class LoggedConversation:
    """The content of one request and its answer."""

    instructions: list[Part] = field(default_factory=list[Part])
    """Instructions that stand beside the conversation."""
    input: list[Message] = field(default_factory=list[Message])
    output: list[Message] = field(default_factory=list[Message])
    is_partial: bool = False
    """True if some of it was not kept, as it is too long."""


def text_part(text: str) -> Part:
    """Return a part with a text."""
    return {"type": "text", "content": text}


def file_part(facts: Mapping[str, Any]) -> Part:
    """Return a part for a file: its kind and, if known, its hash, size and type. Never its bytes or its URL."""
    return {"type": "file", **facts}


def read_messages(value: Any, role: str = "user") -> list[Message]:
    """Return the messages in a conversation of any dialect: a text, or a list of messages and items."""
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    found = [read_message(item, role) for item in items]
    return [message for message in found if message.parts]


def read_message(item: Any, role: str = "user") -> Message:
    """Return one message or item. Texts of an unknown shape are taken as they are."""
    if not isinstance(item, dict):
        return Message(role, read_parts(item, role))
    given = cast("Json", item)
    own = given.get("role")
    role = own[:64] if isinstance(own, str) and own else role
    kind = given.get("type")
    if kind in _CALLS:
        return Message("assistant", [_call(given.get("call_id"), given.get("name"), _argument_of(given))])
    if isinstance(kind, str) and kind.endswith("_call_output"):
        return Message("tool", [_response(given.get("call_id"), given.get("output"))])
    if kind == "reasoning":
        return Message("assistant", list(_reasoning(given.get("summary"), given.get("content"))))
    parts = list(_fields(given, role)) if _WHOLE & given.keys() else list(_any_parts(given, role))
    if role == "tool":
        texts = [str(part.get("content", "")) for part in parts if part["type"] == "text"]
        files = [part for part in parts if part["type"] != "text"]
        return Message(role, [_response(given.get("tool_call_id"), "\n".join(texts)), *files])
    return Message(role, parts)


def read_parts(value: Any, role: str) -> list[Part]:
    """Return the parts of a message's content: a text, or a list of parts."""
    if isinstance(value, str):
        return list(_any_parts(value, role)) if value.startswith("data:") else [text_part(value)] if value else []
    if isinstance(value, list):
        return [part for item in cast("list[Any]", value) for part in _read_part(item, role)]
    return list(_any_parts(value, role))


def _fields(message: Json, role: str) -> Iterator[Part]:
    for name in ("reasoning_content", "reasoning"):
        if isinstance(message.get(name), str) and message[name]:
            yield {"type": "reasoning", "content": message[name]}
            break
    yield from read_parts(message.get("content"), role)
    if isinstance(message.get("refusal"), str) and message["refusal"]:
        yield text_part(message["refusal"])
    calls = message.get("tool_calls")
    for call in cast("list[Any]", calls) if isinstance(calls, list) else ():
        given = _as_object(call)
        function = _as_object(given.get("function")) or _as_object(given.get("custom"))
        yield _call(given.get("id"), function.get("name"), _argument_of(function))
    if legacy := _as_object(message.get("function_call")):
        yield _call(None, legacy.get("name"), _argument_of(legacy))


def _read_part(item: Any, role: str) -> Iterator[Part]:
    given = _as_object(item)
    kind = given.get("type")
    if kind in _TEXTS and isinstance(given.get("text"), str):
        if given["text"]:
            yield text_part(given["text"])
    elif kind == "thinking" and isinstance(given.get("thinking"), str):
        yield {"type": "reasoning", "content": given["thinking"]}
    elif kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        yield _call(given.get("id"), given.get("name"), given.get("input"))
    elif isinstance(kind, str) and kind.endswith("tool_result"):
        yield _response(given.get("tool_use_id"), given.get("content"))
    else:
        yield from _any_parts(item, role)


def _any_parts(value: Any, role: str) -> Iterator[Part]:
    """Yield the texts and files in a value of any shape."""
    if value is None:
        return
    content = read_value(value, role)
    yield from (text_part(each.text) for each in content.texts)
    yield from (file_part(facts) for facts in content.media)


def _reasoning(*given: Any) -> Iterator[Part]:
    for value in given:
        for part in read_parts(value, "assistant") if value else ():
            yield {**part, "type": "reasoning"} if part["type"] == "text" else part


def _call(call_id: Any, name: Any, arguments: Any) -> Part:
    written = write_arguments(arguments)
    return {"type": "tool_call", "id": str(call_id or ""), "name": str(name or ""), "arguments": written}


def _response(call_id: Any, value: Any) -> Part:
    """Return a tool's answer. Files in it are given by their facts."""
    content = read_value(value, "tool")
    texts = [each.text for each in content.texts] + [write_json(dict(facts)) for facts in content.media]
    return {"type": "tool_call_response", "id": str(call_id or ""), "response": "\n".join(texts)}


def _argument_of(given: Json) -> Any:
    return given.get("arguments", given.get("input"))


def write_arguments(value: Any) -> str:
    """Return arguments as JSON without escapes, in which a pattern finds what it looks for."""
    found = decode_arguments(value)
    return found if isinstance(found, str) else "" if found is None else write_json(found)


def write_json(value: Any) -> str:
    """Return a value as JSON whose letters are not escaped."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
    except (ValueError, RecursionError):  # nested too deeply
        return "\n".join(each.text for each in read_value(value, "").texts)


def _as_object(value: Any) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}

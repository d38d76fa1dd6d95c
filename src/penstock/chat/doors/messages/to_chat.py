"""Translates a Messages request into the chat dialect, and names what chat cannot express."""

import hashlib
from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

import msgspec
from msgspec import Raw, structs

from penstock.chat.doors.messages.left_out import LeftOut
from penstock.chat.doors.messages.turns import translate_turns
from penstock.domain.chat import Ask, Dialect
from penstock.errors import InvalidRequest

Json: TypeAlias = dict[str, Any]

READ: Final = (
    *("model", "messages", "system", "max_tokens", "stream", "tools", "tool_choice", "stop_sequences", "metadata"),
    *("temperature", "top_p", "top_k", "thinking", "output_config", "output_format"),
)
"""Fields that are translated; all others are left out."""
UNCHANGED: Final = ("temperature", "top_p", "top_k", "stream")
CHOICES: Final = {"auto": "auto", "any": "required", "none": "none"}
TOOL_FIELDS: Final = ("type", "name", "description", "input_schema", "strict")
EFFORTS: Final = {"low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}
"""Effort in chat, where only these three are known to most models."""
BUDGETS: Final = ((4_096, "low"), (16_384, "medium"))
"""Reasoning tokens below which an effort is enough."""
MAX_USER_CHARACTERS: Final = 64
"""Longer ids are hashed, because vendors refuse them."""


def translate(ask: Ask) -> Ask:
    """Return the request in the chat dialect."""
    left_out = LeftOut()
    for name in ask.fields:
        if name not in READ:
            left_out.add(name)
    fields: dict[str, Any] = {"model": ask.model, "messages": translate_turns(ask, left_out)}
    fields |= {name: ask.fields[name] for name in UNCHANGED if name in ask.fields}
    fields |= {"max_tokens": ask.fields["max_tokens"]} if "max_tokens" in ask.fields else {}
    fields |= {"stop": ask.fields["stop_sequences"]} if ask.has("stop_sequences", but=[]) else {}
    fields |= _translate_tools(ask, left_out) | _translate_output(ask, left_out) | _translate_user(ask, left_out)
    return structs.replace(
        ask,
        dialect=Dialect.CHAT,
        fields={name: _as_raw(value) for name, value in fields.items()},
        headers={},
        left_out=ask.left_out + left_out.names,
    )


def _as_raw(value: Any) -> Raw:
    return value if isinstance(value, Raw) else Raw(msgspec.json.encode(value))


def read_object(ask: Ask, name: str) -> Json:
    """Return a field that must be an object; an empty one if it is absent."""
    found = ask.field(name)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise InvalidRequest(f"{name}: expected an object.", param=name, code="invalid_type")
    return cast("Json", found)


# -- tools


def _translate_tools(ask: Ask, left_out: LeftOut) -> Json:
    found: Any = ask.field("tools") or ()
    if not found:
        if ask.has("tool_choice"):
            left_out.add("tool_choice")
        return {}
    if not isinstance(found, list) or not all(isinstance(tool, dict) for tool in cast("list[Any]", found)):
        raise InvalidRequest("tools: expected an array of objects.", param="tools", code="invalid_type")
    functions: list[Json] = []
    for index, tool in enumerate(cast("list[Json]", found)):
        kind = tool.get("type") or "custom"
        if kind == "custom":
            functions.append(_translate_tool(tool, f"tools.{index}", left_out))
        else:
            left_out.add(f"tools.{kind}")  # the vendor's own, such as a search
    names = {function["name"] for function in functions}
    choice = _translate_choice(read_object(ask, "tool_choice"), names, left_out)
    tools = [{"type": "function", "function": function} for function in functions]
    return {"tools": tools, **choice} if tools else {}


def _translate_tool(tool: Json, place: str, left_out: LeftOut) -> Json:
    name = tool.get("name")
    if not isinstance(name, str):
        raise InvalidRequest(f"{place}.name: Field required", param=f"{place}.name", code="missing_required_parameter")
    left_out.add_unknown(tool, TOOL_FIELDS)
    described = {"description": tool["description"]} if tool.get("description") else {}
    strict = {"strict": tool["strict"]} if isinstance(tool.get("strict"), bool) else {}
    return {"name": name, **described, "parameters": tool.get("input_schema") or {"type": "object"}, **strict}


def _translate_choice(choice: Json, names: set[str], left_out: LeftOut) -> Json:
    kind = choice.get("type")
    parallel = {"parallel_tool_calls": False} if choice.get("disable_parallel_tool_use") is True else {}
    if kind == "tool" and choice.get("name") in names:
        return {"tool_choice": {"type": "function", "function": {"name": choice["name"]}}, **parallel}
    if kind in CHOICES and (names or kind != "any"):
        return {"tool_choice": CHOICES[kind], **parallel}
    if kind is not None:
        left_out.add("tool_choice")  # of a tool that is left out
    return parallel


# -- the output


def _translate_output(ask: Ask, left_out: LeftOut) -> Json:
    config, thinking = read_object(ask, "output_config"), read_object(ask, "thinking")
    shape = config.get("format") or ask.field("output_format")
    for name in config.keys() - {"effort", "format"}:
        left_out.add(f"output_config.{name}")
    effort = _translate_effort(config.get("effort"), thinking, left_out)
    return ({"reasoning_effort": effort} if effort else {}) | _translate_format(shape, left_out)


def _translate_effort(effort: Any, thinking: Mapping[str, Any], left_out: LeftOut) -> str | None:
    if thinking.get("display") == "omitted":
        left_out.add("thinking.display")
    if effort is not None and (effort not in ("low", "medium", "high") or thinking.get("type") == "disabled"):
        left_out.add("output_config.effort")  # only an approximation is sent, or nothing
    if thinking.get("type") == "disabled":
        return None
    if effort in EFFORTS:
        return EFFORTS[effort]
    budget = thinking.get("budget_tokens")
    if type(budget) is not int:
        return None  # the vendor's own default
    return next((effort for most, effort in BUDGETS if budget < most), "high")


def _translate_format(shape: Any, left_out: LeftOut) -> Json:
    match shape:
        case None:
            return {}
        case {"type": "json_schema", "schema": {**schema}}:
            asked = {"name": "output", "schema": schema} | ({"strict": True} if _is_strict(schema) else {})
            return {"response_format": {"type": "json_schema", "json_schema": asked}}
        case _:
            left_out.add("output_config.format")
            return {}


def _is_strict(schema: Any) -> bool:
    """Return whether a schema has the form that chat vendors hold answers to: no property is optional or unknown."""
    if isinstance(schema, list):
        return all(map(_is_strict, cast("list[Any]", schema)))
    if not isinstance(schema, dict):
        return True
    fields = cast("Json", schema)
    properties = fields.get("properties")
    if isinstance(properties, dict) and (
        fields.get("additionalProperties") is not False
        or set(fields.get("required") or ()) != cast("Json", properties).keys()
    ):
        return False
    return all(map(_is_strict, fields.values()))


def _translate_user(ask: Ask, left_out: LeftOut) -> Json:
    metadata = read_object(ask, "metadata")
    for name in metadata.keys() - {"user_id"}:
        left_out.add(f"metadata.{name}")
    user = metadata.get("user_id")
    if not isinstance(user, str) or not user:
        return {}
    is_long = len(user) > MAX_USER_CHARACTERS
    return {"user": hashlib.sha256(user.encode()).hexdigest() if is_long else user}

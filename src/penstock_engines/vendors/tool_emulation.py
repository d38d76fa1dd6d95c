"""Tools for a model without tool support: its answer is constrained to JSON that calls a tool or answers."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, cast

import msgspec

from penstock.domain.chat import (
    Arguments,
    Ask,
    End,
    Finish,
    Opening,
    Part,
    Reason,
    Text,
    ToolCall,
    Usage,
    Used,
    read_count,
)
from penstock.domain.ids import new_id
from penstock.errors import InvalidRequest
from penstock.vendor_api.dialects.openai_errors import read_fault
from penstock.vendor_api.generation import Reply

Json = dict[str, Any]
_REASONS = {"length": Reason.LENGTH, "content_filter": Reason.FILTER}
_ALONE = {"n": 1, "logprobs": False}
"""Fields that cannot be combined with tools, with the values that are harmless."""


def wants_tools(ask: Ask) -> bool:
    """Return whether the model may call a tool."""
    return bool(ask.field("tools")) and ask.field("tool_choice") != "none"


def emulate_tools(ask: Ask) -> Json:
    """Return the fields to send instead: messages that explain the tools, and the schema of the answer."""
    for name, value in _ALONE.items():
        if ask.has(name, but=value):
            raise InvalidRequest(f"'{name}' is not supported with tools.", param=name, code="unsupported_value")
    tools, must_call = _choose(ask)
    answer = None if must_call else _answer_shape(ask.field("response_format"))
    schema = _reply_shape(tools, answer)
    explanation = {"role": "system", "content": _explain(tools, may_answer=not must_call)}
    return {
        "messages": _join([explanation, *plain_turns(ask)]),
        "response_format": {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}},
    }


def _choose(ask: Ask) -> tuple[list[Json], bool]:
    """Return the tools that may be called, and whether one must be."""
    given = cast("list[Any]", ask.field("tools"))
    tools = [_read_function(tool, f"tools[{index}]") for index, tool in enumerate(given)]
    match ask.field("tool_choice"):
        case None | "auto":
            return tools, False
        case "required":
            return tools, True
        case {"type": "allowed_tools", "allowed_tools": {"mode": "auto" | "required" as mode, "tools": [*allowed]}}:
            return _select(tools, allowed), mode == "required"
        case {"function": _} as named:
            return _select(tools, [cast("Json", named)]), True
        case _:
            message = "Invalid 'tool_choice': expected 'none', 'auto', 'required' or an object that names a function."
            raise InvalidRequest(message, param="tool_choice", code="invalid_value")


def _select(tools: Sequence[Json], wanted: Sequence[Any]) -> list[Json]:
    names = [_read_function(choice, "tool_choice")["name"] for choice in wanted]
    unknown = [name for name in names if name not in [tool["name"] for tool in tools]]
    if unknown or not names:
        wrong = f"'{unknown[0]}', which is not among 'tools'" if unknown else "no tool"
        raise InvalidRequest(f"'tool_choice' names {wrong}.", param="tool_choice", code="invalid_value")
    return [tool for tool in tools if tool["name"] in names]


def _read_function(tool: Any, where: str) -> Json:
    match tool:
        case {"function": {"name": str(name)} as function} if name:
            found = cast("Json", function)
        case _:
            message = f"Invalid '{where}': it needs a 'function' with a 'name'."
            raise InvalidRequest(message, param=where, code="invalid_value")
    if not isinstance(found.get("parameters") or {}, dict):
        where = f"{where}.function.parameters"
        raise InvalidRequest(f"Invalid type for '{where}': expected an object.", param=where, code="invalid_type")
    return found


# -- the schema of the answer


def _reply_shape(tools: Sequence[Json], answer: Json | None) -> Json:
    """Return the schema of a call or an answer. The tools' schemas are separate, so that references stay inside."""
    parts = {str(index): tool.get("parameters") or {"type": "object"} for index, tool in enumerate(tools)}
    shapes = [
        _object(tool={"const": tool["name"]}, arguments={"$ref": f"#/$defs/{place}"})
        for place, tool in zip(parts, tools, strict=True)
    ]
    if answer is not None:
        parts["answer"] = answer
        shapes.append(_object(answer={"$ref": "#/$defs/answer"}))
    schema = {"anyOf": shapes} if len(shapes) > 1 else shapes[0]
    return schema | {"$defs": {place: _move_references(part, f"#/$defs/{place}") for place, part in parts.items()}}


def _object(**properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _answer_shape(response_format: Any) -> Json:
    match response_format:
        case {"type": "json_schema", "json_schema": {"schema": {}}}:
            return cast("Json", response_format["json_schema"]["schema"])
        case {"type": "json_object"}:
            return {"type": "object"}
        case _:
            return {"type": "string", "minLength": 1}


def _move_references(shape: Any, root: str) -> Any:
    """Rewrite a schema's references to itself, as it is now inside another schema."""
    if isinstance(shape, list):
        return [_move_references(part, root) for part in cast("list[Any]", shape)]
    if not isinstance(shape, dict):
        return shape
    moved = {key: _move_references(part, root) for key, part in cast("Json", shape).items()}
    target = moved.get("$ref")
    if isinstance(target, str) and target.startswith("#"):
        moved["$ref"] = root + target[1:]
    return moved


# -- the messages


def _explain(tools: Sequence[Json], *, may_answer: bool) -> str:
    lines = [
        f"- {tool['name']}: {tool.get('description') or 'no description'}; arguments: "
        + _write(tool.get("parameters") or {})
        for tool in tools
    ]
    ways = ['{"tool": "<name>", "arguments": {…}} to call a tool']
    ways += ['{"answer": "…"} to answer the user yourself'] if may_answer else []
    return "\n".join(["You have these tools:", *lines, f"Reply with JSON only: {', or '.join(ways)}."])


def plain_turns(ask: Ask) -> list[Json]:
    """Return the conversation without the roles and fields of tools."""
    names: dict[str, str] = {}
    turns: list[Json] = []
    for index, turn in enumerate(cast("list[Json]", ask.field("messages"))):
        text = read_text(turn, f"messages[{index}]")
        role = turn["role"]
        if role in ("tool", "function"):
            name = names.get(str(turn.get("tool_call_id"))) or turn.get("name") or "the tool"
            role, text = "user", f"Result of {name}: {text}"
        elif role == "assistant":
            calls = _read_calls(turn, f"messages[{index}].tool_calls")
            names |= {call_id: name for call_id, name, _ in calls}
            text = "\n".join(
                [text] * bool(text) + [_write({"tool": name, "arguments": arguments}) for _, name, arguments in calls]
            )
        turns.append({"role": "system" if role == "developer" else role, "content": text})
    return turns


def _join(turns: Iterable[Json]) -> list[Json]:
    """Join adjacent turns of one role. Many templates want alternating roles and one system message."""
    joined: list[Json] = []
    for turn in turns:
        if joined and joined[-1]["role"] == turn["role"]:
            joined[-1]["content"] += f"\n\n{turn['content']}"
        else:
            joined.append(turn)
    return joined


def read_text(turn: Json, where: str) -> str:
    """Return the text of a message with its parts joined. Refuse other content."""
    match turn.get("content"):
        case str(text):
            return text
        case None if turn["role"] not in ("system", "developer", "user"):
            return str(turn.get("refusal") or "")
        case [*parts]:
            return "".join(_read_part(part, f"{where}.content[{index}]") for index, part in enumerate(parts))
        case _:
            where = f"{where}.content"
            message = f"Invalid '{where}': expected a string or an array of parts."
            raise InvalidRequest(message, param=where, code="invalid_type")


def _read_part(part: Any, where: str) -> str:
    match part:
        case {"type": "text", "text": str(text)} | {"type": "refusal", "refusal": str(text)}:
            return text
        case _:
            message = f'Invalid \'{where}\': this model reads text only, as {{"type": "text", "text": "…"}}.'
            raise InvalidRequest(message, param=where, code="invalid_value")


def _read_calls(turn: Json, where: str) -> list[tuple[str, str, Any]]:
    """Return the id, tool name and arguments of every call."""
    match turn.get("tool_calls"):
        case None:
            return []
        case [*calls]:
            return [_read_call(call, f"{where}[{index}]") for index, call in enumerate(calls)]
        case _:
            raise InvalidRequest(f"Invalid type for '{where}': expected an array.", param=where, code="invalid_type")


def _read_call(call: Any, where: str) -> tuple[str, str, Any]:
    match call:
        case {"function": {"name": str(name), "arguments": str(arguments)}}:
            try:
                return str(call.get("id")), name, msgspec.json.decode(arguments or "{}")
            except msgspec.DecodeError:
                return str(call.get("id")), name, arguments
        case _:
            message = f"Invalid '{where}': it needs a 'function' with a 'name' and 'arguments', both strings."
            raise InvalidRequest(message, param=where, code="invalid_value")


def _write(value: Any) -> str:
    return msgspec.json.encode(value).decode()


# -- the reply


class Emulation:
    """Collects the JSON that the model writes, and returns its call or answer at the end."""

    def __init__(self, stops: Sequence[str] = ()) -> None:
        self._stops = stops
        self._text = ""
        self._is_open = False

    def event(self, name: str, data: bytes) -> Iterable[Part]:
        """Read one chunk."""
        del name  # OpenAI's events have no names
        if data.startswith(b"[DONE]"):
            yield End()
            return
        chunk = cast("Json", msgspec.json.decode(data))
        yield from self._begin(chunk)
        for choice in chunk.get("choices") or ():
            self._text += choice["delta"].get("content") or ""
            if choice.get("finish_reason"):
                yield from _read_parts(self._text, choice["finish_reason"], self._stops)
        yield from _count(chunk)

    def whole(self, body: bytes) -> Iterable[Part]:
        """Read a reply that was not streamed."""
        reply = cast("Json", msgspec.json.decode(body))
        yield from self._begin(reply)
        choice = reply["choices"][0]
        yield from _read_parts(choice["message"].get("content") or "", choice["finish_reason"], self._stops)
        yield from _count(reply)
        yield End()

    def _begin(self, reply: Json) -> Iterable[Part]:
        if reply.get("error"):
            yield read_fault(Reply(200, {}, msgspec.json.encode(reply)))
        if not self._is_open and "id" in reply:
            self._is_open = True
            yield Opening(reply["id"], reply.get("model", ""))


def read_stops(ask: Ask) -> list[str]:
    """Return the caller's stop sequences. They must not stop the model, as they may be part of the JSON."""
    stop = ask.field("stop")
    stops = [stop] if isinstance(stop, str) else cast("list[str]", stop or [])
    return [stop for stop in stops if stop]


def _read_parts(text: str, finish: str, stops: Sequence[str]) -> Iterable[Part]:
    """Yield the calls or the answer that the model wrote."""
    match _read_reply(text):
        case {"tool": str(tool), "arguments": arguments}:
            yield ToolCall(new_id("call"), tool)
            yield Arguments(_write(arguments))
            yield Finish(Reason.TOOL_CALLS)
            return
        case {"answer": str(answer)}:
            for stop in stops:
                answer = answer.partition(stop)[0]
        case {"answer": answer}:
            answer = _write(answer)
        case _:
            answer = _read_truncated(text)
    yield Text(answer)
    yield Finish(_REASONS.get(finish, Reason.STOP))


def _read_reply(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None


_BEGINNING = re.compile(r'\s*\{\s*"answer"\s*:\s*')
_STRING = re.compile(r'"(?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u])*')


def _read_truncated(text: str) -> str:
    """Return as much of a truncated answer as there is. Other truncated JSON stays as it is."""
    found = _BEGINNING.match(text)
    if found is None:
        return text
    rest = text[found.end() :]
    string = _STRING.match(rest)
    answer = string and _read_reply(string[0] + '"')
    return answer if isinstance(answer, str) else rest


def _count(reply: Json) -> Iterable[Part]:
    if usage := cast("Json", reply.get("usage") or {}):
        details = cast("Json", usage.get("prompt_tokens_details") or {})
        prompt, completion = read_count(usage.get("prompt_tokens")), read_count(usage.get("completion_tokens"))
        yield Used(Usage(prompt, completion, cached=read_count(details.get("cached_tokens"))))

"""Tools for a model that knows none: its answer is held to JSON that either calls a tool or answers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

from penstock.chat import Arguments, Ask, End, Fault, Finish, Opening, Part, Reason, Text, ToolCall, Usage, Used
from penstock.contract import Reply
from penstock.errors import InvalidRequest
from penstock.identifiers import new_id
from penstock.openai_dialect import read_fault

Json = dict[str, Any]
_REASONS = {"length": Reason.LENGTH, "content_filter": Reason.FILTER}


def wants_tools(ask: Ask) -> bool:
    """Whether the model may call one."""
    return bool(ask.field("tools")) and ask.field("tool_choice") != "none"


def emulate_tools(ask: Ask) -> Json:
    """The fields to send instead of the caller's own: messages that explain the tools, and the shape of the answer."""
    if ask.has("n", but=1):
        raise InvalidRequest("'n' above 1 is not supported with tools.", param="n", code="unsupported_value")
    tools, must_call = _choose(ask)
    answer = None if must_call else _answer_shape(ask.field("response_format"))
    shapes = [_call_shape(tool) for tool in tools] + ([answer] if answer else [])
    schema: Json = {"anyOf": shapes} if len(shapes) > 1 else shapes[0]
    definitions = {name: shape for tool in tools for name, shape in _definitions(tool).items()}
    schema |= {"$defs": definitions} if definitions else {}
    return {
        "messages": [{"role": "system", "content": _explain(tools, may_answer=not must_call)}, *_plain_turns(ask)],
        "response_format": {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}},
    }


def _choose(ask: Ask) -> tuple[list[Json], bool]:
    """The tools that may be called, and whether one of them must be."""
    tools = [_function_of(tool, f"tools[{index}]") for index, tool in enumerate(cast("list[Any]", ask.field("tools")))]
    choice = ask.field("tool_choice")
    if isinstance(choice, dict):
        wanted = _function_of(cast("Json", choice), "tool_choice")["name"]
        named = [tool for tool in tools if tool["name"] == wanted]
        if not named:
            message = f"'tool_choice' names '{wanted}', which is not among 'tools'."
            raise InvalidRequest(message, param="tool_choice", code="invalid_value")
        return named, True
    return tools, choice == "required"


def _function_of(tool: Any, where: str) -> Json:
    match tool:
        case {"function": {"name": str()}}:
            return cast("Json", tool["function"])
        case _:
            message = f"Invalid '{where}': it needs a 'function' with a 'name'."
            raise InvalidRequest(message, param=where, code="invalid_value")


# -- the shape of the answer


def _call_shape(tool: Json) -> Json:
    parameters = _move_references(tool.get("parameters") or {"type": "object", "properties": {}}, tool["name"])
    properties = {"tool": {"const": tool["name"]}, "arguments": {k: v for k, v in parameters.items() if k != "$defs"}}
    return {"type": "object", "properties": properties, "required": ["tool", "arguments"]}


def _answer_shape(response_format: Any) -> Json:
    match response_format:
        case {"type": "json_schema", "json_schema": {"schema": {}}}:
            shape = cast("Json", response_format["json_schema"]["schema"])
        case {"type": "json_object"}:
            shape = {"type": "object"}
        case _:
            shape = {"type": "string", "minLength": 1}
    return {"type": "object", "properties": {"answer": shape}, "required": ["answer"]}


def _definitions(tool: Json) -> Json:
    """The definitions inside a tool's own schema, under names that no other tool has."""
    found = cast("Json", tool.get("parameters") or {}).get("$defs", {})
    return {f"{tool['name']}.{name}": _move_references(shape, tool["name"]) for name, shape in found.items()}


def _move_references(shape: Any, name: str) -> Any:
    if isinstance(shape, list):
        return [_move_references(part, name) for part in cast("list[Any]", shape)]
    if not isinstance(shape, dict):
        return shape
    moved = {key: _move_references(part, name) for key, part in cast("Json", shape).items()}
    if isinstance(target := moved.get("$ref"), str):
        moved["$ref"] = target.replace("#/$defs/", f"#/$defs/{name}.", 1)
    return moved


# -- the messages


def _explain(tools: Sequence[Json], *, may_answer: bool) -> str:
    lines = [
        f"- {tool['name']}: {tool.get('description') or 'no description'}; arguments: "
        + msgspec.json.encode(tool.get("parameters") or {}).decode()
        for tool in tools
    ]
    ways = ['{"tool": "<name>", "arguments": {…}} to call a tool']
    ways += ['{"answer": "…"} to answer the user yourself'] if may_answer else []
    return "\n".join(["You have these tools:", *lines, f"Reply with JSON only: {', or '.join(ways)}."])


def _plain_turns(ask: Ask) -> list[Json]:
    """The conversation without roles and fields that only models with tools know."""
    names: dict[str, str] = {}
    turns: list[Json] = []
    for turn in cast("list[Json]", ask.field("messages")):
        calls = cast("list[Json]", turn.get("tool_calls") or [])
        names |= {call["id"]: call["function"]["name"] for call in calls if "id" in call}
        if calls:
            said = [{"tool": call["function"]["name"], "arguments": call["function"]["arguments"]} for call in calls]
            turns.append(
                {"role": "assistant", "content": "\n".join(msgspec.json.encode(call).decode() for call in said)}
            )
        elif turn["role"] in ("tool", "function"):
            name = names.get(str(turn.get("tool_call_id")), turn.get("name") or "the tool")
            turns.append({"role": "user", "content": f"Result of {name}: {read_text(turn.get('content'))}"})
        else:
            role = "system" if turn["role"] == "developer" else turn["role"]
            turns.append({"role": role, "content": read_text(turn.get("content"))})
    return turns


def read_text(content: Any) -> str:
    """The text of a message; its parts are joined."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in cast("list[Json]", content))
    return str(content or "")


# -- the reply


class Emulation:
    """Gathers the JSON that the model writes, and tells at its end which call or answer it is."""

    def __init__(self) -> None:
        self._text = ""
        self._is_open = False

    def event(self, name: str, data: bytes) -> Iterable[Part]:
        """One chunk."""
        del name  # OpenAI's events have none
        if data.startswith(b"[DONE]"):
            yield End()
            return
        chunk = cast("Json", msgspec.json.decode(data))
        yield from self._begin(chunk)
        for choice in chunk.get("choices", ()):
            self._text += choice.get("delta", {}).get("content") or ""
            if choice.get("finish_reason"):
                yield from _tell(self._text, choice["finish_reason"])
        yield from _count(chunk)

    def whole(self, body: bytes) -> Iterable[Part]:
        """A reply that was not streamed."""
        reply = cast("Json", msgspec.json.decode(body))
        yield from self._begin(reply)
        choice = reply["choices"][0]
        yield from _tell(choice["message"].get("content") or "", choice["finish_reason"])
        yield from _count(reply)
        yield End()

    def _begin(self, said: Json) -> Iterable[Part]:
        if "error" in said:
            yield _blame(said)
        if not self._is_open and "id" in said:
            self._is_open = True
            yield Opening(said["id"], said.get("model", ""))


def _tell(text: str, finish: str) -> Iterable[Part]:
    """What the model has said; a text that was cut off is passed as it is."""
    try:
        said = cast("Mapping[str, Any]", msgspec.json.decode(text))
        if "tool" in said:
            yield ToolCall(new_id("call"), said["tool"])
            yield Arguments(msgspec.json.encode(said["arguments"]).decode())
            yield Finish(Reason.TOOL_CALLS)
            return
        answer = said["answer"]
        text = answer if isinstance(answer, str) else msgspec.json.encode(answer).decode()
    except (msgspec.DecodeError, KeyError, TypeError):
        pass
    yield Text(text)
    yield Finish(_REASONS.get(finish, Reason.STOP))


def _count(said: Json) -> Iterable[Part]:
    if usage := said.get("usage"):
        yield Used(Usage(usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0)))


def _blame(said: Json) -> Fault:
    return read_fault(Reply(200, {}, msgspec.json.encode(said)))

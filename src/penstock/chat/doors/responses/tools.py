"""Tools of a Responses request as functions of the chat dialect, and their names on the way back.

Chat has functions only. A namespace becomes functions with joined names. A custom tool becomes a function with one
text argument. Tools that run at the vendor are left out.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias, cast

import msgspec

from penstock.domain.chat import Ask
from penstock.errors import InvalidRequest

Json: TypeAlias = dict[str, Any]

MAX_NAME_CHARACTERS: Final = 64
INPUT: Final = "input"
"""The one argument of a function that stands for a custom tool."""
_INVALID: Final = re.compile(r"[^\w-]", re.ASCII)
_CARRIERS: Final = (b'"additional_tools"', b'"tool_search_output"')
"""Types of input items that bring tools."""
_RENAMED: Final = (b'"namespace"', b'"custom"')


class Called(NamedTuple):
    """A tool as the caller knows it."""

    name: str
    namespace: str | None = None
    is_custom: bool = False


class ToolTable:
    """The tools of one request: as functions for the vendor, and by the names that the vendor uses for them."""

    def __init__(self, tools: Iterable[Any]) -> None:
        self.functions: list[Json] = []
        """Tools in the chat dialect."""
        self.left_out: list[str] = []
        """Tools that chat cannot express, as `tools.<type>`."""
        self._called: dict[str, Called] = {}
        self._names: dict[tuple[str | None, str], str] = {}
        listed = list(tools)
        for index, tool in enumerate(listed):  # first, because their names must not change
            if _kind(tool, f"tools[{index}]") in ("function", "custom"):
                self._add(tool, f"tools[{index}]", None, "")
        for index, tool in enumerate(listed):
            self._add_others(tool, f"tools[{index}]")

    def __bool__(self) -> bool:
        return bool(self.functions)

    def find(self, name: str) -> Called:
        """Return the caller's tool for the vendor's name of it."""
        return self._called.get(name) or Called(name)

    def name_of(self, name: str, namespace: str | None = None) -> str:
        """Return the vendor's name for a tool of the caller, also if it is not among the tools any more."""
        return self._names.get((namespace, name)) or _join(namespace, name)

    def _add_others(self, tool: Json, place: str) -> None:
        match tool:
            case {"type": "function" | "custom"}:
                pass
            case {"type": "namespace", "name": str(namespace), "tools": [*tools]}:
                about = str(tool.get("description") or "")
                for index, inner in enumerate(tools):
                    where = f"{place}.tools[{index}]"
                    if (kind := _kind(inner, where)) in ("function", "custom"):
                        self._add(inner, where, namespace, "" if index else about)
                    else:
                        self.left_out.append(f"tools.{kind}")
            case {"type": "namespace"}:
                raise _invalid(place, "a namespace needs 'name' and an array 'tools'")
            case _:
                self.left_out.append(f"tools.{tool['type']}")

    def _add(self, tool: Json, place: str, namespace: str | None, about: str) -> None:
        name = tool.get("name")
        if not isinstance(name, str) or not name:
            raise InvalidRequest(
                f"Missing required parameter: '{place}.name'.",
                param=f"{place}.name",
                code="missing_required_parameter",
            )
        is_custom = tool["type"] == "custom"
        known = self._names.get((namespace, name))
        if known is not None:
            return  # listed twice, as when it is loaded again
        given = name if namespace is None else self._make_unique(_join(namespace, name))
        self._names[namespace, name] = given
        self._called[given] = Called(name, namespace, is_custom)
        write = _write_custom if is_custom else _write_function
        self.functions.append({"type": "function", "function": {"name": given, **write(tool, about)}})

    def _make_unique(self, name: str) -> str:
        found, number = name, 2
        while found in self._called:
            ending = f"_{number}"
            found, number = name[: MAX_NAME_CHARACTERS - len(ending)] + ending, number + 1
        return found


def read_table(ask: Ask) -> ToolTable:
    """Return the tools of a request, with those that its input items bring."""
    return ToolTable([*(ask.field("tools") or ()), *_carried(ask)])


def read_renamed(ask: Ask) -> ToolTable | None:
    """Return the tools of a request if the vendor has other names for some; None if all are plain functions."""
    tools, given = (ask.fields.get(name, b"") for name in ("tools", "input"))
    has_renamed = any(word in bytes(tools) for word in _RENAMED)
    if not has_renamed and not any(word in bytes(given) for word in _CARRIERS):
        return None
    return read_table(ask)


def _carried(ask: Ask) -> Iterator[Any]:
    raw = ask.fields.get("input", msgspec.Raw(b""))
    if not any(word in bytes(raw) for word in _CARRIERS):
        return
    items = ask.field("input")
    for item in cast("list[Any]", items) if isinstance(items, list) else ():
        match item:
            case {"type": "additional_tools" | "tool_search_output", "tools": [*tools]}:
                yield from tools
            case _:
                pass


def _kind(tool: Any, place: str) -> str:
    match tool:
        case {"type": str(kind)}:
            return kind
        case _:
            raise _invalid(place, "expected an object with a 'type'")


def _invalid(place: str, reason: str) -> InvalidRequest:
    return InvalidRequest(f"Invalid '{place}': {reason}.", param=place, code="invalid_value")


def _join(namespace: str | None, name: str) -> str:
    """Return one name that every vendor takes; a long one ends with a hash."""
    if namespace is None:
        return name
    link = "" if namespace.endswith("_") or name.startswith("_") else "__"
    joined = _INVALID.sub("_", f"{namespace}{link}{name}")
    if len(joined) <= MAX_NAME_CHARACTERS:
        return joined
    digest = hashlib.sha256(f"{namespace}\0{name}".encode()).hexdigest()[:8]
    return f"{joined[: MAX_NAME_CHARACTERS - len(digest) - 1]}_{digest}"


def _describe(*texts: Any) -> Json:
    described = "\n\n".join(text for text in texts if isinstance(text, str) and text)
    return {"description": described} if described else {}


def _write_function(tool: Json, about: str) -> Json:
    given = {name: tool[name] for name in ("parameters", "strict") if tool.get(name) is not None}
    return _describe(about, tool.get("description")) | given


def _write_custom(tool: Json, about: str) -> Json:
    grammar = ""
    match tool.get("format"):
        case {"type": "grammar", "definition": str(definition), **rest}:
            grammar = f"The input must follow this grammar ({rest.get('syntax') or 'lark'}):\n{definition}"
        case _:
            pass
    schema = {
        "type": "object",
        "properties": {INPUT: {"type": "string", "description": "the whole input of the tool, as plain text"}},
        "required": [INPUT],
        "additionalProperties": False,
    }
    return _describe(about, tool.get("description"), grammar) | {"parameters": schema}


def write_input(text: str) -> str:
    """Return the arguments of a function that stands for a custom tool."""
    return msgspec.json.encode({INPUT: text}).decode()


def read_input(arguments: str) -> str:
    """Return the input of a custom tool from the arguments of its function; all of them if it is not there."""
    try:
        found = msgspec.json.decode(arguments)
    except (ValueError, RecursionError):
        return arguments
    match found:
        case {"input": str(text)} | str(text):
            return text
        case _:
            return arguments


# -- the choice among them


def translate_choice(choice: Any, table: ToolTable) -> Any:
    """Return `tool_choice` in the chat dialect."""
    match choice:
        case "auto" | "none" | "required":
            return choice
        case {"type": "function" | "custom", "name": str(name)}:
            return _choose(table, choice, name)
        case {"type": "allowed_tools", "mode": "auto" | "required" as mode, "tools": [*tools]}:
            named = [_choose(table, tool, str(tool["name"])) for tool in tools if _is_named(tool)]
            if not named:
                raise _invalid("tool_choice.tools", "none of these tools is supported with this model")
            return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": named}}
        case {"type": str(kind)}:
            raise InvalidRequest(
                f"Unsupported value: 'tool_choice' does not support '{kind[:80]}' with this model.",
                param="tool_choice",
                code="unsupported_value",
                suggestion="Choose none, auto, required, a function, a custom tool or allowed_tools.",
            )
        case _:
            raise _invalid("tool_choice", "expected none, auto, required or an object with a 'type'")


def _choose(table: ToolTable, tool: Any, name: str) -> Json:
    namespace = tool.get("namespace")
    return {"type": "function", "function": {"name": table.name_of(name, namespace)}}


def _is_named(tool: Any) -> bool:
    match tool:
        case {"type": "function" | "custom", "name": str()}:
            return True
        case _:
            return False

"""Tool calls of a stream: clients need each call's id and name once, and its index always."""

from collections.abc import Iterable
from typing import Any, Final, Protocol, TypeAlias, cast

from penstock.vendor_api.lenient_json import write_json

Json: TypeAlias = dict[str, Any]

MAX_CALLS: Final = 1_000
"""Tool calls of one choice."""


class CalledFunction(Protocol):
    """The called function in a delta, as far as it is known."""

    name: str | None
    arguments: str | None


class CallDelta(Protocol):
    """The delta of a tool call."""

    index: int
    id: str | None
    type: str | None

    @property
    def function(self) -> CalledFunction | None:
        """The called function."""
        ...


class ToolCalls:
    """The tool calls of one choice so far."""

    __slots__ = ("_function", "_ids", "_names", "_places", "_texts")

    def __init__(self) -> None:
        self._ids: list[str] = []  # the vendor's, empty if it gave none
        self._names: list[str] = []
        self._places: dict[int, int] = {}  # our index by the vendor's
        self._texts: dict[int, str] = {}  # arguments, of calls with neither index nor id
        self._function = ""  # of the legacy `function_call`

    # -- deltas as OpenAI writes them

    def fit(self, deltas: Iterable[CallDelta]) -> bool:
        """Return whether clients understand these deltas unchanged."""
        count = len(self._ids)
        for delta in deltas:
            if delta.index == count and _is_opening(delta):
                count += 1
            elif not (0 <= delta.index < count) or delta.id or (delta.function is not None and delta.function.name):
                return False
        return count <= MAX_CALLS and all(ours == theirs for theirs, ours in self._places.items())

    def record(self, deltas: Iterable[CallDelta]) -> None:
        """Record the calls that begin in these deltas, which must fit."""
        for delta in deltas:
            if delta.index == len(self._ids):
                self._open(delta.index, delta.id or "", "" if delta.function is None else delta.function.name or "")

    # -- other deltas

    def repair(self, deltas: Any, prefix: str) -> list[Json]:
        """Repair deltas: a new id starts a new call, repetitions are removed, and new ids begin with `prefix`."""
        if not isinstance(deltas, list) or not all(isinstance(delta, dict) for delta in cast("list[Any]", deltas)):
            raise TypeError("tool calls of an unexpected shape")
        return [self._repair(delta, prefix) for delta in cast("list[Json]", deltas)]

    def repair_function(self, called: Any) -> Json:
        """Repair a delta of the legacy `function_call`."""
        function = _read_function(called)
        if function.get("name") and function["name"] == self._function:
            del function["name"]
        self._function = function.get("name") or self._function
        return function

    def repeats(self, name: str | None) -> bool:
        """Return whether the legacy function's name was sent before."""
        return bool(name) and name == self._function

    def record_function(self, name: str | None) -> None:
        """Record the legacy function's name."""
        self._function = name or self._function

    def _repair(self, delta: Json, prefix: str) -> Json:
        index, call_id = _read_index(delta.get("index")), _read_id(delta.get("id"))
        is_function = isinstance(delta.get("function"), dict) or "custom" not in delta
        function = _read_function(delta.get("function")) if is_function else {}
        name = function.get("name") or ""
        place = self._find(index, call_id, name)
        is_new = place is None
        if place is None:
            place = self._open(index, call_id or "", name)
        elif name == self._names[place]:
            function.pop("name", None)  # repeated
        else:
            self._names[place] += name
        if index is None and call_id is None:
            self._texts[place] = self._texts.get(place, "") + (function.get("arguments") or "")
        repaired = {field: value for field, value in delta.items() if field not in ("index", "id", "function")}
        if is_new:
            repaired |= {"id": call_id or f"{prefix}_{place}", "type": delta.get("type") or "function"}
            function = {"name": name, "arguments": function.get("arguments") or ""} if is_function else {}
        return {"index": place, **repaired, **({"function": function} if is_function else {})}

    def _find(self, index: int | None, call_id: str | None, name: str) -> int | None:
        """Return our index of the call that a delta continues; None for a new call."""
        if index is not None:
            place = self._places.get(index)
            return None if place is None or (call_id and self._ids[place] not in ("", call_id)) else place
        if call_id is not None:
            return len(self._ids) - 1 - self._ids[::-1].index(call_id) if call_id in self._ids else None
        last = len(self._ids) - 1
        if last < 0 or (name and (name != self._names[last] or _is_whole(self._texts.get(last, "{}")))):
            return None
        return last

    def _open(self, index: int | None, call_id: str, name: str) -> int:
        place = len(self._ids)
        if place >= MAX_CALLS:
            raise ValueError("too many tool calls")
        self._ids.append(call_id)
        self._names.append(name)
        self._places[place if index is None else index] = place
        return place


def _is_opening(delta: CallDelta) -> bool:
    """Return whether a delta begins a call in OpenAI's form."""
    if not delta.id or not delta.type:
        return False
    if delta.type != "function":
        return True
    return delta.function is not None and bool(delta.function.name) and delta.function.arguments is not None


def repair_calls(calls: Any, prefix: str) -> list[Json]:
    """Repair the calls of a whole message: each gets an id, a type and its arguments as text."""
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in cast("list[Any]", calls)):
        raise TypeError("tool calls of an unexpected shape")
    repaired: list[Json] = []
    for number, call in enumerate(cast("list[Json]", calls)):
        call["id"] = _read_id(call.get("id")) or f"{prefix}_{number}"
        call["type"] = call.get("type") or "function"
        if "custom" not in call:
            call["function"] = repair_function(call.get("function"))
        repaired.append(call)
    return repaired


def repair_function(called: Any) -> Json:
    """Repair the function of a whole call."""
    function = _read_function(called)
    return function | {"name": function.get("name") or "", "arguments": function.get("arguments") or "{}"}


def _read_function(called: Any) -> Json:
    """Return the function with its arguments as text; a vendor may send an object or null."""
    if called is None:
        return {"arguments": ""}
    if not isinstance(called, dict):
        raise TypeError("a function of an unexpected shape")
    function = cast("Json", called)
    if not isinstance(function.get("name", ""), str):
        del function["name"]
    if "arguments" not in function:
        return function
    value = function["arguments"] if function["arguments"] is not None else ""
    return function | {"arguments": value if isinstance(value, str) else write_json(value).decode()}


def _read_index(value: Any) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value[:9])
    return value if type(value) is int else None  # not a boolean


def _read_id(value: Any) -> str | None:
    if type(value) is int:
        return str(value)
    return value if isinstance(value, str) and value else None


def _is_whole(text: str) -> bool:
    """Return whether a text has balanced braces, which is enough to separate two calls."""
    return bool(text) and text.count("{") == text.count("}")

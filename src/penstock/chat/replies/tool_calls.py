"""Keep the tool calls of a stream apart: clients need each call's id and name once, and its index always."""

from collections.abc import Iterable
from typing import Any, Final, Protocol, TypeAlias, cast

from penstock.vendor_api.lenient_json import write_json

Json: TypeAlias = dict[str, Any]

MAX_CALLS: Final = 1_000
"""Tool calls of one choice."""


class CalledFunction(Protocol):
    """Read a function that is called, as far as a delta tells it."""

    name: str | None
    arguments: str | None


class CallDelta(Protocol):
    """Read the delta of a tool call."""

    index: int
    id: str | None
    type: str | None

    @property
    def function(self) -> CalledFunction | None:
        """Return the function that is called."""
        ...


class ToolCalls:
    """The calls of one choice, as far as they have come."""

    __slots__ = ("_function", "_ids", "_names", "_places", "_texts")

    def __init__(self) -> None:
        self._ids: list[str] = []  # the vendor's, empty where it gave none
        self._names: list[str] = []
        self._places: dict[int, int] = {}  # our index by the vendor's
        self._texts: dict[int, str] = {}  # arguments, of calls with neither index nor id
        self._function = ""  # of the legacy `function_call`

    # -- deltas as OpenAI writes them

    def fit(self, deltas: Iterable[CallDelta]) -> bool:
        """Tell whether clients understand these deltas as they are."""
        count = len(self._ids)
        for delta in deltas:
            if delta.index == count and _is_opening(delta):
                count += 1
            elif not (0 <= delta.index < count) or delta.id or (delta.function is not None and delta.function.name):
                return False
        return count <= MAX_CALLS and all(ours == theirs for theirs, ours in self._places.items())

    def record(self, deltas: Iterable[CallDelta]) -> None:
        """Note the calls that begin in these deltas, which fit."""
        for delta in deltas:
            if delta.index == len(self._ids):
                self._open(delta.index, delta.id or "", "" if delta.function is None else delta.function.name or "")

    # -- any others

    def mend(self, deltas: Any, prefix: str) -> list[Json]:
        """Put deltas right: a new id is a new call, and what was said is not said again; ids begin with `prefix`."""
        if not isinstance(deltas, list) or not all(isinstance(delta, dict) for delta in cast("list[Any]", deltas)):
            raise TypeError("tool calls of another shape than expected")
        return [self._mend(delta, prefix) for delta in cast("list[Json]", deltas)]

    def mend_function(self, called: Any) -> Json:
        """Put a delta of the legacy `function_call` right."""
        function = _read_function(called)
        if function.get("name") and function["name"] == self._function:
            del function["name"]
        self._function = function.get("name") or self._function
        return function

    def repeats(self, name: str | None) -> bool:
        """Tell whether the legacy function's name was said before."""
        return bool(name) and name == self._function

    def record_function(self, name: str | None) -> None:
        """Note the legacy function's name."""
        self._function = name or self._function

    def _mend(self, delta: Json, prefix: str) -> Json:
        index, call_id = _read_index(delta.get("index")), _read_id(delta.get("id"))
        is_function = isinstance(delta.get("function"), dict) or "custom" not in delta
        function = _read_function(delta.get("function")) if is_function else {}
        name = function.get("name") or ""
        place = self._find(index, call_id, name)
        is_new = place is None
        if place is None:
            place = self._open(index, call_id or "", name)
        elif name == self._names[place]:
            function.pop("name", None)  # said again
        else:
            self._names[place] += name
        if index is None and call_id is None:
            self._texts[place] = self._texts.get(place, "") + (function.get("arguments") or "")
        mended = {field: value for field, value in delta.items() if field not in ("index", "id", "function")}
        if is_new:
            mended |= {"id": call_id or f"{prefix}_{place}", "type": delta.get("type") or "function"}
            function = {"name": name, "arguments": function.get("arguments") or ""} if is_function else {}
        return {"index": place, **mended, **({"function": function} if is_function else {})}

    def _find(self, index: int | None, call_id: str | None, name: str) -> int | None:
        """Return our index of the call that a delta goes on with; None for a new one."""
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
    """Tell whether this is how OpenAI begins a call."""
    if not delta.id or not delta.type:
        return False
    if delta.type != "function":
        return True
    return delta.function is not None and bool(delta.function.name) and delta.function.arguments is not None


def mend_calls(calls: Any, prefix: str) -> list[Json]:
    """Put the calls of a whole message right: each has an id, a type and its arguments as text."""
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in cast("list[Any]", calls)):
        raise TypeError("tool calls of another shape than expected")
    mended: list[Json] = []
    for number, call in enumerate(cast("list[Json]", calls)):
        call["id"] = _read_id(call.get("id")) or f"{prefix}_{number}"
        call["type"] = call.get("type") or "function"
        if "custom" not in call:
            call["function"] = mend_function(call.get("function"))
        mended.append(call)
    return mended


def mend_function(called: Any) -> Json:
    """Put the function of a whole call right."""
    function = _read_function(called)
    return function | {"name": function.get("name") or "", "arguments": function.get("arguments") or "{}"}


def _read_function(called: Any) -> Json:
    """Return the function, its arguments as text; a vendor may tell them as an object, or as null."""
    if called is None:
        return {"arguments": ""}
    if not isinstance(called, dict):
        raise TypeError("a function of another shape than expected")
    function = cast("Json", called)
    if not isinstance(function.get("name", ""), str):
        del function["name"]
    if "arguments" not in function:
        return function
    told = function["arguments"] if function["arguments"] is not None else ""
    return function | {"arguments": told if isinstance(told, str) else write_json(told).decode()}


def _read_index(told: Any) -> int | None:
    if isinstance(told, str) and told.isascii() and told.isdigit():
        return int(told[:9])
    return told if type(told) is int else None  # true and false are no numbers


def _read_id(told: Any) -> str | None:
    if type(told) is int:
        return str(told)
    return told if isinstance(told, str) and told else None


def _is_whole(text: str) -> bool:
    """Tell whether there is something whose braces balance, which is enough to tell two calls apart."""
    return bool(text) and text.count("{") == text.count("}")

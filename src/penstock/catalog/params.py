"""Validation of params: lenient number types, and all problems reported together, each with its path."""

import difflib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, TypeAlias, TypeVar, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    GetJsonSchemaHandler,
    StrictBool,
    StrictStr,
    ValidationError,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError

from penstock.errors import Detail

P = TypeVar("P", bound="Params")
Nested: TypeAlias = Mapping[str, type["Params"]]
"""An alias, as from Python 3.14 on a field named `type` hides the built-in in its class's annotations."""

MAX_DETAILS = 100
"""Upper bound of problems reported for one object, so that a hostile body costs little."""
MAX_DEPTH = 16
"""Depth to which nulls are removed: params nest less deeply, a caller's JSON may nest deeper."""
WORDS = {
    "model_type": "Input should be an object",
    "dict_type": "Input should be an object",
    "list_type": "Input should be an array",
}
"""Pydantic's messages in JSON's terms."""


def _integral(value: Any) -> Any:
    """Return an integer from 8 or 8.0; reject true and "8"."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise PydanticCustomError("integer", "Input should be an integer")


def _finite(value: Any) -> Any:
    """Return a number from 8 or 8.5; reject true, "8" and anything that no float can hold."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    except OverflowError:
        pass
    raise PydanticCustomError("number", "Input should be a number")


Integer = Annotated[int, BeforeValidator(_integral)]
Number = Annotated[float, BeforeValidator(_finite, json_schema_input_type=float)]
BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
BRANCHES = ("as text", "as object")
"""Tags of a field that takes a string or an object; they are not part of a field's path."""
UNPLACED = {*BRANCHES, "[key]"}

JSON = json.JSONEncoder(ensure_ascii=False, default=str)
Boolean = StrictBool
Text = StrictStr


def _storable(value: str) -> str:
    if "\0" in value:
        raise PydanticCustomError("nul", "Input should have no NUL character")
    return value


Line = Annotated[StrictStr, AfterValidator(_storable)]
"""A text with a database column of its own, which cannot hold NUL."""


class Params(BaseModel):
    """Base of every model's params. `null` means absent; unknown names are rejected."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra={"additionalProperties": False}, defer_build=True
    )

    nested: ClassVar[Nested] = {}
    """Fields that are themselves params, for hints on their field names."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Name bounds as JSON Schema does; Pydantic uses its own names for types with validators and for unions."""
        schema = handler(core)
        whole = handler.resolve_ref_schema(schema)
        whole["properties"] = _name_bounds(whole.get("properties", {}))
        return schema

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Detail]:
        """Yield conflicts between raw fields, so that they are reported with all other problems."""
        del given
        return iter(())

    def resolved(self) -> dict[str, Any]:
        """Return the params with defaults filled; the vendor chooses those that are still absent."""
        return self.model_dump(exclude_none=True)


def _name_bounds(value: Any) -> Any:
    if isinstance(value, dict):
        schema = cast("dict[str, Any]", value)
        return {BOUNDS.get(name, name): _name_bounds(item) for name, item in schema.items()}
    if isinstance(value, list):
        return [_name_bounds(item) for item in cast("list[Any]", value)]
    return value


def as_object(value: Any) -> Mapping[str, Any]:
    """Return the value if it is a JSON object, otherwise an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def without_nulls(value: Any, depth: int = MAX_DEPTH) -> Any:
    """Return the value without null fields, at any depth."""
    if depth and isinstance(value, dict):
        return {name: without_nulls(item, depth - 1) for name, item in value.items() if item is not None}  # pyright: ignore[reportUnknownVariableType] JSON
    if depth and isinstance(value, list):
        return [without_nulls(item, depth - 1) for item in value]  # pyright: ignore[reportUnknownVariableType] JSON
    return value


def read(
    kind: type[P], given: Mapping[str, Any], place: str, context: Mapping[str, Any] | None = None
) -> tuple[P | None, list[Detail]]:
    """Return params of this kind, or every problem found; `place` is their path in the request, "" for its top.

    Validators can read the `context`.
    """
    given = without_nulls(given)
    details: list[Detail] = []
    params: P | None = None
    try:
        params = kind.model_validate(given, context=context)
    except ValidationError as error:
        details = [_detail(kind, item, place) for item in error.errors(include_url=False)[:MAX_DETAILS]]
    reported = {detail.loc for detail in details}
    for conflict in kind.conflicts(given):
        loc = join_place(place, [conflict.loc])
        if loc not in reported:
            details.append(Detail(loc, conflict.message, conflict.code))
    return (None if details else params), unique(details)


def unique(details: Iterable[Detail]) -> list[Detail]:
    """Return the first problem of each path."""
    return list({detail.loc: detail for detail in reversed(list(details))}.values())[::-1]


def join_place(place: str, path: list[str]) -> str:
    """Join a path such as `input.0.params` with the names inside of it."""
    return ".".join([place, *path] if place else path)


def _detail(kind: type[Params], error: ErrorDetails, place: str) -> Detail:
    path = [str(part)[:80] for part in error["loc"] if part not in UNPLACED and not _is_branch(part)]
    if error["type"] == "extra_forbidden":
        name = str(error["loc"][-1])[:80]  # the caller's own word, whatever it is
        path = path if path[-1:] == [name] else [*path, name]
        owner = _owner(kind, path)
        return Detail(join_place(place, path), unknown_name("param", name, owner.model_fields), "unknown_param")
    loc = join_place(place, path)
    if error["type"] == "missing":
        return Detail(loc, f"`{path[-1]}` is required.", "missing_required_parameter")
    message = WORDS.get(error["type"], error["msg"])
    return Detail(loc, f"{message}, got {shorten(error['input'])}.", "invalid_params")


def _is_branch(part: int | str) -> bool:
    """Return whether this part names the type that a value was read as, which is not part of its path."""
    return isinstance(part, str) and part.startswith(("str-enum[", "literal["))


def _owner(kind: type[Params], path: list[str]) -> type[Params]:
    """Return the params class that owns the last name of a path."""
    for name in path[:-1]:
        kind = kind.nested.get(name, kind)
    return kind


def unknown_name(what: str, name: str, known: Iterable[str]) -> str:
    """Return the message for an unknown name, with the nearest known one."""
    names = list(known)
    folded = {candidate.lower().replace("_", ""): candidate for candidate in names}
    close = difflib.get_close_matches(name.lower().replace("_", ""), folded, n=1, cutoff=0.6)
    hint = f" Did you mean `{folded[close[0]]}`?" if close else ""
    return f"Unknown {what} {shorten(name)}.{hint} Known: {', '.join(sorted(names)) or 'none'}."


def shorten(value: Any) -> str:
    """Return a value as JSON, shortened for error messages; only the shown part is encoded."""
    text = ""
    for piece in JSON.iterencode(value[:80] if isinstance(value, str) else value):
        text += piece
        if len(text) > 80:
            return f"{text[:77]}…"
    return text

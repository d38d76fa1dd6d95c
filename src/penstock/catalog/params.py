"""How params are read: field types with forgiving numbers, and every problem told at once with its place."""

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, StrictBool, StrictStr, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from penstock.errors import Detail

P = TypeVar("P", bound="Params")


def _integral(value: Any) -> Any:
    """8 and 8.0 are integers; true and "8" are not."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise PydanticCustomError("integer", "Input should be an integer")


Integer = Annotated[int, BeforeValidator(_integral, json_schema_input_type=int)]
BRANCHES = ("as text", "as object")
"""Tags of a field that takes a string or an object; they are no part of a field's place."""

Boolean = StrictBool
Text = StrictStr


class Params(BaseModel):
    """Base of every model's params. `null` means absent; names not listed are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra={"additionalProperties": False})

    nested: ClassVar[Mapping[str, type["Params"]]] = {}
    """Fields that are themselves params, for hints on their field names."""

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Detail]:
        """What is wrong between fields, told on the raw values so that it comes with all other problems."""
        del given
        return iter(())

    def resolved(self) -> dict[str, Any]:
        """The params with defaults filled; what is still None is the vendor's to choose."""
        return self.model_dump(exclude_none=True)


def without_nulls(value: Any) -> Any:
    """The value with every null field of every object left out."""
    if isinstance(value, Mapping):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}  # pyright: ignore[reportUnknownVariableType] JSON
    return value


def read(kind: type[P], given: Mapping[str, Any], place: str) -> tuple[P | None, list[Detail]]:
    """Params of this kind, or every problem found; `place` is where they stand in the request."""
    given = without_nulls(given)
    details: list[Detail] = []
    params: P | None = None
    try:
        params = kind.model_validate(given)
    except ValidationError as error:
        details = [_detail(kind, item, place) for item in error.errors(include_url=False)]
    told = {detail.loc for detail in details}
    for conflict in kind.conflicts(given):
        loc = f"{place}.{conflict.loc}"
        if loc not in told:
            details.append(Detail(loc, conflict.message, conflict.code))
    return (None if details else params), _unique(details)


def _unique(details: Iterable[Detail]) -> list[Detail]:
    """One problem per place: the first."""
    return list({detail.loc: detail for detail in reversed(list(details))}.values())[::-1]


def _detail(kind: type[Params], error: ErrorDetails, place: str) -> Detail:
    path = [str(part) for part in error["loc"] if part not in BRANCHES]
    loc = ".".join([place, *path])
    if error["type"] == "extra_forbidden":
        owner = kind.nested.get(path[0], kind) if len(path) > 1 else kind
        return Detail(loc, unknown_name("param", path[-1], owner.model_fields), "unknown_param")
    if error["type"] == "missing":
        return Detail(loc, f"`{path[-1]}` is required.", "missing_required_parameter")
    return Detail(loc, f"{error['msg']}, got {shorten(error['input'])}.", "invalid_params")


def unknown_name(what: str, name: str, known: Iterable[str]) -> str:
    """A sentence that refuses a name and offers the nearest known one."""
    names = list(known)
    folded = {candidate.lower().replace("_", ""): candidate for candidate in names}
    close = difflib.get_close_matches(name.lower().replace("_", ""), folded, n=1, cutoff=0.6)
    hint = f" Did you mean `{folded[close[0]]}`?" if close else ""
    return f"Unknown {what} {shorten(name)}.{hint} Known: {', '.join(sorted(names)) or 'none'}."


def shorten(value: Any) -> str:
    """A value as JSON, cut so that an error stays readable."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else f"{text[:77]}…"

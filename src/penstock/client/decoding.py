"""Records out of JSON: frozen, and tolerant of whatever a newer server adds or leaves out."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any, TypeVar, cast

from penstock.client.errors import UnexpectedAnswer
from penstock.client.transport.steps import Reply

R = TypeVar("R", bound="Record")


@dataclass(frozen=True, kw_only=True)
class Record:
    """Something that the server told; `raw` has all of it, also what this version does not know."""

    raw: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False, compare=False)


def read(kind: type[R], told: Any, **more: Any) -> R:
    """A record of this kind, from the object that the server sent. What is null is as if it was not there."""
    if not isinstance(told, Mapping):
        raise UnexpectedAnswer(f"An object was expected, not {type(told).__name__}: is this Penstock's address?")
    known = cast("Mapping[str, Any]", told)
    values = {**more, "raw": known}
    for each in fields(kind):
        value = known.get(each.metadata.get("wire", each.name))
        if value is not None and each.name not in values:
            values[each.name] = _value(each.metadata.get("read"), value, each.name)
    return kind(**values)


def _value(reader: Callable[[Any], Any] | None, value: Any, name: str) -> Any:
    if reader is None:
        return value
    try:
        return reader(value)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise UnexpectedAnswer(f"`{name}` cannot be read: {error}.") from None


def decode(reply: Reply) -> Any:
    """The JSON of a success."""
    try:
        return json.loads(reply.body)
    except ValueError:
        raise UnexpectedAnswer("The answer is not JSON: is this Penstock's address?") from None


def read_page(reply: Reply) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """The elements of a list, and the page that they came in."""
    told = decode(reply)
    page: Mapping[str, Any] = cast("Mapping[str, Any]", told) if isinstance(told, Mapping) else {}
    listed: Any = page.get("data")
    if not isinstance(listed, list):
        raise UnexpectedAnswer("A list was expected: is this Penstock's address?")
    return cast("list[Any]", listed), page


# -- fields of records


def moment() -> Any:
    """A time, or null."""
    return field(default=None, metadata={"read": datetime.fromisoformat})


def amount() -> Any:
    """A decimal string of USD, or null."""
    return field(default=None, metadata={"read": Decimal})


def count_of_bytes() -> Any:
    """How many bytes; `bytes` is a method where the content can be had."""
    return field(default=0, metadata={"wire": "bytes"})


def several() -> Any:
    """A list of plain values."""
    return field(default=(), metadata={"read": tuple})


def pairs() -> Any:
    """An object of plain values."""
    return field(default_factory=dict[str, Any], metadata={"read": dict})


def one(kind: type[Record]) -> Any:
    """A record inside, or null."""
    return field(default=None, metadata={"read": partial(read, kind)})


def many(kind: type[Record]) -> Any:
    """A list of records inside."""
    return field(default=(), metadata={"read": partial(_read_all, kind)})


def _read_all(kind: type[R], told: Iterable[Any]) -> tuple[R, ...]:
    return tuple(read(kind, each) for each in told)

"""Decoding of JSON into frozen records. Fields that a newer server adds or omits are tolerated."""

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
    """An object of the API. `raw` has all its fields, including those unknown to this version."""

    raw: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False, compare=False)


def read(kind: type[R], data: Any, **more: Any) -> R:
    """Decode an object into a record. A null counts as missing. Raise UnexpectedAnswer if it does not fit."""
    if not isinstance(data, Mapping):
        raise UnexpectedAnswer(f"An object was expected, not {type(data).__name__}: is this Penstock's address?")
    known = cast("Mapping[str, Any]", data)
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
    """Decode the JSON of an answer. Raise UnexpectedAnswer if it is not JSON."""
    try:
        return json.loads(reply.body)
    except ValueError:
        raise UnexpectedAnswer("The answer is not JSON: is this Penstock's address?") from None


def read_page(reply: Reply) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Return the elements of a list, and the page object with its cursor."""
    data = decode(reply)
    page: Mapping[str, Any] = cast("Mapping[str, Any]", data) if isinstance(data, Mapping) else {}
    listed: Any = page.get("data")
    if not isinstance(listed, list):
        raise UnexpectedAnswer("A list was expected: is this Penstock's address?")
    return cast("list[Any]", listed), page


# -- fields of records


def moment() -> Any:
    """A time, or None."""
    return field(default=None, metadata={"read": datetime.fromisoformat})


def amount() -> Any:
    """An amount in USD, or None."""
    return field(default=None, metadata={"read": Decimal})


def count_of_bytes() -> Any:
    """A number of bytes. It is called `size`, because `bytes` is a method of outputs."""
    return field(default=0, metadata={"wire": "bytes"})


def several() -> Any:
    """A list of plain values."""
    return field(default=(), metadata={"read": tuple})


def pairs() -> Any:
    """An object of plain values."""
    return field(default_factory=dict[str, Any], metadata={"read": dict})


def one(kind: type[Record]) -> Any:
    """A nested record, or None."""
    return field(default=None, metadata={"read": partial(read, kind)})


def many(kind: type[Record]) -> Any:
    """A list of nested records."""
    return field(default=(), metadata={"read": partial(_read_all, kind)})


def _read_all(kind: type[R], data: Iterable[Any]) -> tuple[R, ...]:
    return tuple(read(kind, each) for each in data)

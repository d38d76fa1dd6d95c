"""What a JSON Schema says of the largest number that a param may be."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from penstock.catalog.params import as_object

MAX_DEPTH = 8
"""How deep forms inside of forms are followed: a schema may go round in circles."""


def largest_of(schema: Mapping[str, Any], names: Sequence[str]) -> int | None:
    """The largest that any of these params may be, rounded up; None where one of them has no bound, or none exists."""
    fields = schema.get("properties", {})
    told = [_bound(schema, as_object(fields[name])) for name in names if name in fields]
    known = [bound for bound in told if bound is not None]
    return math.ceil(max(known)) if known and len(known) == len(told) else None


def _bound(whole: Mapping[str, Any], field: Mapping[str, Any], depth: int = MAX_DEPTH) -> float | None:
    """Of one param: by its values, its maximum, or else the forms that it may take, all of which have to tell."""
    if not depth:
        return None
    if "const" in field or "enum" in field:
        return max(_numbers(field.get("enum") or [field.get("const")]), default=None)
    if own := list(_numbers([field.get("maximum"), field.get("exclusiveMaximum")])):
        return min(own)
    forms = [as_object(form) for name in ("anyOf", "oneOf", "allOf") for form in field.get(name) or ()]
    forms += [_follow(whole, field["$ref"])] if isinstance(field.get("$ref"), str) else []
    told = [_bound(whole, form, depth - 1) for form in forms if form.get("type") != "null"]
    known = [bound for bound in told if bound is not None]
    return max(known) if known and len(known) == len(told) else None


def _numbers(values: Sequence[Any]) -> Iterator[float]:
    """Those that are numbers, also written as `"8"` or `"8s"`."""
    for value in values:
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            try:
                number = float(str(value).removesuffix("s"))
            except ValueError:
                continue
            if math.isfinite(number):
                yield number


def _follow(whole: Mapping[str, Any], reference: str) -> Mapping[str, Any]:
    """What a reference leads to; nothing, where that is not inside of the schema."""
    found = whole
    for part in reference.removeprefix("#").split("/")[1:]:
        found = as_object(found.get(part))
    return found

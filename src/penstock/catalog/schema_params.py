"""Params described by a JSON Schema instead of a class, for vendors' own models and declared ones."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from penstock.catalog.file_input import FileInput, FileSlot, file_conflicts
from penstock.catalog.params import (
    MAX_DETAILS,
    as_object,
    join_place,
    read,
    shorten,
    unique,
    unknown_name,
    without_nulls,
)
from penstock.errors import Detail

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError, Validator

FILE = "file"
ANYTHING: dict[str, Any] = {"type": "object", "additionalProperties": True}
"""The schema of an unknown model: the vendor validates."""
MAX_NESTING = 32
"""Upper bound of the nesting of params, as orders nest as deeply."""
MAX_EXACT = 2**53
MAX_DEPTH = 8
"""Upper bound of nested alternatives that are followed, as a schema may be circular."""


class SchemaParams:
    """Params that a JSON Schema describes. Unknown names are rejected, and `null` means absent.

    `file` is the schema's own name for the input picture, which callers always send as `file`.
    """

    def __init__(self, schema: Mapping[str, Any], file: str | None = None) -> None:
        self.schema = _published(schema, file)
        self.is_open = self.schema.get("additionalProperties") is not False
        """Whether any param is passed on, as the vendor validates."""
        self.files = (FileSlot(FILE),) if file or self.is_open else ()
        free: dict[str, Any] = {FILE: {}} if file else {}  # validated by its own class
        self._rest: dict[str, Any] = {**self.schema, "properties": {**self._fields, **free}}
        self._takes_file = file is not None

    @property
    def _fields(self) -> dict[str, Any]:
        return self.schema.get("properties", {})

    @cached_property
    def _validator(self) -> "Validator":
        """Compile the schema at first use: few processes need it, and its library slows down every start."""
        return _compile(self._rest)

    def check(self) -> str | None:
        """Return what is wrong with the schema itself; None if nothing is."""
        return find_problem(self._rest)

    def allows(self, name: str, value: Any) -> bool:
        """Return whether a known param may have this value, regardless of the others."""
        errors = self._validator.iter_errors({name: value})
        return name in self._fields and not any(error.instance_path[:1] == [name] for error in errors)

    def read(self, given: Mapping[str, Any], place: str) -> tuple[dict[str, Any] | None, list[Detail]]:
        """Return the params with defaults filled, or every problem found; `place` is their path in the request."""
        if _is_deep(given, MAX_NESTING):
            return None, [Detail(place, f"Input is nested deeper than {MAX_NESTING} levels.", "invalid_params")]
        given = without_nulls(given)
        details = list(self._problems(given, place))
        resolved = {
            **{name: field["default"] for name, field in self._fields.items() if _default(field) is not None},
            **{name: self._exact(name, value) for name, value in given.items()},
        }
        where = join_place(place, [FILE])
        if isinstance(given.get(FILE), Mapping):  # also for an unknown model: it is opened as a file
            file, problems = read(FileInput, given[FILE], where)
            details += problems
            details += [Detail(where, problem.message, problem.code) for problem in file_conflicts(given[FILE])]
            resolved[FILE] = file.resolved() if file else {}
        elif self._takes_file and FILE in given:
            details.append(Detail(where, f"Input should be an object, got {shorten(given[FILE])}."))
        return (None if details else resolved), unique(details)

    def _exact(self, name: str, value: Any) -> Any:
        """Return 8.0 as the integer 8 where the schema allows no fraction."""
        if not isinstance(value, float) or not value.is_integer() or abs(value) > MAX_EXACT:
            return value
        return value if self.allows(name, 0.5) else int(value)

    def _problems(self, given: Mapping[str, Any], place: str) -> Iterator[Detail]:
        for number, error in enumerate(self._validator.iter_errors(given)):
            if number >= MAX_DETAILS:
                return
            yield from self._explain(error, place)

    def _explain(self, error: "ValidationError", place: str) -> Iterator[Detail]:
        path = [str(part)[:80] for part in error.instance_path]
        kind = error.kind
        match kind.name:
            case "required":
                name = str(kind.as_dict()["property"])
                yield Detail(join_place(place, [*path, name]), f"`{name}` is required.", "missing_required_parameter")
            case "additionalProperties":
                known = self._fields if not path else ()
                for name in (str(name)[:80] for name in kind.as_dict()["unexpected"][:MAX_DETAILS]):
                    where = join_place(place, [*path, name])
                    yield Detail(where, unknown_name("param", name, known), "unknown_param")
            case _:
                message = f"{str(error.message)[:300]}."
                yield Detail(join_place(place, path), message, "invalid_params")


def find_problem(schema: dict[str, Any]) -> str | None:
    """Return what is wrong with a JSON Schema, and where; None if nothing is."""
    try:
        _compile(schema)
    except ValueError as error:
        place = ".".join(str(part)[:80] for part in getattr(error, "instance_path", ()))
        message = str(error).partition("\n")[0][:300]
        return f"{place}: {message}" if place else message
    return None


def _compile(schema: dict[str, Any]) -> "Validator":
    from jsonschema_rs import RegexOptions, validator_for  # noqa: PLC0415  see SchemaParams

    return validator_for(schema, offline=True, pattern_options=RegexOptions())


def _published(schema: Mapping[str, Any], file: str | None) -> dict[str, Any]:
    """Return the schema as callers see it: a closed object, with `file` for the input picture."""
    fields: dict[str, Any] = dict(schema.get("properties", {}))
    defs: dict[str, Any] = dict(schema.get("$defs", {}))
    required = [name for name in schema.get("required", ()) if name != file]
    if file is not None:
        needed = file in schema.get("required", ())
        fields.pop(file, None)
        picture = FileInput.model_json_schema()
        defs |= picture.pop("$defs", {})
        fields = {FILE: picture, **fields}
        required = [FILE, *required] if needed else required
    closed = {} if "additionalProperties" in schema or not fields else {"additionalProperties": False}
    changed = {"required": required, "$defs": defs, "properties": fields}
    kept = {name: value for name, value in schema.items() if name not in changed}
    return {"type": "object", **kept, **closed, **{name: value for name, value in changed.items() if value}}


def _is_deep(value: Any, left: int) -> bool:
    items: Any = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] JSON
    return any(not left or _is_deep(item, left - 1) for item in items)


def _default(field: Any) -> Any:
    return as_object(field).get("default")


# -- bounds


def largest_of(schema: Mapping[str, Any], names: Sequence[str]) -> int | None:
    """Return the upper bound of these params, rounded up; None if one has no bound, or none exists."""
    fields = schema.get("properties", {})
    bounds = [_bound(schema, as_object(fields[name])) for name in names if name in fields]
    known = [bound for bound in bounds if bound is not None]
    return math.ceil(max(known)) if known and len(known) == len(bounds) else None


def _bound(whole: Mapping[str, Any], field: Mapping[str, Any], depth: int = MAX_DEPTH) -> float | None:
    """Return the bound of one param: by its values, its maximum, or its alternatives, all of which need one."""
    if not depth:
        return None
    if "const" in field or "enum" in field:
        return max(_numbers(field.get("enum") or [field.get("const")]), default=None)
    if own := list(_numbers([field.get("maximum"), field.get("exclusiveMaximum")])):
        return min(own)
    forms = [as_object(form) for name in ("anyOf", "oneOf", "allOf") for form in field.get(name) or ()]
    forms += [_follow(whole, field["$ref"])] if isinstance(field.get("$ref"), str) else []
    bounds = [_bound(whole, form, depth - 1) for form in forms if form.get("type") != "null"]
    known = [bound for bound in bounds if bound is not None]
    return max(known) if known and len(known) == len(bounds) else None


def _numbers(values: Sequence[Any]) -> Iterator[float]:
    """Yield the values that are numbers, also written as `"8"` or `"8s"`."""
    for value in values:
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            try:
                number = float(str(value).removesuffix("s"))
            except ValueError:
                continue
            if math.isfinite(number):
                yield number


def _follow(whole: Mapping[str, Any], reference: str) -> Mapping[str, Any]:
    """Return the target of a reference; an empty object if it is not inside of the schema."""
    found = whole
    for part in reference.removeprefix("#").split("/")[1:]:
        found = as_object(found.get(part))
    return found

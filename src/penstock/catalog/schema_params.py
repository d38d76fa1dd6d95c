"""Params told by a JSON Schema instead of a class: for vendors' own models, and those that settings declare."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from penstock.catalog.file_input import FileInput, file_conflicts
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
"""The schema of a model of which nothing is known: the vendor judges."""
MAX_NESTING = 32
"""How deep params may nest: whoever writes them into an order goes as deep."""
MAX_EXACT = 2**53
MAX_DEPTH = 8
"""How deep forms inside of forms are followed: a schema may go round in circles."""


class SchemaParams:
    """Params that a JSON Schema describes. Like any others: names not listed are refused, `null` means absent.

    `file` is the schema's own name of a param that takes a picture: callers give it as `file`, as everywhere else.
    """

    def __init__(self, schema: Mapping[str, Any], file: str | None = None) -> None:
        self.schema = _published(schema, file)
        free: dict[str, Any] = {FILE: {}} if file else {}  # what it must be is read by its own class
        self._rest: dict[str, Any] = {**self.schema, "properties": {**self._fields, **free}}
        self._takes_file = file is not None

    @property
    def _fields(self) -> dict[str, Any]:
        return self.schema.get("properties", {})

    @cached_property
    def _validator(self) -> "Validator":
        """Made at first use: most processes never need it, and its library would slow every start."""
        return _compile(self._rest)

    def check(self) -> str | None:
        """What is wrong with the schema itself."""
        return find_problem(self._rest)

    def allows(self, name: str, value: Any) -> bool:
        """Whether a param that the schema names may have this value, whatever the others have."""
        errors = self._validator.iter_errors({name: value})
        return name in self._fields and not any(error.instance_path[:1] == [name] for error in errors)

    def read(self, given: Mapping[str, Any], place: str) -> tuple[dict[str, Any] | None, list[Detail]]:
        """The params with defaults filled, or every problem found; `place` is where they stand in the request."""
        if _is_deep(given, MAX_NESTING):
            return None, [Detail(place, f"Input is nested deeper than {MAX_NESTING} levels.", "invalid_params")]
        given = without_nulls(given)
        details = list(self._problems(given, place))
        resolved = {
            **{name: field["default"] for name, field in self._fields.items() if _default(field) is not None},
            **{name: self._exact(name, value) for name, value in given.items()},
        }
        where = join_place(place, [FILE])
        if isinstance(given.get(FILE), Mapping):  # also where nothing is known of the params: it is opened as one
            file, problems = read(FileInput, given[FILE], where)
            details += problems
            details += [Detail(where, told.message, told.code) for told in file_conflicts(given[FILE])]
            resolved[FILE] = file.resolved() if file else {}
        elif self._takes_file and FILE in given:
            details.append(Detail(where, f"Input should be an object, got {shorten(given[FILE])}."))
        return (None if details else resolved), unique(details)

    def _exact(self, name: str, value: Any) -> Any:
        """8.0 is an integer, and is handed on as one where no fraction would do."""
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
    """What is wrong with a JSON Schema, and where in it."""
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
    """The schema as callers see it: an object whose names are all there are, with `file` as everywhere else."""
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
    told = {"required": required, "$defs": defs, "properties": fields}
    kept = {name: value for name, value in schema.items() if name not in told}
    return {"type": "object", **kept, **closed, **{name: value for name, value in told.items() if value}}


def _is_deep(value: Any, left: int) -> bool:
    items: Any = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] JSON
    return any(not left or _is_deep(item, left - 1) for item in items)


def _default(field: Any) -> Any:
    return as_object(field).get("default")


# -- bounds


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

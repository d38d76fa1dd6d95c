"""Params told by a JSON Schema instead of a class: for vendors' own models, and those that settings declare."""

from collections.abc import Iterator, Mapping
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
        from jsonschema_rs import RegexOptions, validator_for  # noqa: PLC0415

        return validator_for(self._rest, offline=True, pattern_options=RegexOptions())

    def check(self) -> str | None:
        """What is wrong with the schema itself."""
        try:
            self._validator  # noqa: B018  made, and so checked
        except ValueError as error:
            return str(error).partition("\n")[0][:300]
        return None

    def read(self, given: Mapping[str, Any], place: str) -> tuple[dict[str, Any] | None, list[Detail]]:
        """The params with defaults filled, or every problem found; `place` is where they stand in the request."""
        given = without_nulls(given)
        details = list(self._problems(given, place))
        resolved = {
            **{name: field["default"] for name, field in self._fields.items() if _default(field) is not None},
            **given,
        }
        if self._takes_file and isinstance(given.get(FILE), Mapping):
            where = join_place(place, [FILE])
            file, problems = read(FileInput, given[FILE], where)
            details += problems
            details += [Detail(where, told.message, told.code) for told in file_conflicts(given[FILE])]
            resolved[FILE] = file.resolved() if file else {}
        elif self._takes_file and FILE in given:
            where = join_place(place, [FILE])
            details.append(Detail(where, f"Input should be an object, got {shorten(given[FILE])}."))
        return (None if details else resolved), unique(details)

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
                for name in kind.as_dict()["unexpected"][:MAX_DETAILS]:
                    where = join_place(place, [*path, str(name)[:80]])
                    yield Detail(where, unknown_name("param", name, known), "unknown_param")
            case _:
                message = f"{str(error.message)[:300]}."
                yield Detail(join_place(place, path), message, "invalid_params")


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


def _default(field: Any) -> Any:
    return as_object(field).get("default")

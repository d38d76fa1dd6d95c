"""Models that the configuration declares: params from a JSON Schema, or from a vendor's OpenAPI document."""

from collections.abc import Mapping
from typing import Any, Final, cast

from penstock.catalog.model import GenerationModel, Recipe
from penstock.catalog.params import as_object
from penstock.catalog.schema_params import FILE, SchemaParams, find_problem

KINDS: Final = ("3d", "video", "image")
"""Kinds of outputs that a declared model may make: those that can be inspected."""
MAX_DEPTH: Final = 32
SEED: Final = "seed"
MAX_VALUES: Final = 20_000
MAX_LENGTH: Final = 1_000_000
"""Upper bounds of a schema, as every request is validated with it and every caller may fetch it."""
SEEDS: Final = (0, 2**31 - 1)
"""The range of a seed that we choose."""
SAMPLES: Final[Mapping[str, Any]] = {"boolean": True, "array": [], "object": {}}
JSON_TYPES: Final = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"))


def declare(model_id: str, title: str, document: Mapping[str, Any], recipe: Recipe) -> GenerationModel:
    """Return the model; raise a `ValueError` that says what is wrong with the document."""
    schema = read_schema(document)
    if recipe.file is not None and recipe.file not in schema.get("properties", {recipe.file: {}}):
        raise ValueError(f"it has no param `{recipe.file}` to pass `file` in")
    params = SchemaParams(schema, recipe.file)
    if problem := params.check():
        raise ValueError(problem)
    return GenerationModel(
        id=model_id,
        kind=recipe.kind,
        title=title or str(document.get("title") or model_id),
        params=params,
        example=_example(params.schema),
        seed_param="seed" if _takes_seed(params) else None,
        recipe=recipe,
    )


def read_schema(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of a model's params: the document itself, or the input of an OpenAPI document.

    Raise a `ValueError` that says what is wrong with it.
    """
    is_openapi = "openapi" in document or "paths" in document
    schema = _Reader(document, follows=is_openapi).read(_input_of(document) if is_openapi else document)
    if not isinstance(schema, dict):
        raise ValueError("the OpenAPI document has no input")
    fields = cast("dict[str, Any]", schema)
    if problem := find_problem(fields):
        raise ValueError(problem)
    if "object" not in fields.get("type", "object"):
        raise ValueError(f"params should be an object, but its type is {str(fields['type'])[:80]}")
    return fields


def schema_of_bindings(workflow: Mapping[str, Any] | None, bind: Mapping[str, str]) -> dict[str, Any]:
    """Return a schema for a workflow's bound params, with types and defaults from the workflow."""
    fields: dict[str, Any] = {}
    for name, place in bind.items():
        node, _, slot = place.partition(".")
        held = as_object(as_object((workflow or {}).get(node)).get("inputs")).get(slot)
        kind = next((kind for python, kind in JSON_TYPES if isinstance(held, python)), None)
        usual = {} if name == SEED else {"default": held}  # a fixed default would be no seed
        fields[name] = {"type": kind, **usual} if kind and name != FILE else {}
    return {"properties": fields}


def _input_of(document: Mapping[str, Any]) -> Any:
    """Return the `Input` of a Replicate document, or the body of the first POST of a fal document."""
    schemas = _dig(document, "components", "schemas")
    if "Input" in schemas:
        return schemas["Input"]
    for path in _dig(document, "paths").values():
        body = _dig(path, "post", "requestBody", "content", "application/json")
        if "schema" in body:
            return body["schema"]
    return None


def _dig(value: Any, *names: str) -> Mapping[str, Any]:
    """Return the object at this path; an empty one if there is none."""
    for name in names:
        value = as_object(value).get(name)
    return as_object(value)


class _Reader:
    """Copies a schema out of a document, within the upper bounds."""

    def __init__(self, document: Mapping[str, Any], *, follows: bool) -> None:
        self._document = document
        self._follows = follows  # replace references by their targets, so that the schema is self-contained
        self._values = MAX_VALUES
        self._length = MAX_LENGTH

    def read(self, value: Any, depth: int = MAX_DEPTH) -> Any:
        self._count(value, depth)
        if isinstance(value, list):
            return [self.read(item, depth - 1) for item in cast("list[Any]", value)]
        if not isinstance(value, Mapping):
            return value
        schema = cast("Mapping[str, Any]", value)
        parts = self._parts(schema)
        apart = ("$ref", "allOf") if parts else ()
        fields = {name: self.read(item, depth - 1) for name, item in schema.items() if name not in apart}
        if len(parts) == 1:  # OpenAPI uses one part to add fields to a reference
            return {**as_object(self.read(parts[0], depth - 1)), **fields}
        return fields | ({"allOf": self.read(parts, depth - 1)} if parts else {})

    def _parts(self, schema: Mapping[str, Any]) -> list[Any]:
        """Return the other schemas that apply: those of `allOf`, and the target of a reference."""
        if not self._follows:
            return []
        every, reference = schema.get("allOf"), schema.get("$ref")
        parts = list(cast("list[Any]", every)) if isinstance(every, list) else []
        return [*parts, self._follow(reference)] if isinstance(reference, str) else parts

    def _follow(self, reference: str) -> Any:
        found: Any = self._document
        for part in reference.removeprefix("#/").split("/"):
            name = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or name not in found:
                raise ValueError(f"its reference {reference[:80]} has no target")
            found = cast("Mapping[str, Any]", found)[name]
        return found

    def _count(self, value: Any, depth: int) -> None:
        self._values -= 1
        self._length -= len(value) if isinstance(value, str) else 0
        if depth == 0:
            raise ValueError("its references are circular, or it is nested too deeply")
        if self._values < 0 or self._length < 0:
            raise ValueError("it is too large")


def _takes_seed(params: SchemaParams) -> bool:
    """Return whether `seed` is an integer that takes every value that we would choose."""
    return all(params.allows("seed", seed) for seed in SEEDS) and not any(
        params.allows("seed", other) for other in ("7", 0.5, True)
    )


def _example(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return example params with all that are required."""
    fields = schema.get("properties", {})
    return {name: _sample(name, fields.get(name)) for name in schema.get("required", ())}


def _sample(name: str, field: Any) -> Any:
    fields = as_object(field)
    if name == FILE:
        return {"url": "https://example.com/cat.png"}
    for known in (fields.get("default"), *fields.get("examples", ()), *fields.get("enum", ())):
        if known is not None:
            return known
    if fields.get("type") in ("integer", "number"):
        return fields.get("minimum", 1)
    return SAMPLES.get(str(fields.get("type")), "a paper boat")

"""Models that the configuration declares: a JSON Schema becomes params, and a vendor's document is read for one."""

from collections.abc import Mapping
from typing import Any, Final, cast

from penstock.catalog.model import GenerationModel, Recipe
from penstock.catalog.params import as_object
from penstock.catalog.schema_params import FILE, SchemaParams

KINDS: Final = ("3d", "video", "image")
"""What a declared model may make: what can be opened and checked here."""
MAX_DEPTH: Final = 32
SAMPLES: Final[Mapping[str, Any]] = {"boolean": True, "array": [], "object": {}}
JSON_TYPES: Final = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"))


def declare(model_id: str, title: str, document: Mapping[str, Any], recipe: Recipe) -> GenerationModel:
    """The model, or a ValueError that says what is wrong with the document."""
    schema = read_schema(document)
    if recipe.file is not None and recipe.file not in schema.get("properties", {recipe.file: {}}):
        raise ValueError(f"it has no param `{recipe.file}` that `file` could be handed over as")
    params = SchemaParams(schema, recipe.file)
    if problem := params.check():
        raise ValueError(problem)
    seed = schema.get("properties", {}).get("seed")
    return GenerationModel(
        id=model_id,
        kind=recipe.kind,
        title=title or str(schema.get("title") or model_id),
        params=params,
        example=_example(params.schema),
        seed_param="seed" if _is_integer(seed) else None,
        recipe=recipe,
    )


def read_schema(document: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a model's params: the document itself, or what an OpenAPI document says of its input."""
    if "openapi" in document or "paths" in document:
        found = _input_of(document)
        if found is None:
            raise ValueError("the OpenAPI document has no input")
        return _inline(found, document, MAX_DEPTH)
    return dict(document)


def schema_of_bindings(workflow: Mapping[str, Any] | None, bind: Mapping[str, str]) -> dict[str, Any]:
    """A schema for a workflow's bound params: each is of the kind of, and by default, what the workflow holds there."""
    fields: dict[str, Any] = {}
    for name, place in bind.items():
        node, _, slot = place.partition(".")
        held = (workflow or {}).get(node, {}).get("inputs", {}).get(slot)
        kind = next((kind for python, kind in JSON_TYPES if isinstance(held, python)), None)
        fields[name] = {"type": kind, "default": held} if kind and name != FILE else {}
    return {"properties": fields}


def _input_of(document: Mapping[str, Any]) -> Any:
    """The `Input` of a Replicate model, or the body of the first POST, as fal has it."""
    schemas = document.get("components", {}).get("schemas", {})
    if "Input" in schemas:
        return schemas["Input"]
    for path in document.get("paths", {}).values():
        body = path.get("post", {}).get("requestBody", {}).get("content", {}).get("application/json", {})
        if "schema" in body:
            return body["schema"]
    return None


def _inline(value: Any, document: Mapping[str, Any], depth: int) -> Any:
    """The schema with every reference replaced by what it leads to, so that it stands alone."""
    if depth == 0:
        raise ValueError("its references lead in a circle")
    if isinstance(value, list):
        return [_inline(item, document, depth - 1) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    schema = cast("dict[str, Any]", value)
    told = {name: _inline(item, document, depth - 1) for name, item in schema.items() if name not in ("$ref", "allOf")}
    parts = list(schema.get("allOf", ()))
    if isinstance(schema.get("$ref"), str):
        parts.append(_follow(schema["$ref"], document))
    if len(parts) == 1:  # one part is how OpenAPI says something beside a reference
        return _inline(parts[0], document, depth - 1) | told
    return told | ({"allOf": _inline(parts, document, depth - 1)} if parts else {})


def _follow(reference: str, document: Mapping[str, Any]) -> Any:
    found: Any = document
    for part in reference.removeprefix("#/").split("/"):
        if not isinstance(found, Mapping) or part not in found:
            raise ValueError(f"its reference {reference[:80]} leads nowhere")
        found = cast("Mapping[str, Any]", found)[part]
    return found


def _is_integer(field: Any) -> bool:
    return "integer" in str(as_object(field))


def _example(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Params to try it with: those that must be given."""
    fields = schema.get("properties", {})
    return {name: _sample(name, fields.get(name)) for name in schema.get("required", ())}


def _sample(name: str, field: Any) -> Any:
    told = as_object(field)
    if name == FILE:
        return {"url": "https://example.com/cat.png"}
    for known in (told.get("default"), *told.get("examples", ()), *told.get("enum", ())):
        if known is not None:
            return known
    if told.get("type") in ("integer", "number"):
        return told.get("minimum", 1)
    return SAMPLES.get(str(told.get("type")), "a paper boat")

"""OpenAPI descriptions of façades: their answers and errors have shapes of their own."""

from collections.abc import Mapping
from typing import Any, Final

from penstock.errors import PenstockError
from penstock.web.auth import ALWAYS, SIGNED_IN
from penstock.web.responses import REQUEST_ID, RETRY_AFTER, SHOULD_RETRY

Schema = Mapping[str, Any]

TEXT: Final[Schema] = {"type": "string"}
TEXT_OR_NULL: Final[Schema] = {"anyOf": [{"type": "string"}, {"type": "null"}]}
NUMBER: Final[Schema] = {"type": "number"}
INTEGER: Final[Schema] = {"type": "integer"}
OBJECT: Final[Schema] = {"type": "object"}
ANYTHING: Final[Schema] = {}


def fields(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> dict[str, Any]:
    """Return the schema of an object. It may have more fields."""
    return {
        "type": "object",
        "properties": {name: dict(schema) for name, schema in {**required, **(optional or {})}.items()},
        "required": list(required),
    }


def array(items: Schema) -> dict[str, Any]:
    """Return the schema of an array."""
    return {"type": "array", "items": dict(items)}


def answer(description: str, schema: Schema) -> dict[str, Any]:
    """Return an OpenAPI response with a JSON body."""
    return {
        "description": description,
        "headers": dict(REQUEST_ID),
        "content": {"application/json": {"schema": dict(schema)}},
    }


def body(schema: Schema, content_type: str = "application/json") -> dict[str, Any]:
    """Return the `openapi_extra` of a route with a body."""
    return {"requestBody": {"required": True, "content": {content_type: {"schema": dict(schema)}}}}


def errors(schema: Schema, *kinds: type[PenstockError], needs_key: bool = True) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI `responses` of a route for the errors it may answer, by status."""
    found: dict[int | str, dict[str, Any]] = {}
    for kind in dict.fromkeys((*kinds, *(SIGNED_IN if needs_key else ALWAYS))):
        statuses = (400, 422) if kind.status == 400 else (kind.status,)
        for status in statuses:
            known = found.setdefault(status, answer("", schema))
            text = f"`{kind.code}`: {kind.__doc__}"
            known["description"] = "\n\n".join(filter(None, (known["description"], text)))
            known["headers"] = {**REQUEST_ID, **SHOULD_RETRY, **(RETRY_AFTER if status in (409, 429, 503) else {})}
    return found

"""The OpenAPI document: FastAPI's routes, plus each model's params inside the generation request."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from penstock.generation import GenerationBody
from penstock.offers import Offers

REFERENCE = "#/components/schemas/{model}"


def document(app: FastAPI, offers: Offers) -> dict[str, Any]:
    """The whole interface as it is served now; kept until the offers change, as making it takes long."""
    kept = getattr(app.state, "document", None)
    if kept is None or kept[0] is not offers:
        kept = app.state.document = (offers, _make(app, offers))
    return kept[1]


def _make(app: FastAPI, offers: Offers) -> dict[str, Any]:
    found = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
    schemas = found["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for path in found["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None) if _is_default(operation["responses"].get("422")) else None
    _add_requests(schemas, offers)
    return found


def _is_default(response: Any) -> bool:
    """FastAPI's own 422, which this gateway never answers."""
    return "HTTPValidationError" in str(response)


def _add_requests(schemas: dict[str, Any], offers: Offers) -> None:
    """`GenerationRequest` is one of the models' requests; each names its model and its params."""
    body = GenerationBody.model_json_schema(ref_template=REFERENCE)
    schemas.update(body.pop("$defs"))
    variants: dict[str, str] = {}
    for offer in offers.by_model.values():
        params = offer.model.params.model_json_schema(ref_template=REFERENCE)
        schemas.update(params.pop("$defs", {}))
        name = offer.model.params.__name__
        schemas[name] = params
        item = {
            "type": "object",
            "properties": {"params": {"$ref": REFERENCE.format(model=name)}},
            "required": ["params"],
            "additionalProperties": False,
        }
        request = {
            **body,
            "title": f"{offer.model.title} request",
            "properties": {
                **body["properties"],
                "model": {"const": offer.model.id, "type": "string"},
                "input": {**body["properties"]["input"], "items": item},
            },
            "example": {"model": offer.model.id, "input": [{"params": offer.model.example}]},
        }
        schemas[f"{name}Request"] = request
        variants[offer.model.id] = REFERENCE.format(model=f"{name}Request")
    schemas["GenerationRequest"] = {
        "oneOf": [{"$ref": reference} for reference in variants.values()],
        "discriminator": {"propertyName": "model", "mapping": variants},
    }

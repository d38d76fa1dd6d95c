"""The OpenAPI document: FastAPI's routes, plus each model's params inside the generation request."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any

import msgspec
from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema
from starlette.responses import Response

from penstock.catalog.model import GenerationModel
from penstock.catalog.params import Params
from penstock.catalog.schema_params import SchemaParams
from penstock.errors import MissingApiKey, StoreUnavailable
from penstock.jobs.pipelines import body
from penstock.jobs.request import GenerationBody
from penstock.offers.offer import Offers
from penstock.web.admin import bodies, price_bodies
from penstock.web.api import webhooks
from penstock.web.api.uploads import verification
from penstock.web.auth import gateway_of
from penstock.web.credentials import find_credential
from penstock.web.openapi.chat_operation import describe_doors
from penstock.web.people import bodies as people_bodies
from penstock.web.sharing import shares

router = APIRouter(include_in_schema=False)

REFERENCE = "#/components/schemas/{model}"
KEY = {"type": "http", "scheme": "bearer", "description": "`Authorization: Bearer psk_…`"}
ADMIN_KEY = {"type": "http", "scheme": "bearer", "description": "the administrator's key, `server.admin_key`"}
METRICS_KEY = {"type": "http", "scheme": "bearer", "description": "`server.metrics_key`"}
SESSION = {"type": "apiKey", "in": "cookie", "name": "penstock_session", "description": "a session of the console"}
SCHEMES = {"key": KEY, "session": SESSION, "admin_key": ADMIN_KEY, "metrics_key": METRICS_KEY}
MAX_DOCUMENTS = 32
"""Number of cached documents for keys that may use some models only."""


@router.get("/openapi.json")
async def read_document(request: Request) -> Response:
    """Answer with the OpenAPI document. A key for some models only gets these models."""
    models = frozenset[str]()
    credential = find_credential(dict(request.scope["headers"]))
    if credential is not None:
        with suppress(MissingApiKey, StoreUnavailable):
            models = (await gateway_of(request).keyring.check(credential)).models
    encoded = await asyncio.to_thread(encode_document, request.app, gateway_of(request).offers, models)
    return Response(encoded, media_type="application/json")


def document(app: FastAPI, offers: Offers) -> dict[str, Any]:
    """Return the document. It is cached until the offers change."""
    kept = getattr(app.state, "document", None)
    if kept is None or kept[0] is not offers:
        kept = app.state.document = (offers, _make(app, offers))
    return kept[1]


def encode_document(app: FastAPI, offers: Offers, models: frozenset[str]) -> bytes:
    """Return the document as JSON with these models, or with all if there are none. It is cached."""
    kept: tuple[Offers, dict[frozenset[str], bytes]] | None = getattr(app.state, "encoded", None)
    if kept is None or kept[0] is not offers or len(kept[1]) > MAX_DOCUMENTS:
        kept = app.state.encoded = offers, dict[frozenset[str], bytes]()
    known = kept[1]
    chosen = frozenset(offers.by_model.keys() & models if models else offers.by_model)
    if chosen not in known:
        if len(chosen) == len(offers.by_model):
            known[chosen] = msgspec.json.encode(document(app, offers))
        else:
            own = replace(offers, by_model={name: offers.by_model[name] for name in offers.by_model if name in chosen})
            known[chosen] = msgspec.json.encode(_make(app, own))
    return known[chosen]


def _make(app: FastAPI, offers: Offers) -> dict[str, Any]:
    found = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
    found["paths"] |= describe_doors()
    schemas = _response_shapes()
    found["components"] = {"schemas": schemas, "securitySchemes": SCHEMES}
    for path, methods in found["paths"].items():
        for operation in methods.values():
            if _is_default(operation["responses"].get("422")):
                del operation["responses"]["422"]
            if "401" in operation["responses"]:
                operation["security"] = [{name: []} if name else {} for name in _keys_of(path)]
    _add_requests(schemas, offers)
    return found


def _keys_of(path: str) -> tuple[str, ...]:
    """Return the names of the keys that open a path. An empty name stands for callers without a key."""
    if path == "/api/v1/key":
        return ("key", "admin_key")
    if path.startswith("/api/v1/session"):
        return ("session",) if path == "/api/v1/session" else ("session", "key")
    if path == "/metrics":
        return ("", "metrics_key", "admin_key")
    return ("admin_key",) if path.startswith("/admin/") else ("key",)


def _response_shapes() -> dict[str, Any]:
    """Return the schemas of answers by name. They are imported here because building them slows down the start."""
    from penstock.web.openapi import (  # noqa: PLC0415
        admin_schemas,
        content_schemas,
        openai_schemas,
        people_schemas,
        schemas,
        usage_schemas,
        verification_schemas,
    )

    of_accounts = (admin_schemas, content_schemas, people_schemas, usage_schemas)
    modules = (schemas, *of_accounts, openai_schemas, verification_schemas)
    every = {name: kind for module in modules for name, kind in vars(module).items()}.values()
    kinds = [kind for kind in every if isinstance(kind, type) and issubclass(kind, schemas.Shape)]
    _, found = models_json_schema([(kind, "serialization") for kind in kinds], ref_template=REFERENCE)
    return found["$defs"] | _request_shapes()


def _request_shapes() -> dict[str, Any]:
    """Return the schemas of request bodies by name, without generations."""
    every = {
        **vars(bodies),
        **vars(price_bodies),
        **vars(webhooks),
        **vars(shares),
        **vars(body),
        **vars(verification),
        **vars(people_bodies),
    }.values()
    kinds = [kind for kind in every if isinstance(kind, type) and issubclass(kind, Params)]
    _, found = models_json_schema([(kind, "validation") for kind in kinds], ref_template=REFERENCE)
    return found["$defs"]


def _is_default(response: Any) -> bool:
    """Return whether this is FastAPI's default 422, which the gateway never answers."""
    return "HTTPValidationError" in str(response)


def _name_params(model: GenerationModel) -> tuple[str, dict[str, Any]]:
    """Return the name and the schema of a model's params in this document."""
    if not isinstance(model.params, SchemaParams):
        return model.params.__name__, model.params.model_json_schema(ref_template=REFERENCE)
    name = f"{model.id.replace('/', '__').replace(':', '--')}.params"
    schema = dict(model.schema)
    own: dict[str, Any] = {}
    for key in ("$defs", "definitions"):  # parts of its own get names of their own
        own |= {f"{name}.{part}": value for part, value in schema.pop(key, {}).items()}
    text = msgspec.json.encode({**schema, "$defs": own}).decode()
    for key in ("$defs", "definitions"):
        text = text.replace(f'"#/{key}/', f'"{REFERENCE.format(model=name)}.')
    return name, msgspec.json.decode(text)


def _add_requests(schemas: dict[str, Any], offers: Offers) -> None:
    """Add `GenerationRequest`, which is one of the requests of all models."""
    request_body = GenerationBody.model_json_schema(ref_template=REFERENCE)
    schemas.update(request_body.pop("$defs"))
    variants: dict[str, str] = {}
    for offer in offers.by_model.values():
        name, params = _name_params(offer.model)
        schemas.update(params.pop("$defs", {}))
        schemas[name] = params
        item = {
            "type": "object",
            "properties": {"params": {"$ref": REFERENCE.format(model=name)}},
            "required": ["params"],
            "additionalProperties": False,
        }
        request = {
            **request_body,
            "title": f"{offer.model.title} request",
            "properties": {
                **request_body["properties"],
                "model": {"const": offer.model.id, "type": "string"},
                "input": {**request_body["properties"]["input"], "items": item},
            },
            "example": {"model": offer.model.id, "input": [{"params": offer.model.example}]},
        }
        schemas[f"{name}Request"] = request
        variants[offer.model.id] = REFERENCE.format(model=f"{name}Request")
    schemas["GenerationRequest"] = {
        "oneOf": [{"$ref": reference} for reference in variants.values()],
        "discriminator": {"propertyName": "model", "mapping": variants},
    }

"""`/api/v1/models`: the models with the JSON Schema of their params, prices and durations."""

from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from penstock.catalog.model import GenerationModel
from penstock.catalog.params import as_object
from penstock.chat.doors.schemas import TEXT_REQUESTS
from penstock.domain.api_keys import Scope
from penstock.domain.prices import describe_schedules
from penstock.errors import ModelNotAllowed, ModelNotFound
from penstock.gateway import Gateway
from penstock.offers.offer import ChatOffer, Offer
from penstock.web.auth import admit, signed_in
from penstock.web.responses import Json, success

router = APIRouter(tags=["Models"])


@router.get("/api/v1/models", responses={200: success("The models.", "ModelList"), **signed_in()})
async def list_models(request: Request) -> Response:
    """List the models that this key may use."""
    caller = await admit(request, Scope.READ)
    offers, allows = caller.gateway.offers, caller.key.allows_model
    records = [describe(offer, caller.gateway) for name, offer in offers.by_model.items() if allows(name)]
    records += [describe_chat_model(offer, caller.gateway) for name, offer in offers.chat.items() if allows(name)]
    return Json({"object": "list", "data": records})


@router.get(
    "/api/v1/models/{model_id:path}",
    responses={200: success("The model.", "ModelRecord"), **signed_in(ModelNotAllowed, ModelNotFound)},
)
async def get_model(model_id: str, request: Request) -> Response:
    """Get one model."""
    caller = await admit(request, Scope.READ)
    chat = caller.gateway.offers.chat.get(model_id)
    offer = None if chat else caller.gateway.offers.get(model_id, caller.key.allows_model)
    if not caller.key.allows_model(model_id):
        raise ModelNotAllowed(f"This API key may not use `{model_id}`.", param="model")
    if offer is not None:
        return Json(describe(offer, caller.gateway))
    return Json(describe_chat_model(caller.gateway.offers.chat[model_id], caller.gateway))


def describe(offer: Offer, gateway: Gateway) -> dict[str, Any]:
    """Return the record of a model."""
    model, schema = offer.model, offer.model.schema
    return {
        "id": model.id,
        "object": "model",
        "kind": model.kind,
        "title": model.title,
        "description": None,
        "params": schema,
        "defaults": _defaults(schema),
        "example": {"model": model.id, "input": [{"params": model.example}]},
        **_describe_prices(offer, gateway.clock()),
        "vendors": sorted({route.vendor for route in offer.routes}),
        "typical_seconds": gateway.history.typical(model.id),
        "endpoints": [
            "/model/v1/generation",
            f"/api/v1/{model.id}/generate",
            *(path for facade, path in _facade_paths(model) if facade not in gateway.settings.facades.off),
        ],
    }


def _facade_paths(model: GenerationModel) -> Iterator[tuple[str, str]]:
    """Yield the paths by which the protocols of other services order from a model, each with its façade."""
    if model.kind == "image":
        schema = model.schema
        needs_files = any(slot.name in schema.get("required", ()) for slot in model.files)
        if "prompt" in schema.get("properties", ()) and not needs_files:
            yield "images", "/v1/images/generations"
        if any("image" in slot.kinds for slot in model.files):
            yield "images", "/v1/images/edits"
    if model.kind == "video":
        yield "videos", "/v1/videos"
    yield "replicate", f"/replicate/v1/models/penstock/{model.id.replace('/', '--').replace(':', '--')}/predictions"
    yield "fal", f"/fal/queue/penstock/{model.id}"
    yield "mcp", "/mcp"


def _describe_prices(offer: Offer | ChatOffer, now: float) -> dict[str, Any]:
    """Return the price now for any vendor, and the current and future prices of each vendor."""
    price = offer.price_at(now)
    return {"price": None if price is None else price.describe(), "prices": describe_schedules(offer.prices, now)}


def _defaults(schema: Mapping[str, Any]) -> dict[str, Any]:
    defaults = {name: as_object(field).get("default") for name, field in schema.get("properties", {}).items()}
    return {name: default for name, default in defaults.items() if default is not None}


def describe_chat_model(offer: ChatOffer, gateway: Gateway) -> dict[str, Any]:
    """Return the record of a model with an endpoint of its own. Its params are the whole body of a request."""
    schema, endpoints = TEXT_REQUESTS[offer.kind]
    return {
        "id": offer.id,
        "object": "model",
        "kind": offer.kind,
        "title": offer.title,
        "description": offer.description,
        "params": schema,
        "defaults": {},
        "example": schema["example"] | {"model": offer.id},
        **_describe_prices(offer, gateway.clock()),
        "vendors": sorted({route.vendor for route in offer.routes}),
        "typical_seconds": None,
        "endpoints": list(endpoints),
    }

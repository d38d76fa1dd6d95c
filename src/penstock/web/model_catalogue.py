"""Models: what is on offer, with the JSON Schema of its params, its price and how long it takes."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from penstock.errors import ModelNotAllowed, ModelNotFound
from penstock.gateway import Gateway
from penstock.keys import Scope
from penstock.money import Price, format_usd
from penstock.offers import Offer
from penstock.web.access import admit, signed_in
from penstock.web.answers import Json, success

router = APIRouter(tags=["Models"])


@router.get("/api/v1/models", responses={200: success("The models.", "ModelList"), **signed_in()})
async def list_models(request: Request) -> Response:
    """Every model that this key may use."""
    caller = await admit(request, Scope.READ)
    offers = caller.gateway.offers.by_model.values()
    records = [describe(offer, caller.gateway) for offer in offers if caller.key.allows_model(offer.model.id)]
    return Json({"object": "list", "data": records})


@router.get(
    "/api/v1/models/{model_id:path}",
    responses={200: success("The model.", "ModelRecord"), **signed_in(ModelNotAllowed, ModelNotFound)},
)
async def get_model(model_id: str, request: Request) -> Response:
    """One model."""
    caller = await admit(request, Scope.READ)
    offer = caller.gateway.offers.get(model_id)
    if not caller.key.allows_model(model_id):
        raise ModelNotAllowed(f"This API key may not use `{model_id}`.", param="model")
    return Json(describe(offer, caller.gateway))


def describe(offer: Offer, gateway: Gateway) -> dict[str, Any]:
    """The catalogue's entry of a model."""
    model, schema = offer.model, offer.model.schema
    return {
        "id": model.id,
        "object": "model",
        "kind": model.kind,
        "title": model.title,
        "params": schema,
        "defaults": {
            name: field["default"] for name, field in schema["properties"].items() if field.get("default") is not None
        },
        "example": {"model": model.id, "input": [{"params": model.example}]},
        "price": None if offer.price is None else _price(offer.price),
        "vendors": sorted({route.vendor for route in offer.routes}),
        "typical_seconds": gateway.history.typical(model.id),
    }


def _price(price: Price) -> dict[str, Any]:
    return {
        "per_job": format_usd(price.per_job),
        "per_second": format_usd(price.per_second),
        "per_job_if": {name: format_usd(amount) for name, amount in price.per_job_if.items()},
        "currency": "USD",
    }

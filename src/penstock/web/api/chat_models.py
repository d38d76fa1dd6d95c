"""`/llm/models`: models of chat, embeddings and speech. `/v1/models` lists those for pictures and films as well.

Both have one format for the clients of OpenAI and of Anthropic.
"""

from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from penstock.domain.api_keys import Scope
from penstock.errors import ModelNotAllowed, ModelNotFound, ScopeNotAllowed
from penstock.offers.offer import ChatOffer, Offer
from penstock.web.auth import Caller, admit, signed_in
from penstock.web.responses import Json, success

router = APIRouter(tags=["Chat"])

FACADES = {"image": "images", "video": "videos"}
"""The kinds of media models that `/v1` serves, each with the name by which `facades.off` ends that."""


@router.head("/llm/models", include_in_schema=False)
@router.get("/llm/models", responses={200: success("The models.", "ChatModelList"), **signed_in()})
async def list_chat_models(request: Request) -> Response:
    """List the chat and embedding models that this key may use."""
    caller = await admit(request, Scope.CHAT)
    return _answer_list(caller, _chat_offers(caller))


@router.head("/v1/models", include_in_schema=False)
@router.get("/v1/models", responses={200: success("The models.", "ChatModelList"), **signed_in()})
async def list_models(request: Request) -> Response:
    """List the models that this key may use with OpenAI's clients: of chat, then those for pictures and films."""
    caller, offers = await _find_offers(request)
    return _answer_list(caller, offers)


@router.head("/llm/models/{model_id:path}", include_in_schema=False)
@router.get(
    "/llm/models/{model_id:path}",
    responses={200: success("The model.", "ChatModel"), **signed_in(ModelNotAllowed, ModelNotFound)},
)
async def get_chat_model(model_id: str, request: Request) -> Response:
    """Get one chat or embedding model. Its id may contain slashes."""
    caller = await admit(request, Scope.CHAT)
    return _answer_one(caller, caller.gateway.offers.get_chat(model_id))


@router.head("/v1/models/{model_id:path}", include_in_schema=False)
@router.get(
    "/v1/models/{model_id:path}",
    responses={200: success("The model.", "ChatModel"), **signed_in(ModelNotAllowed, ModelNotFound)},
)
async def get_model(model_id: str, request: Request) -> Response:
    """Get one of the models of `GET /v1/models`. Its id may contain slashes."""
    caller, _ = await _find_offers(request)
    offer = _media_offers(caller).get(model_id)
    return _answer_one(caller, offer or caller.gateway.offers.get_chat(model_id))


async def _find_offers(request: Request) -> tuple[Caller, dict[str, ChatOffer | Offer]]:
    """Return the caller with the models that the scopes of its key allow."""
    try:
        caller = await admit(request, Scope.CHAT)
    except ScopeNotAllowed:
        caller = await admit(request, Scope.GENERATE)
        return caller, {**_media_offers(caller)}
    return caller, {**_chat_offers(caller), **(_media_offers(caller) if caller.key.allows(Scope.GENERATE) else {})}


def _chat_offers(caller: Caller) -> dict[str, ChatOffer | Offer]:
    return {name: offer for name, offer in caller.gateway.offers.chat.items() if caller.key.allows_model(name)}


def _media_offers(caller: Caller) -> dict[str, Offer]:
    """Return the models that OpenAI's endpoints for pictures and films serve."""
    off = caller.gateway.settings.facades.off
    kinds = {kind for kind, facade in FACADES.items() if facade not in off}
    offers = caller.gateway.offers.by_model.items()
    return {name: offer for name, offer in offers if offer.kind in kinds and caller.key.allows_model(name)}


def _answer_list(caller: Caller, offers: dict[str, ChatOffer | Offer]) -> Response:
    names = list(offers)
    ends = {"first_id": names[0] if names else None, "last_id": names[-1] if names else None}
    data = [_describe(caller, offer) for offer in offers.values()]
    return Json({"object": "list", "data": data, "has_more": False, **ends})


def _answer_one(caller: Caller, offer: ChatOffer | Offer) -> Response:
    if not caller.key.allows_model(offer.id):
        raise ModelNotAllowed(f"This API key may not use `{offer.id}`.", param="model")
    return Json(_describe(caller, offer))


def _describe(caller: Caller, offer: ChatOffer | Offer) -> dict[str, Any]:
    created = int(caller.gateway.started_at)
    return {
        "id": offer.id,
        "object": "model",
        "type": "model",
        "display_name": offer.title,
        "created": created,
        "created_at": datetime.fromtimestamp(created, UTC).isoformat().replace("+00:00", "Z"),
        "lifecycle": "active",
        "owned_by": ", ".join(sorted({route.vendor for route in offer.routes})),
        "description": offer.description if isinstance(offer, ChatOffer) else None,
        "kind": offer.kind,
    }

"""`/llm/models`: chat and embedding models, in one format for the clients of OpenAI and of Anthropic."""

from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from penstock.domain.api_keys import Scope
from penstock.errors import ModelNotAllowed, ModelNotFound
from penstock.web.auth import Caller, admit, signed_in
from penstock.web.responses import Json, success

router = APIRouter(tags=["Chat"])


@router.head("/llm/models", include_in_schema=False)
@router.get("/llm/models", responses={200: success("The models.", "ChatModelList"), **signed_in()})
async def list_chat_models(request: Request) -> Response:
    """List the chat and embedding models that this key may use."""
    caller = await admit(request, Scope.CHAT)
    names = [name for name in caller.gateway.offers.chat if caller.key.allows_model(name)]
    ends = {"first_id": names[0] if names else None, "last_id": names[-1] if names else None}
    return Json({"object": "list", "data": [_describe(caller, name) for name in names], "has_more": False, **ends})


@router.head("/llm/models/{model_id:path}", include_in_schema=False)
@router.get(
    "/llm/models/{model_id:path}",
    responses={200: success("The model.", "ChatModel"), **signed_in(ModelNotAllowed, ModelNotFound)},
)
async def get_chat_model(model_id: str, request: Request) -> Response:
    """Get one chat or embedding model. Its id may contain slashes."""
    caller = await admit(request, Scope.CHAT)
    caller.gateway.offers.get_chat(model_id)
    if not caller.key.allows_model(model_id):
        raise ModelNotAllowed(f"This API key may not use `{model_id}`.", param="model")
    return Json(_describe(caller, model_id))


def _describe(caller: Caller, name: str) -> dict[str, Any]:
    offer = caller.gateway.offers.chat[name]
    created = int(caller.gateway.started_at)
    return {
        "id": name,
        "object": "model",
        "type": "model",
        "display_name": offer.title,
        "created": created,
        "created_at": datetime.fromtimestamp(created, UTC).isoformat().replace("+00:00", "Z"),
        "lifecycle": "active",
        "owned_by": ", ".join(sorted({route.vendor for route in offer.routes})),
        "description": offer.description,
        "kind": offer.kind,
    }

"""`/llm/models`: chat and embedding models in the format of OpenAI's clients."""

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
    return Json({"object": "list", "data": [_describe(caller, name) for name in names]})


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
    return {
        "id": name,
        "object": "model",
        "created": int(caller.gateway.started_at),
        "owned_by": ", ".join(sorted({route.vendor for route in offer.routes})),
        "description": offer.description,
        "kind": offer.kind,
    }

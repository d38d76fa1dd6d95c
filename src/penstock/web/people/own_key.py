"""`/api/v1/key`: the kind of the key that a request carries, so that a client can sign in with any key."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from penstock.domain.accounts import Actor
from penstock.domain.ids import timestamp
from penstock.errors import ExpiredApiKey, InvalidApiKey, MissingApiKey, RevokedApiKey
from penstock.observability import metrics
from penstock.web.auth import ALWAYS, gateway_of, is_administrator
from penstock.web.credentials import find_credential
from penstock.web.responses import Json, problems, success

router = APIRouter(tags=["Keys"])


@router.get(
    "/api/v1/key",
    responses={
        200: success("The key.", "OwnKey"),
        **problems(MissingApiKey, InvalidApiKey, ExpiredApiKey, RevokedApiKey, *ALWAYS),
    },
)
async def describe_key(request: Request) -> Response:
    """Get the kind of your key: an account's, with what it may do, or the administrator's."""
    gateway, authorization = gateway_of(request), find_credential(dict(request.scope["headers"])) or ""
    if await is_administrator(gateway, authorization):
        metrics.KEY_CHECKS.count("ok")
        request.scope["state"]["account"] = Actor.ADMIN.value
        unknown = dict.fromkeys(("public_id", "name", "account", "expires_at", "role"))
        return Json({"object": "key", "kind": "admin", **unknown, "models": [], "endpoints": [], "content_log": False})
    key = await gateway.keyring.check(authorization)
    request.scope["state"]["account"] = key.account_id
    return Json(
        {
            "object": "key",
            "kind": "account",
            "public_id": key.public_id,
            "name": key.name,
            "account": key.account,
            "expires_at": timestamp(key.expires_at),
            "models": sorted(key.models),
            "endpoints": sorted(key.scopes),
            "role": key.role,
            "content_log": key.logs_content and gateway.content_log.is_on,
        }
    )

"""Who is calling, and whether the key may do this."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.security import HTTPBearer

from penstock.errors import (
    ExpiredApiKey,
    InternalError,
    InvalidApiKey,
    MissingApiKey,
    Overloaded,
    PenstockError,
    RevokedApiKey,
    ScopeNotAllowed,
    StoreUnavailable,
)
from penstock.gateway import Gateway
from penstock.keys import ApiKey, Scope
from penstock.records import Scribe
from penstock.web.answers import problems

bearer = HTTPBearer(auto_error=False, description="`Authorization: Bearer psk_…`")

ALWAYS: tuple[type[PenstockError], ...] = (InternalError, StoreUnavailable, Overloaded)
SIGNED_IN: tuple[type[PenstockError], ...] = (
    MissingApiKey,
    InvalidApiKey,
    ExpiredApiKey,
    RevokedApiKey,
    ScopeNotAllowed,
    *ALWAYS,
)


def gateway_of(request: Request) -> Gateway:
    """The gateway behind this application."""
    return request.app.state.gateway


async def _gateway(request: Request) -> Gateway:  # a plain function would be run in a thread
    return gateway_of(request)


async def _scribe(request: Request) -> Scribe:
    return scribe_for(request)


def scribe_for(request: Request) -> Scribe:
    """Writes records with links that lead back the way the request came."""
    gateway = gateway_of(request)
    return Scribe(
        gateway.settings.server.public_url or str(request.base_url).rstrip("/"),
        gateway.clock(),
        gateway.settings.jobs.link_seconds,
        gateway.assets.sign,
        gateway.dispatch.position,
    )


def _require(scope: Scope) -> Callable[..., Awaitable[ApiKey]]:
    async def check(request: Request, _documented: Annotated[object, Depends(bearer)] = None) -> ApiKey:
        key = await gateway_of(request).keyring.check(request.headers.get("authorization"))
        request.scope["state"]["account"] = key.account_id
        if not key.allows(scope):
            allowed = ", ".join(sorted(key.scopes))
            raise ScopeNotAllowed(f"This needs the endpoint scope `{scope}`, the API key has: {allowed}.")
        return key

    return check


Generator = Annotated[ApiKey, Depends(_require(Scope.GENERATE))]
"""A key that may start, change and remove."""
Reader = Annotated[ApiKey, Depends(_require(Scope.READ))]
"""A key that may look."""
Behind = Annotated[Gateway, Depends(_gateway)]
Writer = Annotated[Scribe, Depends(_scribe)]


def signed_in(*errors: type[PenstockError]) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route that needs a key."""
    return problems(*errors, *SIGNED_IN)

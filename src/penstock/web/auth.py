"""Who is calling, and whether the key may do this."""

import hashlib
import hmac
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from fastapi import Request
from starlette.datastructures import URL

from penstock.domain.api_keys import ApiKey, Scope
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
from penstock.jobs.records import RecordBuilder
from penstock.web.responses import problems

ALWAYS: tuple[type[PenstockError], ...] = (InternalError, StoreUnavailable, Overloaded)
SIGNED_IN: tuple[type[PenstockError], ...] = (
    MissingApiKey,
    InvalidApiKey,
    ExpiredApiKey,
    RevokedApiKey,
    ScopeNotAllowed,
    *ALWAYS,
)


TRUSTED = ("127.0.0.1", "::1")
"""A proxy on the same machine is believed when it says how it was reached."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A request whose key was checked, and what it speaks to."""

    request: Request
    gateway: Gateway
    key: ApiKey

    @property
    def account_id(self) -> str:
        """Whose jobs, files and assets the caller may see."""
        return self.key.account_id

    @property
    def storage_quota(self) -> int | None:
        """Return the bytes that the account may keep; None: any number."""
        own = self.key.storage_quota
        return self.gateway.settings.storage_quota if own is None else own

    @property
    def scribe(self) -> RecordBuilder:
        """Writes records with links that lead back the way the request came."""
        return self.gateway.scribe(base_url(self.request))


def gateway_of(request: Request) -> Gateway:
    """The gateway behind this application."""
    return request.app.state.gateway


def base_url(request: Request) -> str:
    """Where links lead: the operator's public address, else the way the request came."""
    public_url = gateway_of(request).settings.server.public_url
    if public_url:
        return public_url
    scope, headers = request.scope, request.headers
    forwarded = headers.get("x-forwarded-proto", "") if scope["client"] and scope["client"][0] in TRUSTED else ""
    return _write_url(scope["scheme"], scope["server"], headers.get("host"), forwarded.rpartition(",")[2].strip())


@lru_cache(256)
def _write_url(scheme: str, server: tuple[str, int] | None, host: str | None, forwarded: str) -> str:
    headers = [] if host is None else [(b"host", host.encode("latin-1"))]
    url = URL(scope={"scheme": scheme, "server": server, "path": "/", "headers": headers})
    return str(url.replace(scheme=forwarded) if forwarded in ("http", "https") else url).rstrip("/")


async def admit(request: Request, scope: Scope) -> Caller:
    """The caller, if its key is good and may use endpoints of this scope."""
    gateway = gateway_of(request)
    authorization = request.headers.get("authorization")
    key = await gateway.keyring.check(authorization, without_store=scope is Scope.CHAT)
    request.scope["state"]["account"] = key.account_id
    if not key.allows(scope):
        allowed = ", ".join(sorted(key.scopes))
        raise ScopeNotAllowed(f"This needs the endpoint scope `{scope}`, the API key has: {allowed}.")
    return Caller(request, gateway, key)


async def count_request(caller: Caller) -> dict[str, str]:
    """Count a request against the limits of its key and account; return the headers that tell what is left."""
    if not caller.key.is_limited:
        return {}
    ticket = await caller.gateway.admission.admit(caller.key)
    headers = dict(ticket.describe())
    ticket.settle(0, 0)  # a request is used up by being let in
    return headers


def signed_in(*errors: type[PenstockError]) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route that needs a key."""
    return problems(*errors, *SIGNED_IN)


def is_same_key(text: str, secret: str) -> bool:
    """In a time that tells nothing of either, their lengths included."""
    given = hashlib.sha256(text.encode("latin-1")).digest()  # as headers are read: byte by byte
    return hmac.compare_digest(given, hashlib.sha256(secret.encode()).digest())

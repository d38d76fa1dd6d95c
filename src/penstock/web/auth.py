"""Authentication of callers by API key, and the scopes that a key has."""

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Concatenate, ParamSpec, TypeVar

from starlette.datastructures import URL
from starlette.datastructures import Headers as RequestHeaders
from starlette.requests import Request

from penstock.domain.api_keys import ADMIN_PREFIX, ApiKey, Scope, hash_secret
from penstock.domain.people.roles import PersonRole
from penstock.domain.people.sign_in import SignedIn
from penstock.errors import (
    ExpiredApiKey,
    InternalError,
    InvalidApiKey,
    MissingApiKey,
    Overloaded,
    PenstockError,
    RevokedApiKey,
    RoleNotAllowed,
    ScopeNotAllowed,
    StoreUnavailable,
)
from penstock.gateway import Gateway
from penstock.jobs.records import RecordBuilder
from penstock.store.database import Connection
from penstock.store.queries.accounts import key_rows, people_rows
from penstock.web.credentials import ACCOUNT_HEADER, SESSION, find_credential, read_cookie, refuse_other_sites
from penstock.web.permissions import SERVICE, Party, require
from penstock.web.responses import problems
from penstock.web.server.asgi import Message

P = ParamSpec("P")
T = TypeVar("T")

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
"""Addresses of proxies whose `x-forwarded-proto` is trusted: those on this machine."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A request with a valid API key, and the gateway that serves it."""

    request: Request
    gateway: Gateway
    key: ApiKey

    @property
    def account_id(self) -> str:
        """The account whose jobs, files and assets the caller may see."""
        return self.key.account_id

    @property
    def storage_quota(self) -> int | None:
        """Return the number of bytes that the account may store, or None for no limit."""
        own = self.key.storage_quota
        return self.gateway.settings.storage_quota if own is None else own

    @property
    def scribe(self) -> RecordBuilder:
        """Return a builder of records whose links start with the base URL of this request."""
        return self.gateway.scribe(base_url(self.request))


def gateway_of(request: Request) -> Gateway:
    """Return the gateway behind this application."""
    return request.app.state.gateway


def base_url(request: Request) -> str:
    """Return the base URL for links: `server.public_url`, else the address that the request was sent to."""
    return _find_base_url(gateway_of(request), request.scope)


def _find_base_url(gateway: Gateway, scope: Message) -> str:
    public_url = gateway.settings.server.public_url
    if public_url:
        return public_url
    headers = RequestHeaders(scope=scope)
    forwarded = headers.get("x-forwarded-proto", "") if scope["client"] and scope["client"][0] in TRUSTED else ""
    return _write_url(scope["scheme"], scope["server"], headers.get("host"), forwarded.rpartition(",")[2].strip())


@lru_cache(256)
def _write_url(scheme: str, server: tuple[str, int] | None, host: str | None, forwarded: str) -> str:
    headers = [] if host is None else [(b"host", host.encode("latin-1"))]
    url = URL(scope={"scheme": scheme, "server": server, "path": "/", "headers": headers})
    return str(url.replace(scheme=forwarded) if forwarded in ("http", "https") else url).rstrip("/")


async def identify(request: Request, *, without_store: bool = False) -> Caller:
    """Return the caller if its key is valid, whatever its scopes, else raise the error to answer."""
    gateway = gateway_of(request)
    credential = find_credential(dict(request.scope["headers"]))
    key = await find_session_key(gateway, request.scope) if credential is None else None
    if key is None:
        key = await gateway.keyring.check(credential, without_store=without_store)
    request.scope["state"]["account"] = key.account_id
    require(party_of(key), request.method, request.scope["route"])
    return Caller(request, gateway, key)


async def find_session(gateway: Gateway, scope: Message) -> SignedIn | None:
    """Return the console's session of a request that has no API key; None if it has no session's cookie.

    Raise if the session has ended, or if a page of another site may have sent the request.
    """
    headers, own_origin = scope["headers"], _find_base_url(gateway, scope)
    token = read_cookie(headers, SESSION, own_origin)
    if token is None:
        return None
    refuse_other_sites(scope["method"], headers, own_origin)
    state = scope["state"]
    is_new, state["has_session"] = "has_session" not in state, True
    return await gateway.sessions.check(token, touches=is_new)  # a stream that is checked again keeps no session alive


async def find_session_key(gateway: Gateway, scope: Message) -> ApiKey | None:
    """Return the hidden key of a session's person in the chosen account; None without a session."""
    signed_in = await find_session(gateway, scope)
    if signed_in is None:
        return None
    chosen = dict(scope["headers"]).get(ACCOUNT_HEADER)
    membership = signed_in.choose(None if chosen is None else chosen.decode("utf-8", "replace"))
    if membership is None:
        raise RoleNotAllowed("You have no role in this account." if chosen else "You have no role in any account.")
    try:
        return await gateway.keyring.check_hidden(membership.key_id)
    except RevokedApiKey:
        raise RoleNotAllowed("Your role in this account has ended, or the account is closed.") from None


def party_of(key: ApiKey) -> Party:
    """Return the role of the key's person, or a service key's party."""
    return SERVICE if key.role is None else key.role


@dataclass(frozen=True, slots=True)
class Somebody:
    """A person in one account, and the gateway that serves the request."""

    gateway: Gateway
    person_id: str
    account_id: str
    role: PersonRole
    now: float

    async def do(self, verb: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a change in the store. It applies here at once, on other servers within a second."""

        def change(connection: Connection) -> T:
            self._confirm(connection)
            return verb(connection, *args, **kwargs)

        done = await self.gateway.database.write(change)
        self.gateway.forget_access()
        return done

    def _confirm(self, connection: Connection) -> None:
        """Raise unless the person still has the role. It was read up to a second ago."""
        membership = people_rows.get_membership(connection, self.person_id, self.account_id)
        if membership is None or membership.role is not self.role:
            raise RoleNotAllowed("Your role in this account has just changed.", suggestion="Reload, then try again.")

    async def look(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a read in the store."""
        return await self.gateway.database.read(function, *args, **kwargs)


async def admit_person(request: Request) -> Somebody:
    """Return the person of the request. A key for some endpoints or models only does not stand for its person."""
    caller = await identify(request)
    key = caller.key
    if key.person_id is None or key.role is None:
        raise RoleNotAllowed("This needs a person, not a service key.")
    if key.scopes or key.models:
        raise ScopeNotAllowed("This key is for some endpoints or models only. Use one for all, or the console.")
    return Somebody(caller.gateway, key.person_id, key.account_id, key.role, caller.gateway.clock())


async def admit(request: Request, scope: Scope) -> Caller:
    """Return the caller if its key is valid and has this scope, else raise the error to answer."""
    caller = await identify(request, without_store=scope is Scope.CHAT)
    require_scope(caller.key, scope)
    return caller


def require_scope(key: ApiKey, scope: Scope) -> None:
    """Raise if the key does not have this scope."""
    if not key.allows(scope):
        allowed = ", ".join(sorted(key.scopes))
        raise ScopeNotAllowed(f"This needs the endpoint scope `{scope}`, the API key has: {allowed}.")


async def count_request(caller: Caller) -> dict[str, str]:
    """Count a request against the rate limits of its key and account. Return the `x-ratelimit-*` headers."""
    if not caller.key.is_limited:
        return {}
    ticket = await caller.gateway.admission.admit(caller.key)
    headers = dict(ticket.describe())
    ticket.settle(0, 0)  # a request counts as soon as it is admitted
    return headers


def signed_in(*errors: type[PenstockError]) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI `responses` of a route that needs a key."""
    return problems(*errors, *SIGNED_IN)


async def is_administrator(gateway: Gateway, authorization: str) -> bool:
    """Return whether a header has the administrator's key: of the settings, else the one that was made.

    Only text that looks like a made key is looked up in the store.
    """
    scheme, _, text = authorization.partition(" ")
    text = text.strip()
    if scheme.lower() != "bearer":
        return False
    if secret := admin_secret(gateway):
        return is_same_key(text, secret)
    if not text.startswith(ADMIN_PREFIX) or not text.isascii():
        return False
    made = await gateway.database.read(key_rows.admin_key_hash)
    return made is not None and hmac.compare_digest(hash_secret(text), made)


def admin_secret(gateway: Gateway) -> str:
    """Return the administrator's key in the settings, or an empty string. A reload of the settings applies at once."""
    kept = gateway.settings.server.admin_key
    return "" if kept is None else kept.get_secret_value().strip()


def is_same_key(text: str, secret: str) -> bool:
    """Compare two keys in constant time, whatever their lengths."""
    given = hashlib.sha256(text.encode("latin-1")).digest()  # header values are decoded as latin-1
    return hmac.compare_digest(given, hashlib.sha256(secret.encode()).digest())

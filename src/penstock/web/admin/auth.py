"""Authentication of administrators: by the key in the settings, or else by the one that the first start made."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

from fastapi import Request

from penstock.accounts.keyring import CHALLENGE
from penstock.domain.accounts import Actor
from penstock.domain.api_keys import PREFIX, ApiKey
from penstock.errors import InvalidApiKey, MissingApiKey, PenstockError, RoleNotAllowed, ScopeNotAllowed
from penstock.gateway import Gateway
from penstock.observability import metrics
from penstock.store.database import Connection
from penstock.store.queries.accounts import key_rows, people_rows
from penstock.web.auth import ALWAYS, admin_secret, find_session, gateway_of, is_administrator
from penstock.web.credentials import find_credential
from penstock.web.permissions import OPERATOR, require
from penstock.web.responses import problems

P = ParamSpec("P")
T = TypeVar("T")

ADMIN_KEY_HELP = (
    "`penstock key admin` makes one. Or set PENSTOCK_ADMIN_KEY in the server's environment, or `admin_key` in the "
    "[server] table of its settings, then restart it or send it SIGHUP."
)


@dataclass(frozen=True, slots=True)
class Administrator:
    """A request of an operator, and the gateway that serves it."""

    gateway: Gateway
    now: float
    actor: str = Actor.ADMIN

    async def do(self, verb: Callable[Concatenate[Connection, str, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a change in the store in the name of the administrator, who may just have lost the right."""

        def change(connection: Connection) -> T:
            self._confirm(connection)
            return verb(connection, self.actor, *args, **kwargs)

        done = await self.gateway.database.write(change)
        self.gateway.forget_access()  # changes apply here at once, on other servers within a second
        self.gateway.admission.reconsider()
        return done

    def _confirm(self, connection: Connection) -> None:
        """Raise unless the person still is an operator. That was read up to a second ago."""
        if self.actor != Actor.ADMIN:
            person = people_rows.find(connection, self.actor)
            if person is None or not person.is_operator:
                raise RoleNotAllowed("You are no longer an operator of this server.")

    async def look(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a read in the store."""
        return await self.gateway.database.read(function, *args, **kwargs)


async def admit_administrator(request: Request) -> Administrator:
    """Return the administrator if the key is theirs, else raise."""
    gateway, authorization = gateway_of(request), request.headers.get("authorization", "")
    if await is_administrator(gateway, authorization):
        metrics.KEY_CHECKS.count("ok")
        return await _admit_operator(request, Actor.ADMIN)
    has_key = find_credential(dict(request.scope["headers"])) is not None
    if not has_key and (signed_in := await find_session(gateway, request.scope)) is not None:
        if not signed_in.person.is_operator:
            raise RoleNotAllowed("This needs an operator.", suggestion="Ask an operator of this server.")
        return await _admit_operator(request, signed_in.person.id)
    if authorization.partition(" ")[2].strip().startswith(PREFIX):
        key = await gateway.keyring.check(authorization)
        if await _is_operators(gateway, key):
            return await _admit_operator(request, key.person_id or "")
        raise ScopeNotAllowed("This needs the administrator's key, not the key of an account.")
    is_set = bool(admin_secret(gateway)) or await gateway.database.read(key_rows.admin_key_hash) is not None
    error = _refuse(authorization, is_set=is_set)
    metrics.KEY_CHECKS.count(error.code)
    raise error


async def _admit_operator(request: Request, actor: str) -> Administrator:
    gateway = gateway_of(request)
    require(OPERATOR, request.method, request.scope["route"])
    request.scope["state"]["account"] = Actor.ADMIN.value
    await gateway.settle_up()
    return Administrator(gateway, gateway.clock(), actor)


async def _is_operators(gateway: Gateway, key: ApiKey) -> bool:
    """Return whether a key stands for a person who is an operator. The store is asked at every request."""
    if key.person_id is None or key.role is None or key.scopes or key.models:
        return False
    person = await gateway.database.read(people_rows.find, key.person_id)
    return person is not None and person.is_operator


def _refuse(authorization: str, *, is_set: bool) -> PenstockError:
    if not is_set:
        return MissingApiKey("This server has no administrator's key.", headers=CHALLENGE, suggestion=ADMIN_KEY_HELP)
    if not authorization:
        message = "You didn't provide the administrator's key. Send the header `Authorization: Bearer …`."
        return MissingApiKey(message, headers=CHALLENGE)
    return InvalidApiKey("Incorrect API key provided: it is not the administrator's.", headers=CHALLENGE)


def administered(*errors: type[PenstockError]) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI `responses` of a route that needs the administrator's key."""
    return problems(*errors, MissingApiKey, InvalidApiKey, ScopeNotAllowed, *ALWAYS)

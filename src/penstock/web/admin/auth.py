"""Who administers: whoever has the administrator's key, which no account owns and no store holds."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

from fastapi import Request

from penstock.accounts.keyring import CHALLENGE
from penstock.domain.accounts import Actor
from penstock.domain.api_keys import PREFIX
from penstock.errors import InvalidApiKey, MissingApiKey, PenstockError, ScopeNotAllowed
from penstock.gateway import Gateway
from penstock.observability import metrics
from penstock.store.database import Connection
from penstock.web.auth import ALWAYS, gateway_of, is_same_key
from penstock.web.responses import problems

P = ParamSpec("P")
T = TypeVar("T")

HOW = (
    "Set PENSTOCK_ADMIN_KEY in the server's environment, or `admin_key` in the [server] table of its settings, "
    "and start it anew or send it SIGHUP."
)


@dataclass(frozen=True, slots=True)
class Administrator:
    """A request with the administrator's key, and what it speaks to."""

    gateway: Gateway
    now: float

    async def do(self, verb: Callable[Concatenate[Connection, Actor, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a verb of administration in the administrator's name."""
        done = await self.gateway.database.write(verb, Actor.ADMIN, *args, **kwargs)
        self.gateway.keyring.forget()  # what was changed counts here at once, elsewhere within a second
        self.gateway.admission.reconsider()
        return done

    async def look(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Read from the store."""
        return await self.gateway.database.read(function, *args, **kwargs)


async def admit_administrator(request: Request) -> Administrator:
    """The administrator, if the key is theirs. Settings are read anew with every request: a reload counts at once."""
    gateway, authorization = gateway_of(request), request.headers.get("authorization", "")
    scheme, _, text = authorization.partition(" ")
    kept = gateway.settings.server.admin_key
    secret = "" if kept is None else kept.get_secret_value().strip()
    if scheme.lower() == "bearer" and secret and is_same_key(text.strip(), secret):
        metrics.KEY_CHECKS.count("ok")
        request.scope["state"]["account"] = Actor.ADMIN.value
        await gateway.settle_up()
        return Administrator(gateway, gateway.clock())
    if text.strip().startswith(PREFIX):
        await gateway.keyring.check(authorization)
        raise ScopeNotAllowed("This needs the administrator's key; an account's key does not administer.")
    error = _refuse(authorization, is_set=bool(secret))
    metrics.KEY_CHECKS.count(error.code)
    raise error


def _refuse(authorization: str, *, is_set: bool) -> PenstockError:
    if not is_set:
        return MissingApiKey("No administrator's key is set on this server.", headers=CHALLENGE, suggestion=HOW)
    if not authorization:
        told = "You didn't provide the administrator's key. Send the header `Authorization: Bearer …`."
        return MissingApiKey(told, headers=CHALLENGE)
    return InvalidApiKey("Incorrect API key provided: it is not the administrator's.", headers=CHALLENGE)


def administered(*errors: type[PenstockError]) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route that needs the administrator's key."""
    return problems(*errors, MissingApiKey, InvalidApiKey, ScopeNotAllowed, *ALWAYS)

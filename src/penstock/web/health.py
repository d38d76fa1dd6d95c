"""Health, readiness and metrics, in front of FastAPI. Only metrics may need a key."""

import asyncio
from collections.abc import Awaitable, Callable
from ipaddress import ip_network
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from penstock import __version__
from penstock.accounts.keyring import CHALLENGE
from penstock.errors import InternalError, InvalidApiKey, MissingApiKey, PenstockError, StoreUnavailable
from penstock.gateway import Gateway
from penstock.observability import metrics
from penstock.store.contact import ping
from penstock.web.auth import gateway_of, is_administrator, is_same_key
from penstock.web.responses import Json, answer_error
from penstock.web.server.asgi import Application, Message, Receive, Send
from penstock.web.server.connection_limits import is_among

OK: Final = "ok"
SILENT: Final = "does not answer"
PROBE_SECONDS: Final = 2.0
"""Timeout of the check of the store. Load balancers do not wait much longer for an answer."""

LOOPBACK: Final = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
FORWARDED: Final = frozenset({"forwarded", "x-forwarded-for", "x-real-ip", "via", "x-forwarded-host"})
"""Headers that proxies add. Such a request does not come from this machine."""
_page = metrics.RenderedPage()


async def health(request: Request) -> Response:
    """Check that the process is alive."""
    del request
    return Json({"status": "ok", "version": __version__})


async def readiness(request: Request) -> Response:
    """Check that requests are served: the store answers, or chat works without it, and the server is not draining."""
    gateway, serves_chat = gateway_of(request), request.app.state.serves_chat
    checks = {"store": await _check_store(gateway)}
    checks["jobs"] = "run here" if gateway.leadership.is_held else "run by another server"
    status = "ready" if checks["store"] == OK else "unavailable"
    outage: dict[str, Any] = {}
    contact = gateway.contact
    if checks["store"] == SILENT:
        is_served = serves_chat and bool(gateway.offers.chat) and contact.seconds_left > 0
        status = "degraded" if is_served else status
        seconds_left = contact.seconds_left if is_served else 0.0
        outage["outage"] = {"seconds": round(contact.away_seconds, 1), "seconds_left": round(seconds_left, 1)}
    status = "draining" if gateway.draining else status
    body: dict[str, Any] = {"status": status, "version": __version__, "checks": checks}
    body |= {"settings": gateway.settings.fingerprint, "settings_version": gateway.run_time.version}
    return Json(body | outage, 200 if status in ("ready", "degraded") else 503)


async def _check_store(gateway: Gateway) -> str:
    """Ask the store with a short timeout, unless it is known not to answer."""
    if gateway.database.is_refused:
        return "is of a newer version"
    if gateway.contact.is_away:
        return SILENT
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            await gateway.contact.ask(ping)
    except (StoreUnavailable, TimeoutError):
        return "is of a newer version" if gateway.database.is_refused else SILENT
    return OK


async def read_metrics(request: Request) -> Response:
    """Get metrics for Prometheus: from this machine, at `server.metrics_port`, or with a key."""
    if not request.app.state.has_open_metrics:
        await _admit_reader(request)
    body, content_type = await asyncio.to_thread(_page.read)
    return Response(body, media_type=content_type)


async def _admit_reader(request: Request) -> None:
    """Admit direct callers on this machine, and those with the metrics key or the administrator's key."""
    client = request.client
    headers = request.headers
    if client is not None and is_among(client.host, LOOPBACK) and FORWARDED.isdisjoint(headers.keys()):
        return
    gateway, authorization = gateway_of(request), headers.get("authorization", "")
    if _is_metrics_key(gateway, authorization) or await is_administrator(gateway, authorization):
        return
    message = "Metrics need `server.metrics_key` or the administrator's key as `Authorization: Bearer …`."
    kind = InvalidApiKey if authorization else MissingApiKey
    raise kind(message, headers=CHALLENGE, suggestion="Or set `server.metrics_port`, which needs no key.")


def _is_metrics_key(gateway: Gateway, authorization: str) -> bool:
    key = gateway.settings.server.metrics_key
    secret = "" if key is None else key.get_secret_value().strip()
    scheme, _, text = authorization.partition(" ")
    return bool(secret) and scheme.lower() == "bearer" and is_same_key(text.strip(), secret)


class _Check(NamedTuple):
    """A path, the methods that it takes, and the function that answers."""

    path: str
    methods: frozenset[str]
    answer: Callable[[Request], Awaitable[Response]]


_ALL: Final = (
    _Check("/healthz", frozenset({"GET", "HEAD"}), health),
    _Check("/readyz", frozenset({"GET", "HEAD"}), readiness),
    _Check("/metrics", frozenset({"GET"}), read_metrics),
)


class HealthChecks:
    """Serves what probes and Prometheus read, and passes all other requests on."""

    def __init__(self, app: Application, gateway: Gateway, *, serves_chat: bool, has_open_metrics: bool) -> None:
        self._app = app
        self.state = SimpleNamespace(gateway=gateway, serves_chat=serves_chat, has_open_metrics=has_open_metrics)
        self._checks = {each.path: each for each in _ALL}

    def __call__(self, scope: Message, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve one request."""
        if scope["type"] == "http":
            check = self._checks.get(scope["path"])
            if check is not None and scope["method"] in check.methods:
                return self._serve(check, scope, receive, send)
        return self._app(scope, receive, send)

    async def _serve(self, check: _Check, scope: Message, receive: Receive, send: Send) -> None:
        scope["app"], scope["route"] = self, check
        request = Request(scope, receive, send)
        try:
            response = await check.answer(request)
        except PenstockError as error:
            response = await answer_error(request, error)
        except Exception:
            await (await answer_error(request, InternalError()))(scope, receive, send)
            raise
        await response(scope, receive, send)

"""Health, readiness and metrics. Only metrics may need a key."""

import asyncio
from ipaddress import ip_network
from typing import Any, Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from penstock import __version__
from penstock.accounts.keyring import CHALLENGE
from penstock.errors import InvalidApiKey, MissingApiKey, StoreUnavailable
from penstock.gateway import Gateway
from penstock.observability import metrics
from penstock.store.contact import ping
from penstock.web.auth import ALWAYS, gateway_of, is_administrator, is_same_key
from penstock.web.responses import Json, problems, success
from penstock.web.server.connection_limits import is_among

OK: Final = "ok"
SILENT: Final = "does not answer"
PROBE_SECONDS: Final = 2.0
"""Timeout of the check of the store. Load balancers do not wait much longer for an answer."""

router = APIRouter(tags=["Operations"])

LOOPBACK: Final = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
FORWARDED: Final = frozenset({"forwarded", "x-forwarded-for", "x-real-ip", "via", "x-forwarded-host"})
"""Headers that proxies add. Such a request does not come from this machine."""
_page = metrics.RenderedPage()


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz", responses={200: success("Alive.", "Health")})
async def health() -> Response:
    """Check that the process is alive."""
    return Json({"status": "ok", "version": __version__})


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz", responses={200: success("Ready.", "Readiness"), 503: success("Not ready.", "Readiness")})
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


@router.get(
    "/metrics",
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
        **problems(MissingApiKey, InvalidApiKey, *ALWAYS),
    },
)
async def read_metrics(request: Request) -> Response:
    """Get metrics for Prometheus: from this machine, at `server.metrics_port`, or with a key."""
    state: Any = request.app.state
    if not getattr(state, "has_open_metrics", False):
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

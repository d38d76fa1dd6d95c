"""Operations: health, readiness, metrics and the OpenAPI document; no key needed."""

import asyncio
from typing import Any, Final

from fastapi import APIRouter, Request
from sqlalchemy import Connection, text
from starlette.responses import Response

from penstock import __version__, metrics
from penstock.errors import StoreUnavailable
from penstock.gateway import Gateway
from penstock.web.access import gateway_of
from penstock.web.answers import Json, success

OK: Final = "ok"
SILENT: Final = "does not answer"
PROBE_SECONDS: Final = 2.0
"""How long the store is waited for; load balancers do not wait much longer for us."""

router = APIRouter(tags=["Operations"])


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz", responses={200: success("Alive.", "Health")})
async def health() -> Response:
    """The process is alive and its event loop turns."""
    return Json({"status": "ok", "version": __version__})


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz", responses={200: success("Ready.", "Readiness"), 503: success("Not ready.", "Readiness")})
async def readiness(request: Request) -> Response:
    """Whether requests are served: the store answers, or chat goes on without it; and nothing is shutting down."""
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
    body = {"status": status, "version": __version__, "settings": gateway.settings.fingerprint, "checks": checks}
    return Json(body | outage, 200 if status in ("ready", "degraded") else 503)


async def _check_store(gateway: Gateway) -> str:
    """Ask the store, unless it is known to be away; whoever probes us does not wait for long."""
    if gateway.database.is_refused:
        return "is of a newer version"
    if gateway.contact.is_away:
        return SILENT
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            await gateway.contact.ask(_ask)
    except (StoreUnavailable, TimeoutError):
        return "is of a newer version" if gateway.database.is_refused else SILENT
    return OK


@router.get("/metrics", responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}})
async def read_metrics() -> Response:
    """What Prometheus reads."""
    body, content_type = metrics.render()
    return Response(body, media_type=content_type)


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> Response:
    """This interface, as a document."""
    return Json(await asyncio.to_thread(request.app.openapi))


def _ask(connection: Connection) -> None:
    connection.execute(text("SELECT 1"))

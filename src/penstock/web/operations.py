"""Operations: health, readiness, metrics and the OpenAPI document; no key needed."""

import asyncio

from fastapi import APIRouter, Request
from sqlalchemy import Connection, text
from starlette.responses import Response

from penstock import __version__, metrics
from penstock.errors import StoreUnavailable
from penstock.web.access import gateway_of
from penstock.web.answers import Json, success

router = APIRouter(tags=["Operations"])


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz", responses={200: success("Alive.", "Health")})
async def health() -> Response:
    """The process is alive and its event loop turns."""
    return Json({"status": "ok", "version": __version__})


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz", responses={200: success("Ready.", "Readiness"), 503: success("Not ready.", "Readiness")})
async def readiness(request: Request) -> Response:
    """Whether requests are served: the store answers, and the gateway is not shutting down."""
    gateway = gateway_of(request)
    checks = {"store": "ok", "jobs": "run here" if gateway.leadership.is_held else "run by another server"}
    try:
        await gateway.database.read(_ask)
    except StoreUnavailable:
        checks["store"] = "is of a newer version" if gateway.database.is_refused else "does not answer"
    status = "draining" if gateway.draining else "ready" if checks["store"] == "ok" else "unavailable"
    body = {"status": status, "version": __version__, "settings": gateway.settings.fingerprint, "checks": checks}
    return Json(body, 200 if status == "ready" else 503)


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

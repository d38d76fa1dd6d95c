"""Operations: health, readiness, metrics and the OpenAPI document; only metrics need a key, and not everywhere."""

import asyncio
from contextlib import suppress
from ipaddress import ip_network
from typing import Any, Final

from fastapi import APIRouter, Request
from sqlalchemy import Connection, text
from starlette.responses import Response

from penstock import __version__, metrics
from penstock.errors import InvalidApiKey, MissingApiKey, StoreUnavailable
from penstock.keyring import CHALLENGE
from penstock.web.access import ALWAYS, gateway_of
from penstock.web.admin_access import is_same_key
from penstock.web.answers import Json, problems, success
from penstock.web.doorman import is_among
from penstock.web.openapi import encode_document

router = APIRouter(tags=["Operations"])

LOOPBACK: Final = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
FORWARDED: Final = frozenset({"forwarded", "x-forwarded-for", "x-real-ip", "via", "x-forwarded-host"})
"""Who sends one of these is a proxy, whose callers may be anywhere."""
_page = metrics.RenderedPage()


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


@router.get(
    "/metrics",
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
        **problems(MissingApiKey, InvalidApiKey, *ALWAYS),
    },
)
async def read_metrics(request: Request) -> Response:
    """What Prometheus reads: from the same machine, by `server.metrics_port`, or with a key."""
    state: Any = request.app.state
    if not getattr(state, "has_open_metrics", False):
        _admit_reader(request)
    body, content_type = await asyncio.to_thread(_page.read)
    return Response(body, media_type=content_type)


def _admit_reader(request: Request) -> None:
    """Let in who reaches us directly from this machine, or has the key of metrics or of administrators."""
    client = request.client
    headers = request.headers
    if client is not None and is_among(client.host, LOOPBACK) and FORWARDED.isdisjoint(headers.keys()):
        return
    server = gateway_of(request).settings.server
    kept = [key.get_secret_value().strip() for key in (server.metrics_key, server.admin_key) if key is not None]
    scheme, _, text = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and any(secret and is_same_key(text.strip(), secret) for secret in kept):
        return
    told = "Metrics need the key of `server.metrics_key` or the administrator's, as `Authorization: Bearer …`."
    kind = InvalidApiKey if text else MissingApiKey
    raise kind(told, headers=CHALLENGE, suggestion="Or set `server.metrics_port`: there they need none.")


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> Response:
    """This interface, as a document; a key that may use some models only is shown these."""
    models = frozenset[str]()
    if "authorization" in request.headers:
        with suppress(MissingApiKey, StoreUnavailable):
            models = (await gateway_of(request).keyring.check(request.headers["authorization"])).models
    body = await asyncio.to_thread(encode_document, request.app, gateway_of(request).offers, models)
    return Response(body, media_type="application/json")


def _ask(connection: Connection) -> None:
    connection.execute(text("SELECT 1"))

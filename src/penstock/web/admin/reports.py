"""`/admin/v1/usage` and `/admin/v1/vendors`: usage of all accounts, and the state of the vendors."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from penstock.domain.ids import timestamp
from penstock.domain.jobs import State
from penstock.errors import InvalidRequest
from penstock.gateway import Gateway
from penstock.offers.offer import ChatOffer, Offer
from penstock.offers.route import Route
from penstock.store.database import Connection
from penstock.store.queries.jobs import vendor_rows
from penstock.store.queries.jobs.vendor_rows import VendorFailure
from penstock.web.admin.auth import administered, admit_administrator
from penstock.web.responses import Json, success
from penstock.web.usage_statement import answer_usage, describe_answer, describe_parameters

router = APIRouter(tags=["Administration"])


@router.get(
    "/admin/v1/usage",
    openapi_extra=describe_parameters(everyone=True),
    responses={200: describe_answer(), **administered(InvalidRequest)},
)
async def get_usage(request: Request) -> Response:
    """Get the usage and cost of all accounts, or of one."""
    admin = await admit_administrator(request)
    return await answer_usage(admin.gateway, request, None)


@router.get("/admin/v1/vendors", responses={200: success("The vendors.", "VendorList"), **administered()})
async def list_vendors(request: Request) -> Response:
    """List the vendors with their models, open jobs and health. Addresses and secrets are not shown."""
    admin = await admit_administrator(request)
    gateway = admin.gateway

    def read(connection: Connection) -> tuple[dict[tuple[str, str], int], dict[str, VendorFailure]]:
        return vendor_rows.open_jobs(connection), vendor_rows.last_failures(connection, gateway.offers.by_model)

    open_jobs, failures = await admin.look(read)
    routes = _routes(gateway)
    return Json(
        {
            "object": "list",
            "data": [
                _describe(gateway, name, routes.get(name, ()), open_jobs, failures.get(name))
                for name in sorted({*gateway.settings.vendors, *routes})
            ],
        }
    )


def _routes(gateway: Gateway) -> dict[str, list[tuple[Offer | ChatOffer, Route]]]:
    """Return the offers and routes of each vendor."""
    found: dict[str, list[tuple[Offer | ChatOffer, Route]]] = {}
    for offer in (*gateway.offers.by_model.values(), *gateway.offers.chat.values()):
        for route in offer.routes:
            found.setdefault(route.vendor, []).append((offer, route))
    return found


def _describe(
    gateway: Gateway,
    name: str,
    routes: Sequence[tuple[Offer | ChatOffer, Route]],
    open_jobs: Mapping[tuple[str, str], int],
    failure: VendorFailure | None,
) -> dict[str, Any]:
    chat = gateway.offers.chat_vendors.get(name)
    options = (chat or gateway.offers.vendors[name]).options
    described = [_describe_route(gateway, offer.id, route, is_chat=chat is not None) for offer, route in routes]
    return {
        "object": "vendor",
        "name": name,
        "type": options.type,
        "kind": "media" if chat is None else "chat",
        "models": sorted({offer.id for offer, _ in routes}),
        "max_concurrent": options.max_concurrent,
        "jobs_queued": open_jobs.get((name, State.QUEUED.value), 0),
        "jobs_running": sum(open_jobs.get((name, state.value), 0) for state in (State.RUNNING, State.CANCELING)),
        "routes": described,
        "last_error": None if failure is None else _describe_failure(failure),
    }


def _describe_failure(failure: VendorFailure) -> dict[str, Any]:
    return {"at": timestamp(failure.at), "model": failure.model, "code": failure.code, "message": failure.message}


def _describe_route(gateway: Gateway, model: str, route: Route, *, is_chat: bool) -> dict[str, Any]:
    return {
        "model": model,
        "upstream_model": route.model,
        "order": route.order,
        "weight": route.weight,
        "health": _describe_health(gateway, route) if is_chat else None,
    }


def _describe_health(gateway: Gateway, route: Route) -> dict[str, Any]:
    """Return the health of a chat route in this process."""
    routes = gateway.relay.routes
    health, now = routes.health(route).worst(), routes.now()
    rest = max(0.0, health.cooldown_until - now, health.retry_after_until - now)
    state = "probing" if health.probing else "resting" if rest else "open"
    error = health.error
    return {
        "state": state,
        "failures": health.failures,
        "rests_seconds": round(rest, 1),
        "last_error": None if error is None else {"code": error.code or None, "message": error.message},
    }

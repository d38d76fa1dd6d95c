"""Webhooks from vendors. A genuine notice has its job polled at once. Forged or lost ones change nothing."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from penstock.errors import NotFound, Overloaded
from penstock.gateway import Gateway
from penstock.observability import metrics
from penstock.store.queries.jobs import wakeup_rows
from penstock.store.signals import nudge
from penstock.upstream.callback_urls import PATH
from penstock.upstream.exchange import TROUBLE
from penstock.vendor_api.generation import Notice
from penstock.web.auth import gateway_of
from penstock.web.json_bodies import receive_body
from penstock.web.responses import Json

router = APIRouter(include_in_schema=False)


@router.post(PATH)
async def receive(vendor: str, reference: str, tag: str, request: Request) -> Response:
    """Receive a notice about an order, and verify it."""
    gateway = gateway_of(request)
    if not gateway.hooks.is_ours(vendor, reference, tag):
        raise NotFound
    notice = Notice(dict(request.headers), await receive_body(request, f"vendor {vendor}"), gateway.clock())
    is_genuine = await _is_genuine(gateway, vendor, notice)
    metrics.VENDOR_NOTICES.labels(vendor, "genuine" if is_genuine else "forged").inc()
    if not is_genuine:
        raise NotFound
    job_id = reference.rpartition("-")[0]
    if gateway.leadership.is_held:
        gateway.database.signals.ring([nudge(job_id)])
    else:
        await gateway.database.write(wakeup_rows.add, job_id, gateway.clock())
    return Json({"received": True})


async def _is_genuine(gateway: Gateway, name: str, notice: Notice) -> bool:
    vendor = gateway.offers.vendors.get(name)
    if vendor is None:
        return False
    try:
        return await gateway.exchange.drive(name, vendor, "hear", vendor.verify_notice(notice))
    except TROUBLE as error:  # the proof could not be fetched: the vendor will retry
        raise Overloaded(retry_after=5) from error

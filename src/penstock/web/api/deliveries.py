"""Webhook deliveries: list, get, redeliver, and test a webhook with a ping."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from penstock.domain.api_keys import Scope
from penstock.domain.ids import new_id, timestamp
from penstock.domain.webhooks import OWN_PREFIX, Delivery, DeliveryAttempt, Status, parse_delivery_id
from penstock.errors import (
    DeliveryNotFound,
    InvalidRequest,
    RateLimited,
    TooManyPings,
    WebhookDisabled,
    WebhookNotFound,
)
from penstock.store.queries.webhooks import delivery_rows, webhook_rows
from penstock.web.api.webhooks import WebhookId
from penstock.web.auth import Caller, admit, count_request, signed_in
from penstock.web.pages import NEXT_CURSOR, Limit, answer_page, refuse_cursor
from penstock.web.responses import Json, success

router = APIRouter(tags=["Webhooks"])

PING_SECONDS = 17.0
"""Seconds to wait for the outcome of a ping, a little longer than an attempt may take."""
RECHECK_SECONDS = 0.5
DeliveryId = Annotated[str, Path(description="`dlv_…`")]
Cursor = Annotated[str | None, Query(pattern="^dlv_[0-9a-hjkmnp-tv-z]{13}$", description=NEXT_CURSOR)]
ByStatus = Annotated[Status | None, Query(description="only deliveries with this status")]
RECORD = success("The delivery.", "DeliveryRecord")
PAGE = success("A page.", "DeliveryPage")


@router.get("/api/v1/webhooks/deliveries", responses={200: PAGE, **signed_in(InvalidRequest)})
async def list_deliveries(
    request: Request,
    *,
    job_id: Annotated[str | None, Query(max_length=64, description="only deliveries about this job")] = None,
    status: ByStatus = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Response:
    """List all deliveries of your account, newest first: those of its webhooks and of `webhook` in requests."""
    caller = await admit(request, Scope.READ)
    return await _list(caller, {"subject": job_id, "status": status}, limit, cursor)


@router.get(
    "/api/v1/webhooks/{webhook_id}/deliveries", responses={200: PAGE, **signed_in(InvalidRequest, WebhookNotFound)}
)
async def list_deliveries_of_webhook(
    webhook_id: WebhookId, request: Request, *, status: ByStatus = None, limit: Limit = 20, cursor: Cursor = None
) -> Response:
    """List the deliveries of one webhook, newest first."""
    caller = await admit(request, Scope.READ)
    await caller.gateway.database.read(webhook_rows.get, caller.account_id, webhook_id)
    return await _list(caller, {"webhook_id": webhook_id, "status": status}, limit, cursor)


@router.get("/api/v1/webhooks/deliveries/{delivery_id}", responses={200: RECORD, **signed_in(DeliveryNotFound)})
async def get_delivery(delivery_id: DeliveryId, request: Request) -> Response:
    """Get one delivery and its attempts."""
    caller = await admit(request, Scope.READ)
    found = await caller.gateway.database.read(delivery_rows.get, caller.account_id, _position(delivery_id))
    return Json(describe(found))


@router.get(
    "/api/v1/webhooks/deliveries/{delivery_id}/message",
    responses={200: success("The message.", "DeliveryMessage"), **signed_in(DeliveryNotFound)},
)
async def get_message(delivery_id: DeliveryId, request: Request) -> Response:
    """Get the headers and the body of a delivery, with fresh links. A key that may only read gets no signature."""
    caller = await admit(request, Scope.READ)
    gateway, now = caller.gateway, caller.gateway.clock()
    pending = await gateway.database.read(delivery_rows.whole, caller.account_id, _position(delivery_id), now)
    headers, body = gateway.delivery.compose(pending, now)
    if not caller.key.allows(Scope.GENERATE):
        headers["webhook-signature"] = "v1,…"
    return Json({"object": "webhook.message", "url": pending.delivery.url, "headers": headers, "body": body.decode()})


@router.post(
    "/api/v1/webhooks/deliveries/{delivery_id}/redeliver",
    status_code=202,
    responses={202: RECORD, **signed_in(DeliveryNotFound, WebhookDisabled)},
)
async def redeliver(delivery_id: DeliveryId, request: Request) -> Response:
    """Send a delivery again now, whatever its status, with its first `webhook-id`. Failed attempts are retried."""
    caller = await admit(request, Scope.GENERATE)
    database, now = caller.gateway.database, caller.gateway.clock()
    found = await database.write(delivery_rows.redeliver, caller.account_id, _position(delivery_id), now)
    return Json(describe(found), 202)


@router.post(
    "/api/v1/webhooks/{webhook_id}/ping",
    responses={200: RECORD, **signed_in(WebhookNotFound, TooManyPings, RateLimited)},
)
async def ping(webhook_id: WebhookId, request: Request) -> Response:
    """Send a `webhook.ping` now, even to a disabled webhook. The answer shows the outcome, or `pending`."""
    caller = await admit(request, Scope.GENERATE)
    limits = await count_request(caller)
    database, name = caller.gateway.database, new_id("ping")
    with database.signals.listen(name) as subscription:
        now, deadline = caller.gateway.clock(), caller.gateway.steady() + PING_SECONDS
        position = await database.write(delivery_rows.ping, caller.account_id, webhook_id, name, now)
        while True:
            found = await database.read(delivery_rows.get, caller.account_id, position)
            left = deadline - caller.gateway.steady()
            if found.status is not Status.PENDING or left <= 0 or caller.gateway.draining:
                return Json(describe(found), headers=limits)
            await subscription.wait(min(RECHECK_SECONDS, left))


async def _list(caller: Caller, filters: Mapping[str, Any], limit: int, cursor: str | None) -> Response:
    before = None if cursor is None else parse_delivery_id(cursor)
    if cursor is not None and before is None:
        raise refuse_cursor()
    found = await caller.gateway.database.read(delivery_rows.page, caller.account_id, filters, before, limit + 1)
    return answer_page([describe(delivery) for delivery in found], limit, "id")


def _position(delivery_id: str) -> int:
    position = parse_delivery_id(delivery_id)
    if position is None:
        raise DeliveryNotFound(suggestion="The id of a delivery looks like `dlv_…`.")
    return position


def describe(delivery: Delivery) -> dict[str, Any]:
    """Return the record of a delivery."""
    waits = delivery.status is Status.PENDING and delivery.lease is None
    return {
        "id": delivery.id,
        "object": "webhook.delivery",
        "webhook_id": None if delivery.webhook_id.startswith(OWN_PREFIX) else delivery.webhook_id,
        "url": delivery.url,
        "type": delivery.type,
        "event_id": delivery.event_id,
        "job_id": delivery.subject if delivery.subject.startswith("job_") else None,
        "sequence": delivery.sequence,
        "status": delivery.status,
        "created_at": timestamp(delivery.created_at),
        "next_attempt_at": timestamp(delivery.due_at) if waits else None,
        "finished_at": timestamp(delivery.finished_at),
        "attempts": [_describe_attempt(attempt) for attempt in delivery.attempts],
    }


def _describe_attempt(attempt: DeliveryAttempt) -> dict[str, Any]:
    return {
        "at": timestamp(attempt.at),
        "status_code": attempt.status_code,
        "latency_ms": round(attempt.seconds * 1000),
        "error": attempt.error,
        "response": attempt.response,
    }

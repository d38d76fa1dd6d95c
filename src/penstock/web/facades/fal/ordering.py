"""Orders of fal's API: the app and the inputs become a job."""

import math
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from fastapi import Request

from penstock.catalog.params import as_object
from penstock.errors import Detail
from penstock.jobs.acceptance import Receipt
from penstock.jobs.dialects.fal import OWNER
from penstock.jobs.request import refuse
from penstock.web.api.generations import describe_receipt
from penstock.web.auth import Caller
from penstock.web.facades import orders
from penstock.web.facades.hints import leave_out
from penstock.web.facades.holding import REPEAT_SECONDS, HoldRule, is_repeat
from penstock.web.json_bodies import read_json

EQUAL_SECONDS: Final = 15.0
"""Clients repeat an order whose answer was lost, without saying so: an equal one within this time is the same."""
RECOVERY_SECONDS: Final = 600.0
"""The same, while clients of a process that has ended may still come back."""
FRESH_SECONDS: Final = 60.0
"""For so long after its start, a process answers clients of the one before it."""
TIMEOUT: Final = "x-fal-request-timeout"
LIFECYCLE: Final = "x-fal-object-lifecycle-preference"
OUTER: Final = {
    "webhook.url": "fal_webhook",
    "start_timeout": "X-Fal-Request-Timeout",
    "retention": "X-Fal-Object-Lifecycle-Preference",
}


@dataclass(frozen=True, slots=True)
class AppOrder:
    """A request to an app."""

    app_id: str
    webhook: str | None = None
    held: HoldRule | None = None
    """How the connection is held until the job is done, if it is."""


async def place(caller: Caller, wanted: AppOrder) -> tuple[Receipt, dict[str, str]]:
    """Accept the job of an order, or return that of the order that it repeats. Return headers of the answer, too."""
    request = caller.request
    given = (await read_json(request)).body if _has_body(request) else {}
    fields: dict[str, Any] = {**_read_timeout(request), **_read_lifecycle(request)}
    if wanted.webhook is not None:
        fields["webhook"] = {"url": wanted.webhook}
    model = find_model(caller, wanted.app_id)
    kept, headers = leave_out(caller, model, given)
    sent: Any = [wanted.app_id, wanted.webhook, given]
    seconds = _repeat_seconds(caller)
    if wanted.held is not None:
        sent = ["run", *sent]
        if await is_repeat(caller, sent, wanted.held):
            seconds = REPEAT_SECONDS
    receipt = await orders.place(
        caller,
        orders.MediaOrder(
            model=model,
            given=kept,
            sent=sent,
            fields=fields,
            outer=OUTER,
            dialect="fal",
            is_retry=True,
            retry_seconds=seconds,
        ),
    )
    return receipt, {**describe_receipt(receipt), **headers}


def _repeat_seconds(caller: Caller) -> float:
    gateway = caller.gateway
    is_fresh = gateway.clock() - gateway.started_at < FRESH_SECONDS
    return RECOVERY_SECONDS if is_fresh else EQUAL_SECONDS


def find_model(caller: Caller, app_id: str) -> str:
    """Return our id of the model that an app id names: the longest that is served. What follows it is left out."""
    served = caller.gateway.offers.by_model
    name = app_id.strip("/").removeprefix(f"{OWNER}/")
    parts = name.split("/")
    found = ("/".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((each for each in found if each in served), name)


def _has_body(request: Request) -> bool:
    return request.headers.get("content-length", "") != "0" and (
        "content-length" in request.headers or "transfer-encoding" in request.headers
    )


def _read_timeout(request: Request) -> dict[str, float]:
    """Return `start_timeout`, if the header has it."""
    text = request.headers.get(TIMEOUT)
    if text is None:
        return {}
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not (math.isfinite(seconds) and seconds > 0):
        raise refuse([Detail(OUTER["start_timeout"], f"Should be a number of seconds above 0, got `{text[:80]}`.")])
    return {"start_timeout": seconds}


def _read_lifecycle(request: Request) -> dict[str, Any]:
    """Return `retention`, if the header has it."""
    text = request.headers.get(LIFECYCLE)
    if text is None:
        return {}
    try:
        kept: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        kept = None
    if not isinstance(kept, dict):
        raise refuse([Detail(OUTER["retention"], 'Should be JSON such as {"expiration_duration_seconds": 3600}.')])
    seconds = as_object(kept).get("expiration_duration_seconds")
    return {} if seconds is None else {"retention": seconds}

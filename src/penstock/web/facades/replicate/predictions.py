"""Predictions of Replicate's API: each is a job."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from penstock.catalog.params import read
from penstock.domain.api_keys import Scope
from penstock.domain.events import ENDINGS, EventType
from penstock.domain.jobs import Job
from penstock.errors import (
    Detail,
    Gone,
    InvalidRequest,
    JobDeleted,
    JobNotFound,
)
from penstock.jobs.acceptance import Receipt
from penstock.jobs.dialects.replicate import not_done_yet, write_prediction
from penstock.jobs.request import refuse
from penstock.store.queries.jobs import job_rows
from penstock.web.api.generations import ORDER_ERRORS, describe_receipt, idempotency_key
from penstock.web.api.jobs import read_cursor, write_cursor
from penstock.web.auth import Caller, admit, count_request
from penstock.web.facades import orders
from penstock.web.facades.describe import answer, body, errors
from penstock.web.facades.hints import leave_out
from penstock.web.facades.holding import CallerLeft, HoldRule, hold, is_repeat
from penstock.web.facades.replicate.inline import with_inline_film
from penstock.web.facades.replicate.models import find_model, find_version
from penstock.web.facades.replicate.shapes import (
    BODY,
    PREDICTION,
    PREFIX,
    PROBLEM,
    TAG,
    VERSIONED_BODY,
    PredictionBody,
    page,
)
from penstock.web.facades.replicate.streams import with_stream
from penstock.web.json_bodies import read_json
from penstock.web.responses import Json

router = APIRouter(tags=[TAG])

PAGE_SIZE: Final = 100
MAX_WAIT_SECONDS: Final = 60.0
_PREFER: Final = re.compile(r"(?:^|[,;\s])wait(?:=(\d{1,6})(?:\.\d{0,6})?)?(?:$|[,;\s])")
CANCEL_AFTER: Final = "Cancel-After"
MIN_CANCEL_SECONDS: Final = 5.0
_SPAN: Final = re.compile(r"(?:(\d{1,3})h)?(?:(\d{1,5})m)?(?:(\d{1,7})s?)?", re.ASCII)
EVENTS: Final[Mapping[str, Sequence[EventType]]] = {
    "start": (EventType.STARTED,),
    "output": (EventType.SUCCEEDED,),
    "logs": (EventType.PROGRESS,),
    "completed": tuple(ENDINGS.values()),
}
"""Our events, by the events that a webhook filters by. Outputs come with the end."""
OUTER: Final = {
    "webhook.url": "webhook",
    "model": "model",
    "start_timeout": CANCEL_AFTER,
    "run_timeout": CANCEL_AFTER,
}
CREATED = {
    201: answer("The prediction: `starting`, or done within `Prefer: wait`.", PREDICTION),
    **errors(PROBLEM, *ORDER_ERRORS),
}
ONE = {200: answer("The prediction.", PREDICTION), **errors(PROBLEM, InvalidRequest, JobNotFound, Gone, JobDeleted)}
HEADERS = [
    {"name": "Prefer", "in": "header", "schema": {"type": "string"}, "description": "`wait`, or `wait=30`: seconds"},
    {
        "name": CANCEL_AFTER,
        "in": "header",
        "schema": {"type": "string"},
        "description": "such as `1m30s`",
    },
    {"name": "Idempotency-Key", "in": "header", "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"}},
]
OPTIONS: dict[str, Any] = {"parameters": HEADERS, **body(BODY)}
VERSIONED: dict[str, Any] = {"parameters": HEADERS, **body(VERSIONED_BODY)}

PredictionId = Annotated[str, Path(description="`job_…`")]


@router.post(f"{PREFIX}/predictions", status_code=201, responses=CREATED, openapi_extra=VERSIONED)
async def create_prediction(request: Request) -> Response:
    """Start a prediction of the model in `version`."""
    return await _create(request, None)


@router.post(
    f"{PREFIX}/models/{{owner}}/{{name:path}}/predictions", status_code=201, responses=CREATED, openapi_extra=OPTIONS
)
async def create_model_prediction(owner: str, name: str, request: Request) -> Response:
    """Start a prediction of the model in the path."""
    return await _create(request, (owner, name))


@router.post(
    f"{PREFIX}/deployments/{{owner}}/{{name:path}}/predictions",
    status_code=201,
    responses=CREATED,
    openapi_extra=OPTIONS,
)
async def create_deployment_prediction(owner: str, name: str, request: Request) -> Response:
    """Start a prediction of the model in the path. A deployment is the model of its name."""
    return await _create(request, (owner, name))


async def _create(request: Request, named: tuple[str, str] | None) -> Response:
    caller = await admit(request, Scope.GENERATE)
    sent = (await read_json(request)).body
    wanted = read_order(sent)
    if named is None and wanted.version is None:
        raise refuse([Detail("version", "Field required: the `id` of a version, or `owner/name`.")])
    model = find_model(caller, *named) if named else find_version(caller, wanted.version or "")
    limits = await count_request(caller)
    seconds = read_wait(request)
    order = _order(model, wanted, sent)
    given, left_out = leave_out(caller, model, order.given)
    order = replace(order, given=given)
    if seconds is not None and idempotency_key(request) is None:
        sent = [f"wait={seconds:g}", sent]  # only a held request can be seen to lose its answer
        repeats = await is_repeat(caller, sent, HoldRule(seconds, is_answered=True))
        order = replace(order, sent=sent, is_retry=repeats, retry_seconds=seconds)
    order = replace(order, fields={**order.fields, **read_cancel_after(request)})
    receipt = await orders.place(caller, order)
    streams = wanted.stream is True
    del wanted, sent, order  # the caller may wait for long
    return await _answer(caller, receipt, seconds, {**limits, **left_out}, streams=streams)


def read_order(body: Mapping[str, Any]) -> PredictionBody:
    """Return the order. The plain one, with nothing but its input, needs no validation."""
    if set(body) == {"input"} and isinstance(body["input"], dict):
        return PredictionBody.model_construct(input=body["input"])
    wanted, details = read(PredictionBody, body, "")
    if wanted is None or details:
        raise refuse(details)
    return wanted


def _order(model: str, wanted: PredictionBody, sent: Any) -> orders.MediaOrder:
    fields: dict[str, Any] = {}
    if wanted.webhook is not None:
        events = wanted.webhook_events_filter or ["output", "completed"]
        chosen = dict.fromkeys(event for name in events for event in EVENTS[name])
        fields["webhook"] = {"url": wanted.webhook, "events": list(chosen)}
    return orders.MediaOrder(
        model=model,
        given=wanted.input,
        sent=sent,
        fields=fields,
        prefix="input.",
        outer=OUTER,
        dialect="replicate",
    )


async def _answer(
    caller: Caller, receipt: Receipt, seconds: float | None, limits: dict[str, str], *, streams: bool
) -> Response:
    job, headers = orders.first(receipt), {**limits, **describe_receipt(receipt)}
    if seconds is not None:
        headers["Preference-Applied"] = f"wait={seconds:g}"
        try:
            (job,) = await hold(caller, [job], HoldRule(seconds))
        except CallerLeft:
            return Response(status_code=499)  # nobody reads it
    prediction = await _write(caller, job)
    if streams:
        prediction = with_stream(caller, prediction)
    return Json(prediction if job.done else not_done_yet(prediction), 201, headers)


async def _write(caller: Caller, job: Job) -> dict[str, Any]:
    return await with_inline_film(caller, job, write_prediction(job, caller.scribe))


def read_cancel_after(request: Request) -> dict[str, float]:
    """Return the timeouts of `Cancel-After`: of the start and of the run, each for as long."""
    text = request.headers.get(CANCEL_AFTER)
    if text is None:
        return {}
    found = _SPAN.fullmatch(text.strip())
    hours, minutes, seconds = (int(part or 0) for part in found.groups()) if found else (0, 0, 0)
    total = float(hours * 3600 + minutes * 60 + seconds)
    if total < MIN_CANCEL_SECONDS:
        message = f"Should be a time such as `90`, `90s` or `1m30s`, at least 5 seconds, got `{text[:80]}`."
        raise refuse([Detail(CANCEL_AFTER, message)])
    return {"start_timeout": total, "run_timeout": total}


def read_wait(request: Request) -> float | None:
    """Return the seconds of `Prefer: wait`, at most 60, which is also the default; None if the header has none."""
    found = _PREFER.search(request.headers.get("prefer", ""))
    if found is None:
        return None
    return MAX_WAIT_SECONDS if found[1] is None else min(MAX_WAIT_SECONDS, float(found[1])) or None


@router.get(
    f"{PREFIX}/predictions", responses={200: answer("A page.", page(PREDICTION)), **errors(PROBLEM, InvalidRequest)}
)
async def list_predictions(
    request: Request,
    cursor: Annotated[str | None, Query(pattern="^[A-Za-z0-9_-]{1,128}$", description="of `next`")] = None,
) -> Response:
    """List your jobs, newest first, also those that were ordered in other ways."""
    caller = await admit(request, Scope.READ)
    before = None if cursor is None else read_cursor(cursor)
    filters = {"kept_at": caller.gateway.clock()}
    found = await caller.gateway.database.look(job_rows.page, caller.account_id, filters, before, PAGE_SIZE + 1)
    shown, scribe = found[:PAGE_SIZE], caller.scribe
    more = None
    if len(found) > PAGE_SIZE:
        more = orders.facade_url(request, f"{PREFIX}/predictions?cursor={write_cursor(shown[-1].id)}")
    return Json({"next": more, "previous": None, "results": [write_prediction(job, scribe) for job in shown]})


@router.get(f"{PREFIX}/predictions/{{prediction_id}}", responses=ONE)
async def get_prediction(prediction_id: PredictionId, request: Request) -> Response:
    """Get a prediction."""
    caller = await admit(request, Scope.READ)
    return Json(await _write(caller, await orders.find(caller, prediction_id)))


@router.post(f"{PREFIX}/predictions/{{prediction_id}}/cancel", responses=ONE)
async def cancel_prediction(prediction_id: PredictionId, request: Request) -> Response:
    """Cancel a prediction. Canceling again, or too late, changes nothing."""
    caller = await admit(request, Scope.GENERATE)
    return Json(write_prediction(await orders.cancel(caller, prediction_id), caller.scribe))

"""fal's queue: submit, status, result and cancel. A request is a job."""

import re
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from penstock.domain.api_keys import Scope
from penstock.domain.events import ENDINGS, Event
from penstock.domain.jobs import Job, State
from penstock.errors import Gone, InvalidRequest, JobDeleted, JobNotFound, TooManyStreams
from penstock.jobs.dialects.fal import urls_of, write_failure, write_result, write_status
from penstock.jobs.records import RecordBuilder
from penstock.store.event_reader import JobEvents
from penstock.web.api.events import EventStream, is_gone, stream_lines
from penstock.web.api.generations import ORDER_ERRORS
from penstock.web.auth import Caller, admit, count_request
from penstock.web.facades import orders
from penstock.web.facades.describe import answer, body, errors
from penstock.web.facades.fal.ordering import AppOrder, place
from penstock.web.facades.fal.shapes import (
    CANCELED,
    HEADERS,
    INPUT,
    PROBLEM,
    RESULT,
    STATUS,
    SUBMITTED,
    TAG,
)
from penstock.web.facades.fal.transcripts import with_words
from penstock.web.responses import EVENTS, Json

router = APIRouter(tags=[TAG])

AppId = Annotated[str, Path(description="`penstock/<model_id>`")]
RequestId = Annotated[str, Path(description="`job_…`")]
FIND_ERRORS = errors(PROBLEM, InvalidRequest, JobNotFound, Gone, JobDeleted)
REQUEST: Final = "/fal/queue/{app_id:path}/requests/{request_id}"
_LOGS: Final = re.compile(rb"logs=(\w{1,8})", re.ASCII)
STREAM = {
    "description": "Server-sent events, each with the status as data. The stream ends when the request is done.",
    "content": EVENTS,
}


@router.get(
    f"{REQUEST}/status/stream",
    response_class=Response,
    responses={200: STREAM, **errors(PROBLEM, InvalidRequest, JobNotFound, Gone, JobDeleted, TooManyStreams)},
)
async def stream_status(app_id: AppId, request_id: RequestId, request: Request, logs: str = "") -> Response:
    """Stream the status of a request until it is done."""
    del app_id
    return await answer_stream(await admit(request, Scope.READ), request_id, has_logs=is_true(logs))


@router.get(
    f"{REQUEST}/status",
    responses={200: answer("It is done.", STATUS), 202: answer("It is not done.", STATUS), **FIND_ERRORS},
)
async def get_status(
    app_id: AppId,
    request_id: RequestId,
    request: Request,
    logs: Annotated[str, Query(max_length=8, description="`1` or `true`: with logs")] = "",
) -> Response:
    """Get the status of a request."""
    del app_id
    return await answer_status(await admit(request, Scope.READ), request_id, has_logs=is_true(logs))


@router.put(
    f"{REQUEST}/cancel",
    status_code=202,
    responses={202: answer("It is being canceled.", CANCELED), **FIND_ERRORS},
)
async def cancel_request(app_id: AppId, request_id: RequestId, request: Request) -> Response:
    """Cancel a request. It is too late if it is done: 400 `ALREADY_COMPLETED`."""
    del app_id
    return await answer_cancel(await admit(request, Scope.GENERATE), request_id)


@router.get(REQUEST, responses={200: answer("The result.", RESULT), **FIND_ERRORS})
async def get_result(app_id: AppId, request_id: RequestId, request: Request) -> Response:
    """Get the result of a request that is done. Until then it is 400, and 422 if it has failed."""
    del app_id
    return await answer_result(await admit(request, Scope.READ), request_id)


@router.post(
    "/fal/queue/{app_id:path}",
    responses={200: answer("Accepted.", SUBMITTED), **errors(PROBLEM, *ORDER_ERRORS)},
    openapi_extra={"parameters": HEADERS, **body(INPUT)},
)
async def submit(
    app_id: AppId,
    request: Request,
    fal_webhook: Annotated[str | None, Query(max_length=2048, description="URL that gets the result")] = None,
) -> Response:
    """Submit a request to the model that the app id names."""
    return await answer_submit(await admit(request, Scope.GENERATE), app_id, fal_webhook)


# -- the same for the proxy


async def answer_submit(caller: Caller, app_id: str, webhook: str | None) -> Response:
    """Answer an order."""
    limits = await count_request(caller)
    receipt, headers = await place(caller, AppOrder(app_id, webhook))
    job, scribe = orders.first(receipt), caller.scribe
    record = {"status": "IN_QUEUE", "request_id": job.id, "queue_position": 0, **urls_of(job, scribe)}
    return Json(record, headers={**limits, **headers, **named(job)})


async def answer_status(caller: Caller, request_id: str, *, has_logs: bool) -> Response:
    """Answer with the status of a request."""
    job = await orders.find(caller, request_id)
    return Json(write_status(job, caller.scribe, has_logs=has_logs), 200 if job.done else 202, named(job))


async def answer_result(caller: Caller, request_id: str) -> Response:
    """Answer with the result of a request."""
    return await write_answer(caller, await orders.find(caller, request_id))


async def write_answer(caller: Caller, job: Job) -> Response:
    """Answer with the result of a job, or with what is in its place."""
    if job.state is State.SUCCEEDED:
        return Json(await with_words(caller, job, write_result(job, caller.scribe)), headers=named(job))
    if not job.done:
        return Json(_write_problem("Request is still in progress"), 400, named(job))
    return Json(write_failure(job), 400 if job.state is State.CANCELED else 422, named(job))


def _write_problem(text: str) -> dict[str, str]:
    """Return the body of a refusal: one client shows `detail`, the other `message`."""
    return {"detail": text, "message": text}


async def answer_cancel(caller: Caller, request_id: str) -> Response:
    """Answer a cancel."""
    job = await orders.cancel(caller, request_id)
    if job.done and job.state is not State.CANCELED:
        problem = _write_problem("The request is already completed.")
        return Json({"status": "ALREADY_COMPLETED", **problem}, 400, named(job))
    return Json({"status": "CANCELLATION_REQUESTED"}, 202, named(job))


async def answer_stream(caller: Caller, request_id: str, *, has_logs: bool) -> Response:
    """Answer with a stream of statuses."""
    await orders.find(caller, request_id)

    async def read(position: int) -> JobEvents:
        return await caller.gateway.news.of_job(request_id, position)

    gone, frame = partial(is_gone, caller, request_id), partial(_frame, has_logs=has_logs)
    return EventStream(caller, stream_lines(caller, request_id, read, 0, tuple(ENDINGS.values()), gone, frame))


def _frame(event: Event, scribe: RecordBuilder, *, has_logs: bool) -> bytes:
    assert event.job is not None  # noqa: S101  the stream is of a job
    return b"data: %b\n\n" % msgspec.json.encode(write_status(event.job, scribe, has_logs=has_logs))


def named(job: Job) -> dict[str, str]:
    """Return the header by which clients name a request."""
    return {"x-fal-request-id": job.id}


def is_true(text: Any) -> bool:
    """Return whether a query parameter says yes, as one client or the other writes it."""
    return str(text).lower() in ("1", "true")


def read_no_query(request: Request) -> Mapping[str, Any] | None:
    """Return no parameters if there is no query."""
    return None if request.scope["query_string"] else {}


def read_logs(request: Request) -> Mapping[str, Any] | None:
    """Return `logs` if the query holds nothing else."""
    query: bytes = request.scope["query_string"]
    found = _LOGS.fullmatch(query)
    return ({} if not query else None) if found is None else {"logs": found[1].decode()}

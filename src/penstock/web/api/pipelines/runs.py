"""`/api/v1/pipelines`: run, get, list, follow, cancel, retry and delete pipelines."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response, StreamingResponse

from penstock.domain.api_keys import Scope
from penstock.domain.events import PIPELINE_ENDINGS, parse_event_id
from penstock.domain.jobs import Job
from penstock.domain.money import format_usd
from penstock.domain.pipelines.records import Pipeline
from penstock.errors import (
    Gone,
    InvalidRequest,
    JobNotFound,
    PipelineNotFinished,
    PipelineNotFound,
    StoreUnavailable,
    TemplateNotFound,
    TooManyStreams,
)
from penstock.jobs.pipelines.intake import PipelineForecast, PipelineReceipt, StepForecast
from penstock.store.event_reader import JobEvents
from penstock.store.queries.jobs import advance_rows, event_rows, pipeline_rows
from penstock.web.api.events import STREAM, EventStream, LastEventId, stream_lines
from penstock.web.api.generations import ORDER_ERRORS, PARAMETERS, REPLAY_HEADERS, preferred_wait, read_submission
from penstock.web.api.waiting import RECHECK_SECONDS, STORE_RETRY_SECONDS
from penstock.web.auth import Caller, admit, count_request, signed_in
from penstock.web.pages import NEXT_CURSOR, Limit, answer_page
from penstock.web.responses import RETRY_AFTER, Json, success
from penstock.web.server.asgi import CYCLE

router = APIRouter(tags=["Pipelines"])

PipelineId = Annotated[str, Path(description="`pipe_…`")]
Cursor = Annotated[str | None, Query(pattern="^pipe_[0-9a-z]{1,40}$", description=NEXT_CURSOR)]
MAX_STREAM_EVENTS = 500
"""Events that a stream reads at once."""
CANCEL_ROUNDS = 100
CANCEL_PAUSE_SECONDS = 0.02
ACCEPTED = {
    202: success(
        "Accepted with all of its jobs. They are stored durably and do not depend on this connection.",
        "PipelineRecord",
        headers=RETRY_AFTER | REPLAY_HEADERS,
    )
}
REFUSALS = (*ORDER_ERRORS, JobNotFound)
FINISHED = success(
    "It ended within `Prefer: wait` or was ended before, or this is a dry run.",
    "PipelineRecord",
    "PipelineDryRun",
    headers=REPLAY_HEADERS,
)
RECORD = success("The pipeline.", "PipelineRecord", headers=RETRY_AFTER)
ONE = signed_in(InvalidRequest, PipelineNotFound, Gone)


def _body(schema: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    return {"parameters": PARAMETERS, "requestBody": {"required": True, "content": content}}


@router.post(
    "/api/v1/pipelines",
    status_code=202,
    responses={**ACCEPTED, 200: FINISHED, **signed_in(*REFUSALS, TemplateNotFound)},
    openapi_extra=_body("PipelineBody"),
)
async def run_pipeline(request: Request) -> Response:
    """Run steps, or a stored template. All jobs are accepted together or not at all."""
    caller = await admit(request, Scope.GENERATE)
    submission = await read_submission(caller)
    limits = await count_request(caller)
    result = await caller.gateway.pipelines.accept(submission)
    del submission
    request.scope["extensions"][CYCLE].release()
    if isinstance(result, PipelineForecast):
        return Json(_dry_run(result), headers=limits)
    return await _answer(caller, result, limits)


@router.post(
    "/api/v1/pipelines/{pipeline_id}/retry",
    status_code=202,
    responses={**ACCEPTED, **signed_in(*REFUSALS, PipelineNotFound, PipelineNotFinished, Gone)},
    openapi_extra=_body("PipelineRetryBody"),
)
async def retry_pipeline(pipeline_id: PipelineId, request: Request) -> Response:
    """Run an ended pipeline again from a step on. Outputs of the other steps are used again and not charged again."""
    caller = await admit(request, Scope.GENERATE)
    submission = await read_submission(caller)
    limits = await count_request(caller)
    return await _answer(caller, await caller.gateway.pipelines.retry(submission, pipeline_id), limits)


async def _answer(caller: Caller, receipt: PipelineReceipt, limits: dict[str, str]) -> Response:
    headers = dict(limits)
    if receipt.replayed:
        headers["Idempotency-Replayed"] = "true"
    if receipt.suppressed:
        headers["Duplicate-Suppressed"] = "true"
    pipeline, jobs = receipt.pipeline, receipt.jobs
    seconds = preferred_wait(caller.request)
    if seconds is not None:
        headers["Preference-Applied"] = f"wait={seconds:g}"
        pipeline, jobs = await _wait_until_done(caller, pipeline.id, seconds)
    if not pipeline.done:
        headers["retry-after"] = "1"
    record = caller.scribe.pipeline(pipeline, pipeline.states, jobs)
    return Json(record, 200 if pipeline.done else 202, headers)


@router.get("/api/v1/pipelines", responses={200: success("A page.", "PipelinePage"), **signed_in(InvalidRequest)})
async def list_pipelines(request: Request, *, limit: Limit = 20, cursor: Cursor = None) -> Response:
    """List your pipelines, newest first, without their jobs."""
    caller = await admit(request, Scope.READ)
    database, now = caller.gateway.database, caller.gateway.clock()
    found = await database.read(pipeline_rows.page, caller.account_id, cursor, limit + 1, now)
    job_ids = [job_id for pipeline in found if not pipeline.done for job_id in pipeline.job_ids]
    states = await database.read(pipeline_rows.states_of, job_ids) if job_ids else {}
    scribe = caller.scribe
    records = [scribe.pipeline(each, _states_of(each, states)) for each in found]
    return answer_page([dict(record) for record in records], limit, "id")


def _states_of(pipeline: Pipeline, states: dict[str, str]) -> dict[str, str]:
    known = {job_id: states[job_id] for job_id in pipeline.job_ids if job_id in states}
    return {**pipeline.states, **known}


@router.get("/api/v1/pipelines/{pipeline_id}", responses={200: RECORD, **ONE})
async def get_pipeline(
    pipeline_id: PipelineId,
    request: Request,
    wait: Annotated[
        int | None, Query(ge=1, le=60, description="wait until it has ended, at most this many seconds")
    ] = None,
) -> Response:
    """Get one pipeline with its jobs. With `wait`, the answer comes at its end or after this time."""
    caller = await admit(request, Scope.READ)
    pipeline, jobs = await _wait_until_done(caller, pipeline_id, float(wait or 0))
    return _show(caller, pipeline, jobs)


@router.post("/api/v1/pipelines/{pipeline_id}/cancel", responses={200: RECORD, **ONE})
async def cancel_pipeline(pipeline_id: PipelineId, request: Request) -> Response:
    """Cancel all open jobs of a pipeline. Canceling again, or too late, changes nothing and returns the record."""
    caller = await admit(request, Scope.GENERATE)
    gateway = caller.gateway
    for _ in range(CANCEL_ROUNDS):  # a job whose row its runner has locked just then is asked in the next round
        if await gateway.database.write(advance_rows.cancel, caller.account_id, pipeline_id, gateway.clock()):
            break
        await asyncio.sleep(CANCEL_PAUSE_SECONDS)
    return _show(caller, *await _read(caller, pipeline_id))


@router.delete(
    "/api/v1/pipelines/{pipeline_id}",
    status_code=204,
    response_class=Response,
    responses={204: {"description": "Deleted."}, **signed_in(PipelineNotFound, PipelineNotFinished, Gone)},
)
async def delete_pipeline(pipeline_id: PipelineId, request: Request) -> Response:
    """Delete an ended pipeline and its own jobs with their outputs. Jobs that it used again stay."""
    caller = await admit(request, Scope.GENERATE)
    await caller.gateway.upkeep.delete_pipeline(caller.account_id, pipeline_id)
    return Response(status_code=204)


@router.get(
    "/api/v1/pipelines/{pipeline_id}/events",
    response_class=StreamingResponse,
    responses={
        200: STREAM,
        204: {"description": "The pipeline is done and you have its last event. Do not reconnect."},
        **signed_in(InvalidRequest, PipelineNotFound, Gone, TooManyStreams),
    },
)
async def stream_pipeline(pipeline_id: PipelineId, request: Request, last_event_id: LastEventId = None) -> Response:
    """Stream the events of a pipeline and of all its jobs, until its end."""
    caller = await admit(request, Scope.READ)
    pipeline, _ = await _read(caller, pipeline_id)
    database = caller.gateway.database
    after = parse_event_id(last_event_id or "") or 0
    if after and after > await database.look(event_rows.last_position, caller.account_id):
        after = 0  # an id of another server: send all events again rather than none
    subjects = [pipeline_id, *(job_id for job_id in pipeline.job_ids if job_id not in pipeline.reused)]

    async def read(position: int) -> JobEvents:
        until = await database.settled()
        found = await database.look(event_rows.of_subjects, subjects, position, MAX_STREAM_EVENTS, until)
        return JobEvents(found, is_all=len(found) < MAX_STREAM_EVENTS)

    async def is_gone() -> bool:
        try:
            await _read(caller, pipeline_id)
        except (PipelineNotFound, Gone):
            return True
        except StoreUnavailable:
            pass  # checked again later
        return False

    if pipeline.done and after and not (await read(after)).events:
        return Response(status_code=204)
    lines = stream_lines(caller, caller.account_id, read, after, PIPELINE_ENDINGS, is_gone)
    return EventStream(caller, lines)


async def _read(caller: Caller, pipeline_id: str) -> tuple[Pipeline, dict[str, Job]]:
    database = caller.gateway.database
    pipeline, jobs = await database.look(pipeline_rows.get_whole, caller.account_id, pipeline_id)
    if pipeline.is_past(caller.gateway.clock()):
        raise Gone("The pipeline has been removed.")
    return pipeline, jobs


async def _wait_until_done(caller: Caller, pipeline_id: str, seconds: float) -> tuple[Pipeline, dict[str, Job]]:
    """Return the pipeline once it is done, the time has passed or the gateway drains."""
    clock = asyncio.get_running_loop().time
    deadline = clock() + seconds
    with caller.gateway.database.signals.listen(pipeline_id) as subscription:
        pipeline, jobs = await _read(caller, pipeline_id)
        while not (pipeline.done or caller.gateway.draining) and (left := deadline - clock()) > 0:
            pause = RECHECK_SECONDS
            await subscription.wait(min(pause, left))
            try:
                pipeline, jobs = await _read(caller, pipeline_id)
            except StoreUnavailable:
                await asyncio.sleep(STORE_RETRY_SECONDS)
    return pipeline, jobs


def _show(caller: Caller, pipeline: Pipeline, jobs: dict[str, Job]) -> Response:
    headers = {"cache-control": "private, no-cache"} | ({} if pipeline.done else {"retry-after": "1"})
    return Json(caller.scribe.pipeline(pipeline, pipeline.states, jobs), headers=headers)


def _dry_run(forecast: PipelineForecast) -> dict[str, Any]:
    return {
        "object": "pipeline.dry_run",
        "valid": True,
        "jobs": sum(step.jobs for step in forecast.steps),
        "steps": [_dry_step(step) for step in forecast.steps],
        "cost": _cost(forecast.estimated),
        "budget_left": None if forecast.budget_left is None else format_usd(forecast.budget_left),
        "expected_seconds": forecast.seconds,
    }


def _dry_step(step: StepForecast) -> dict[str, Any]:
    return {
        "name": step.name,
        "model": step.model,
        "jobs": step.jobs,
        "needs": list(step.needs),
        "cost": _cost(step.estimated),
        "expected_seconds": step.duration,
    }


def _cost(estimated: int | None) -> dict[str, Any]:
    return {"estimated": None if estimated is None else format_usd(estimated), "final": None, "currency": "USD"}

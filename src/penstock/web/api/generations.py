"""Generations: `POST /api/v1/{model_id}/generate` and `POST /model/v1/generation`."""

import re
from collections.abc import Mapping
from typing import Any, Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from penstock.domain.api_keys import Scope
from penstock.domain.money import format_usd
from penstock.errors import (
    BodyTooLarge,
    ConcurrencyLimited,
    ContentRefused,
    FileNotFound,
    GuardrailUnavailable,
    IdempotencyInProgress,
    IdempotencyKeyMismatch,
    InsufficientBudget,
    InvalidRequest,
    ModelNotAllowed,
    ModelNotFound,
    Overloaded,
    QueueFull,
    RateLimited,
    RequestTimeout,
    StorageQuotaExceeded,
    TooManyUploads,
    UnsupportedMediaType,
    open_job_headers,
)
from penstock.jobs.acceptance import Receipt, SubmittedRequest
from penstock.jobs.intake import Forecast
from penstock.web.api.waiting import wait_until_done
from penstock.web.attribution.sources import ATTRIBUTION_PARAMETERS, attribute
from penstock.web.auth import Caller, admit, base_url, count_request, signed_in
from penstock.web.json_bodies import read_json
from penstock.web.responses import RETRY_AFTER, Json, request_id_of, success
from penstock.web.server.asgi import CYCLE

router = APIRouter(tags=["Generation"])

IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,255}")

PARAMETERS = [
    {
        "name": "Idempotency-Key",
        "in": "header",
        "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
        "description": "requests with this key and an equal body return one job, however often you send them",
    },
    {
        "name": "Prefer",
        "in": "header",
        "schema": {"type": "string"},
        "description": "`wait=30`: wait up to 30 seconds for the job to finish",
    },
    *ATTRIBUTION_PARAMETERS,
]
REPLAY_HEADERS = {
    "Idempotency-Replayed": {
        "description": "`true`: an earlier request created this job",
        "schema": {"type": "string"},
    },
    "Duplicate-Suppressed": {
        "description": "`true`: recognised as a retry of your client",
        "schema": {"type": "string"},
    },
}
REUSE_HEADERS = {
    "Reused": {
        "description": "`true`: the kept result of an equal request, as `reuse` allowed",
        "schema": {"type": "string"},
    },
    "Reused-Ignored": {
        "description": "the fields of your request that the reused job does not follow, with commas between them",
        "schema": {"type": "string"},
    },
}
ORDER_ERRORS: Final = (
    InvalidRequest,
    ContentRefused,
    ModelNotAllowed,
    ModelNotFound,
    FileNotFound,
    RequestTimeout,
    IdempotencyInProgress,
    BodyTooLarge,
    UnsupportedMediaType,
    IdempotencyKeyMismatch,
    QueueFull,
    TooManyUploads,
    ConcurrencyLimited,
    RateLimited,
    InsufficientBudget,
    StorageQuotaExceeded,
    GuardrailUnavailable,
)
"""Errors that may answer a request for paid work."""
RESPONSES: dict[int | str, dict[str, Any]] = {
    202: success(
        "Accepted. The job is stored durably and does not depend on this connection.",
        "JobRecord",
        "Batch",
        headers=RETRY_AFTER | REPLAY_HEADERS,
    ),
    200: success(
        "The job finished within `Prefer: wait` or was finished before, or this is a dry run.",
        "JobRecord",
        "Batch",
        "DryRun",
        headers=REPLAY_HEADERS | REUSE_HEADERS,
    ),
    **signed_in(*ORDER_ERRORS),
}
EXTRA: dict[str, Any] = {
    "parameters": PARAMETERS,
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/GenerationRequest"}}},
    },
}


@router.post("/api/v1/{model_id:path}/generate", status_code=202, responses=RESPONSES, openapi_extra=EXTRA)
async def generate_with_model(model_id: str, request: Request) -> Response:
    """Start a generation with the model in the path. `model` in the body must be equal."""
    return await _generate(await admit(request, Scope.GENERATE), model_id)


@router.post("/model/v1/generation", status_code=202, responses=RESPONSES, openapi_extra=EXTRA)
async def generate(request: Request) -> Response:
    """Start a generation with the model in the body."""
    return await _generate(await admit(request, Scope.GENERATE), None)


async def _generate(caller: Caller, path_model: str | None) -> Response:
    request = caller.request
    submission = await read_submission(caller, path_model)
    limits = await count_request(caller)
    result = await caller.gateway.intake.accept(submission)
    del submission  # and the body with it, since the caller may wait for long
    request.scope["extensions"][CYCLE].release()
    if isinstance(result, Forecast):
        return Json(_dry_run(result), headers=limits)
    return await _answer(caller, result, preferred_wait(request), limits)


async def read_submission(caller: Caller, path_model: str | None = None) -> SubmittedRequest:
    """Return the body and the headers of a request for paid work."""
    if caller.gateway.draining:
        raise Overloaded("The gateway is shutting down.", retry_after=2)
    request = caller.request
    decoded = await read_json(request)
    return SubmittedRequest(
        decoded=decoded,
        path_model=path_model,
        key=caller.key,
        request_id=request_id_of(request),
        idempotency_key=idempotency_key(request),
        is_retry=retry_count(request) >= 1,
        base_url=base_url(request),
        attribution=attribute(request, caller.key, decoded.body.get("metadata")),
    )


async def _answer(caller: Caller, receipt: Receipt, seconds: float | None, limits: dict[str, str]) -> Response:
    jobs = list(receipt.jobs)
    headers = dict(limits)
    if (room := receipt.headroom) is not None:
        headers |= open_job_headers(room.limit, room.remaining)
    headers |= describe_receipt(receipt)
    if seconds is not None:
        headers["Preference-Applied"] = f"wait={seconds:g}"
        jobs = await wait_until_done(caller.gateway, jobs, seconds)
    done = all(job.done for job in jobs)
    if not done:
        headers["retry-after"] = "1"
    scribe = caller.scribe
    records = [scribe.job(job) for job in jobs]
    body = {"object": "generation.batch", "id": receipt.id, "jobs": records} if receipt.is_batch else records[0]
    return Json(body, 200 if done else 202, headers)


def describe_receipt(receipt: Receipt) -> dict[str, str]:
    """Return the headers that say that the jobs are not new."""
    headers: dict[str, str] = {}
    if receipt.replayed:
        headers["Idempotency-Replayed"] = "true"
    if receipt.suppressed:
        headers["Duplicate-Suppressed"] = "true"
    if receipt.reused:
        headers["Reused"] = "true"
    if receipt.ignored:
        headers["Reused-Ignored"] = ", ".join(receipt.ignored)
    return headers


def read_no_params(request: Request) -> Mapping[str, Any]:
    """Return no parameters: these endpoints read the body and the headers themselves."""
    del request
    return {}


def idempotency_key(request: Request) -> str | None:
    """Return the key by which the caller names this request."""
    key = request.headers.get("idempotency-key")
    if key is not None and not IDEMPOTENCY_KEY.fullmatch(key):
        raise InvalidRequest("`Idempotency-Key` is 1 to 255 visible ASCII characters.", param="Idempotency-Key")
    return key


def retry_count(request: Request) -> int:
    """Return the number of earlier attempts that the caller's SDK reports."""
    count = request.headers.get("x-stainless-retry-count", "0")
    return int(count) if count.isascii() and count.isdigit() and len(count) < 6 else 0


def preferred_wait(request: Request) -> float | None:
    """Return the seconds of `Prefer: wait`, at most 60. A header that cannot be parsed is ignored."""
    found = re.search(r"(?:^|[,;\s])wait=(\d{1,6})(?:$|[,;\s])", request.headers.get("prefer", ""))
    return min(60.0, float(found[1])) if found and int(found[1]) > 0 else None


def _dry_run(forecast: Forecast) -> dict[str, Any]:
    estimated = None if forecast.estimated is None else format_usd(forecast.estimated)
    return {
        "object": "generation.dry_run",
        "model": forecast.model,
        "valid": True,
        "input": forecast.inputs,
        "cost": {"estimated": estimated, "final": None, "currency": "USD"},
        "budget_left": None if forecast.budget_left is None else format_usd(forecast.budget_left),
        "expected_seconds": forecast.duration,
        "guardrails": [finding.describe() for finding in forecast.findings],
    }

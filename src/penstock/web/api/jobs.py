"""`/api/v1/jobs`: get, list, cancel and delete jobs."""

import base64
import binascii
import math
import re
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from pydantic import AwareDatetime, BeforeValidator
from pydantic_core import PydanticCustomError
from starlette.responses import Response

from penstock.domain import jobs
from penstock.domain.api_keys import Scope
from penstock.domain.jobs import Job, State, poll_after_ms
from penstock.domain.searching.query import SearchQuery, read_query
from penstock.errors import Gone, InvalidRequest, JobDeleted, JobNotFinished, JobNotFound
from penstock.jobs.records import RecordBuilder
from penstock.store.queries.jobs import job_rows, search_rows
from penstock.web.api.waiting import wait_until_done
from penstock.web.auth import Caller, admit, signed_in
from penstock.web.pages import NEXT_CURSOR, Limit, refuse_cursor, write_page
from penstock.web.responses import RETRY_AFTER, Json, success

router = APIRouter(tags=["Jobs"])

JobId = Annotated[str, Path(description="`job_…`")]
ETAG = {
    "etag": {"description": "send it as `If-None-Match` to get a 304 if nothing changed", "schema": {"type": "string"}}
}
ONE = signed_in(InvalidRequest, JobNotFound, Gone, JobDeleted)
RECORD = success("The job.", "JobRecord", headers=RETRY_AFTER | ETAG)
RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def _check_moment(text: str) -> str:
    """Require RFC 3339. Pydantic would also accept plain numbers and days."""
    if not RFC_3339.fullmatch(text):
        raise PydanticCustomError("rfc_3339", "Should be RFC 3339 with a zone, such as 2026-01-31T09:30:00Z")
    return text


SEARCH = (
    "search: words of the prompt, of the input's file name or of `client_ref`, or the beginning of the job's id. "
    "All words must match; the last one may be the beginning of a word. A page may be short while `has_more` is true"
)
WAIT = re.compile(rb"wait=([1-9]|[1-5]\d|60)")
Moment = Annotated[AwareDatetime, BeforeValidator(_check_moment)]


@router.get("/api/v1/jobs", responses={200: success("A page.", "JobPage"), **signed_in(InvalidRequest)})
async def list_jobs(
    request: Request,
    *,
    q: Annotated[str | None, Query(min_length=1, max_length=200, description=SEARCH)] = None,
    status: Annotated[State | None, Query(description="only jobs in this state")] = None,
    model: Annotated[str | None, Query(max_length=200)] = None,
    client_ref: Annotated[str | None, Query(max_length=128)] = None,
    batch: Annotated[str | None, Query(max_length=64)] = None,
    pipeline: Annotated[
        str | None, Query(max_length=64, description="only jobs of this pipeline, and those that it uses again")
    ] = None,
    created_after: Annotated[Moment | None, Query(description="RFC 3339 with a zone")] = None,
    created_before: Annotated[Moment | None, Query(description="RFC 3339 with a zone")] = None,
    limit: Limit = 20,
    cursor: Annotated[str | None, Query(pattern="^[A-Za-z0-9_-]{1,128}$", description=NEXT_CURSOR)] = None,
) -> Response:
    """List your jobs, newest first."""
    caller = await admit(request, Scope.READ)
    filters = {
        "state": status,
        "model": model,
        "client_ref": client_ref,
        "batch_id": batch,
        "pipeline": pipeline,
        "created_after": None if created_after is None else created_after.timestamp(),
        "created_before": None if created_before is None else created_before.timestamp(),
        "kept_at": caller.gateway.clock(),
    }
    before = None if cursor is None else read_cursor(cursor)
    if q is not None:
        return await _search(caller, _read_search(q), filters, before, limit)
    found = await caller.gateway.database.look(job_rows.page, caller.account_id, filters, before, limit + 1)
    page, scribe = found[:limit], caller.scribe
    next_cursor = write_cursor(page[-1].id) if len(found) > limit else None
    return write_page([scribe.job(job) for job in page], next_cursor=next_cursor)


@router.get("/api/v1/jobs/{job_id}", responses={200: RECORD, 304: {"description": "Not modified."}, **ONE})
@router.get("/model/v1/generation/{job_id}", responses={200: RECORD, 304: {"description": "Not modified."}, **ONE})
async def get_job(
    job_id: JobId,
    request: Request,
    wait: Annotated[
        int | None, Query(ge=1, le=60, description="wait until the job is done, at most this many seconds")
    ] = None,
) -> Response:
    """Get one job. With `wait`, the answer comes when the job is done or the time has passed."""
    caller = await admit(request, Scope.READ)
    job = await caller.gateway.database.look(job_rows.get, caller.account_id, job_id)
    if job.is_past(caller.gateway.clock()):
        raise Gone
    if wait is not None:
        job = (await wait_until_done(caller.gateway, [job], wait))[0]
    return _answer(job, caller.scribe, request.headers.get("if-none-match"))


@router.post("/api/v1/jobs/{job_id}/cancel", responses={200: RECORD, **ONE})
@router.post("/model/v1/generation/{job_id}/cancel", responses={200: RECORD, **ONE})
async def cancel_job(job_id: JobId, request: Request) -> Response:
    """Cancel a job. Canceling again, or too late, changes nothing and returns the record."""
    caller = await admit(request, Scope.GENERATE)
    now = caller.gateway.clock()
    job = await caller.gateway.database.write(
        job_rows.amend_own, caller.account_id, job_id, lambda job: jobs.request_cancel(job, now), now
    )
    return _answer(job, caller.scribe, None)


@router.delete(
    "/api/v1/jobs/{job_id}",
    status_code=204,
    response_class=Response,
    responses={204: {"description": "Deleted."}, **signed_in(JobNotFound, Gone, JobDeleted, JobNotFinished)},
)
async def delete_job(job_id: JobId, request: Request) -> Response:
    """Delete the params, outputs and files of a finished job. Its id answers 410 later. Its cost is kept."""
    caller = await admit(request, Scope.GENERATE)
    await caller.gateway.upkeep.delete(caller.account_id, job_id)
    return Response(status_code=204)


async def _search(
    caller: Caller, query: SearchQuery, filters: Mapping[str, Any], before: str | None, limit: int
) -> Response:
    """Answer with a page of the jobs that match. It may be short: `has_more` says whether others may follow."""
    database, scribe = caller.gateway.database, caller.scribe
    page = await database.read(search_rows.search, caller.account_id, query, filters, before, limit)
    next_cursor = None if page.next_before is None else write_cursor(page.next_before)
    return write_page([scribe.job(job) for job in page.jobs], next_cursor=next_cursor)


def _read_search(text: str) -> SearchQuery:
    query = read_query(text)
    if query is None:
        raise InvalidRequest("`q` needs at least one letter or digit.", param="q")
    return query


def read_wait(request: Request) -> Mapping[str, Any] | None:
    """Return `wait` if the query holds nothing else, and no parameters if it is empty."""
    query: bytes = request.scope["query_string"]
    if not query:
        return {}
    found = WAIT.fullmatch(query)
    return None if found is None else {"wait": int(found[1])}


def _answer(job: Job, scribe: RecordBuilder, known_etag: str | None) -> Response:
    etag = _etag(job, scribe)
    headers = {"etag": f"W/{etag}", "cache-control": "private, no-cache"}
    wait = poll_after_ms(job, scribe.now)
    if wait is not None:
        headers["retry-after"] = str(max(1, math.ceil(wait / 1000)))
    if known_etag is not None and (etag in known_etag or known_etag == "*"):
        return Response(status_code=304, headers=headers)
    return Json(scribe.job(job), headers=headers)


def _etag(job: Job, scribe: RecordBuilder) -> str:
    """Return an ETag that changes with the row, with the queue position, and before the links in a record expire."""
    place = scribe.position(job.id) if job.state is State.QUEUED else None
    age = int(scribe.now / scribe.link_seconds * 2) if job.outputs or job.file else None
    parts = (job.id, job.sequence, place, age)
    return '"' + "-".join(str(part) for part in parts if part is not None) + '"'


def write_cursor(job_id: str) -> str:
    """Return the cursor of the page after this job."""
    return base64.urlsafe_b64encode(job_id.encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> str:
    """Return the job that the page before ended with."""
    try:
        job_id = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
    except (binascii.Error, ValueError):
        job_id = ""
    if not job_id.startswith("job_"):
        raise refuse_cursor()
    return job_id

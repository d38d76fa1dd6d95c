"""`GET /api/v1/jobs/{id}/lineage`: the jobs that led to a job, and those that were made from its outputs."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from penstock.domain.api_keys import Scope
from penstock.errors import Gone, JobDeleted, JobNotFound
from penstock.store.database import Connection
from penstock.store.queries.files import lineage_rows
from penstock.store.queries.jobs import job_rows
from penstock.web.api.jobs import JobId
from penstock.web.auth import admit, signed_in
from penstock.web.responses import Json, success

router = APIRouter(tags=["Jobs"])


@router.get(
    "/api/v1/jobs/{job_id}/lineage",
    responses={200: success("The lineage.", "LineageRecord"), **signed_in(JobNotFound, Gone, JobDeleted)},
)
async def get_lineage(job_id: JobId, request: Request) -> Response:
    """Get the jobs whose outputs led to this job, and those that took its outputs, at any distance."""
    caller = await admit(request, Scope.READ)
    return Json(await caller.gateway.database.read(_walk, caller.account_id, job_id))


def _walk(connection: Connection, account_id: str, job_id: str) -> dict[str, Any]:
    job_rows.get(connection, account_id, job_id)
    up = lineage_rows.walk_up(connection, account_id, job_id)
    down = lineage_rows.walk_down(connection, account_id, job_id)
    walked = [*up.links, *down.links]
    job_ids = dict.fromkeys([job_id, *(name for each in walked for name in (each.link.parent_id, each.link.child_id))])
    return {
        "object": "lineage",
        "job": job_id,
        "parents": [_describe(each) for each in up.links],
        "children": [_describe(each) for each in down.links],
        "jobs": [
            {
                "id": job.id,
                "model": job.model,
                "status": job.state.value,
                "step": job.step,
                "pipeline_id": job.pipeline_id,
            }
            for job in job_rows.get_several(connection, list(job_ids))
        ],
        "truncated": up.is_cut or down.is_cut,
    }


def _describe(walked: lineage_rows.WalkedLink) -> dict[str, Any]:
    link = walked.link
    return {
        "parent": link.parent_id,
        "child": link.child_id,
        "param": link.path,
        "output": link.asset_id or None,
        "distance": walked.distance,
    }

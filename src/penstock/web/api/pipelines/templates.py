"""`/api/v1/pipelines/templates`: stored pipelines with versions."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from penstock.domain.api_keys import Scope
from penstock.domain.ids import timestamp
from penstock.domain.pipelines.records import OnError, PipelineTemplate
from penstock.errors import (
    BodyTooLarge,
    InvalidRequest,
    RequestTimeout,
    TemplateNotFound,
    TooManyTemplates,
    UnsupportedMediaType,
)
from penstock.jobs.intake import raise_all
from penstock.jobs.pipelines.body import NAME, PipelineTemplateBody, find_excess
from penstock.store.queries.jobs import pipeline_rows
from penstock.web.auth import admit, signed_in
from penstock.web.json_bodies import describe_body, read_params
from penstock.web.responses import Json, success

router = APIRouter(tags=["Pipelines"])

TemplateName = Annotated[str, Path(description="1 to 64 of `a`-`z`, `0`-`9`, `_` and `-`", pattern=NAME)]
Version = Annotated[int | None, Query(ge=1, le=2**31 - 1, description="default: the newest")]
RECORD = success("The template.", "PipelineTemplateRecord")
BODY = (InvalidRequest, RequestTimeout, BodyTooLarge, UnsupportedMediaType)


@router.get(
    "/api/v1/pipelines/templates",
    responses={200: success("The newest version of each.", "PipelineTemplateList"), **signed_in()},
)
async def list_templates(request: Request) -> Response:
    """List your templates by name, each in its newest version."""
    caller = await admit(request, Scope.READ)
    found = await caller.gateway.database.read(pipeline_rows.list_templates, caller.account_id)
    return Json({"object": "list", "data": [_describe(template) for template in found], "has_more": False})


@router.put(
    "/api/v1/pipelines/templates/{name}",
    responses={200: RECORD, **signed_in(*BODY, TooManyTemplates)},
    openapi_extra=describe_body("PipelineTemplateBody"),
)
async def put_template(name: TemplateName, request: Request) -> Response:
    """Store a pipeline under this name, as its next version. Its params are checked when it runs."""
    caller = await admit(request, Scope.GENERATE)
    body, _ = await read_params(request, PipelineTemplateBody)
    raise_all([*find_excess(body.steps, body.params or {})])
    kept, now = body.model_dump(mode="json", exclude_none=True), caller.gateway.clock()
    template = await caller.gateway.database.write(pipeline_rows.put_template, caller.account_id, name, kept, now)
    return Json(_describe(template))


@router.get(
    "/api/v1/pipelines/templates/{name}", responses={200: RECORD, **signed_in(InvalidRequest, TemplateNotFound)}
)
async def get_template(name: TemplateName, request: Request, version: Version = None) -> Response:
    """Get a version of a template."""
    caller = await admit(request, Scope.READ)
    get = pipeline_rows.get_template
    return Json(_describe(await caller.gateway.database.read(get, caller.account_id, name, version)))


@router.delete(
    "/api/v1/pipelines/templates/{name}",
    status_code=204,
    response_class=Response,
    responses={204: {"description": "Deleted."}, **signed_in(InvalidRequest, TemplateNotFound)},
)
async def delete_template(name: TemplateName, request: Request) -> Response:
    """Delete all versions of a template. Pipelines that it made stay."""
    caller = await admit(request, Scope.GENERATE)
    await caller.gateway.database.write(pipeline_rows.remove_template, caller.account_id, name)
    return Response(status_code=204)


def _describe(template: PipelineTemplate) -> dict[str, Any]:
    return {
        "object": "pipeline.template",
        "name": template.name,
        "version": template.version,
        "created_at": timestamp(template.created_at),
        "description": template.body.get("description"),
        "steps": template.body["steps"],
        "on_error": template.body.get("on_error", OnError.STOP.value),
        "params": template.body.get("params", {}),
    }

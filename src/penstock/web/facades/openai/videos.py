"""OpenAI Videos: `/v1/videos`. A video is a job whose model makes films, under the job's own id."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from penstock.catalog.params import as_object
from penstock.domain.api_keys import Scope
from penstock.domain.jobs import Job, State, poll_after_ms
from penstock.errors import (
    AssetNotFound,
    InvalidRequest,
    JobDeleted,
    JobNotFinished,
    JobNotFound,
)
from penstock.jobs.acceptance import Receipt
from penstock.storage.assets import CACHED
from penstock.store.queries.files import asset_rows
from penstock.store.queries.jobs import job_rows
from penstock.web.api.assets import PRESIGNED_SECONDS, answer_asset
from penstock.web.api.generations import describe_receipt
from penstock.web.api.waiting import wait_until_done
from penstock.web.auth import Caller, admit, count_request
from penstock.web.facades.forms import FileField, ReceivedForm, is_form, read_texts, received_form
from penstock.web.facades.neutral import param_names
from penstock.web.facades.openai import described
from penstock.web.facades.openai.choosing import (
    choose,
    has_what_it_needs,
    makes_from_text,
    split_hints,
    takes_films,
    takes_pictures,
    usual_measures,
)
from penstock.web.facades.openai.video_record import STATES, describe, find_film, find_thumbnail
from penstock.web.facades.orders import MediaOrder, cancel, find, first, place
from penstock.web.json_bodies import read_json
from penstock.web.pages import Limit
from penstock.web.responses import Json

router = APIRouter(tags=["Videos (OpenAI)"])

POLL_AFTER: Final = "openai-poll-after-ms"
DELETE_SECONDS: Final = 10.0
"""How long the deletion of a running video waits for its end."""
FILM: Final = {"video": FileField("video")}
FILES: Final = {"input_reference": FileField("image"), **FILM}
OWN: Final = frozenset({"model"})
HINTS: Final = frozenset({"prompt", "user", "safety_identifier"})
"""Fields that a model without them may ignore."""
Variant = Annotated[
    Literal["video", "thumbnail", "spritesheet"],
    Query(description="`thumbnail` is the preview of models that make one; there are no spritesheets"),
]
After = Annotated[str | None, Query(pattern="^job_[0-9a-z]{1,40}$", description="the id of the last video seen")]


@router.post("/v1/videos", responses=described.CREATED, openapi_extra=described.CREATE)
async def create(request: Request) -> Response:
    """Start a film. The body is a form, or JSON."""
    caller = await admit(request, Scope.GENERATE)
    limits = await count_request(caller)
    if is_form(request):
        async with received_form(caller, FILES) as form:
            receipt = await _create(caller, _with_files(form), form.content)
    else:
        body = (await read_json(request)).body
        receipt = await _create(caller, body, body)
    return _created(caller, receipt, limits)


@router.post("/v1/videos/edits", responses=described.CREATED, openapi_extra=described.CHANGE)
async def edit(request: Request) -> Response:
    """Change a film by a prompt: an upload, or a video of yours."""
    return await _change(request, "edit")


@router.post("/v1/videos/extensions", responses=described.CREATED, openapi_extra=described.CHANGE)
async def extend(request: Request) -> Response:
    """Continue a film: an upload, or a video of yours."""
    return await _change(request, "extend")


@router.post("/v1/videos/{video_id}/remix", responses=described.CREATED, openapi_extra=described.REMIX)
async def remix(video_id: str, request: Request) -> Response:
    """Change a video of yours by a prompt, where a model takes films."""
    caller = await admit(request, Scope.GENERATE)
    limits = await count_request(caller)
    body = (await read_json(request)).body
    if "video" in body:
        raise InvalidRequest("The path names the video: leave `video` out.", param="video")
    receipt = await _place_change(caller, {**body, "video": {"id": video_id}}, body, "edit")
    return _created(caller, receipt, limits)


@router.get("/v1/videos", responses=described.LISTED)
async def list_videos(
    request: Request, *, after: After = None, limit: Limit = 20, order: Literal["asc", "desc"] = "desc"
) -> Response:
    """List your videos, newest first."""
    caller = await admit(request, Scope.READ)
    gateway = caller.gateway
    models = [name for name, model in gateway.offers.known.items() if model.kind == "video"]
    page = job_rows.ModelPage(models, after, limit + 1, oldest_first=order == "asc")
    found = await gateway.database.look(job_rows.page_of_models, caller.account_id, page, gateway.clock())
    shown = [describe(job) for job in found[:limit]]
    ends = {"first_id": shown[0]["id"] if shown else None, "last_id": shown[-1]["id"] if shown else None}
    return Json({"object": "list", "data": shown, **ends, "has_more": len(found) > limit})


@router.get("/v1/videos/{video_id}", responses=described.RETRIEVED)
async def retrieve(video_id: str, request: Request) -> Response:
    """Get a video. The header `openai-poll-after-ms` says when to ask again."""
    caller = await admit(request, Scope.READ)
    return _answer(caller, await _find(caller, video_id), {})


@router.delete("/v1/videos/{video_id}", responses=described.DELETED)
async def delete(video_id: str, request: Request) -> Response:
    """Delete a video and its files. One that is still being made is canceled first."""
    caller = await admit(request, Scope.GENERATE)
    job = await _find(caller, video_id)
    if not job.done:
        job = (await wait_until_done(caller.gateway, [await cancel(caller, job.id)], DELETE_SECONDS))[0]
    if not job.done:
        error = JobNotFinished("The video is being canceled. Delete it again when that is done.", retry_after=2)
        error.retryable = True
        raise error
    await caller.gateway.upkeep.delete(caller.account_id, job.id)
    return Json({"id": job.id, "object": "video.deleted", "deleted": True})


@router.get("/v1/videos/{video_id}/content", response_class=StreamingResponse, responses=described.CONTENT)
@router.head("/v1/videos/{video_id}/content", include_in_schema=False)
async def download(video_id: str, request: Request, variant: Variant = "video") -> Response:
    """Download the film, or its thumbnail."""
    caller = await admit(request, Scope.READ)
    gateway, job = caller.gateway, await _find(caller, video_id)
    if not job.done:
        raise JobNotFinished(f"The video is not ready: its status is `{STATES[job.state]}`.")
    found = {"video": find_film, "thumbnail": find_thumbnail}.get(variant)
    asset = None if found is None else found(job)
    if asset is None:
        what = f"has no {variant}" if job.state is State.SUCCEEDED else "was not made: GET /v1/videos/{id} says why"
        raise AssetNotFound(f"This video {what}.")
    stored = await gateway.database.look(asset_rows.get, asset.id, caller.account_id, gateway.clock())
    presigned = PRESIGNED_SECONDS if gateway.settings.assets.downloads == "presigned" else None
    return await answer_asset(request, stored, CACHED, presigned)


# -- orders


def _with_files(form: ReceivedForm) -> dict[str, Any]:
    """Return the fields of a form with its files by their tokens."""
    return {**form.fields, **{name: {"file_token": file.token} for name, file in form.files}}


async def _create(caller: Caller, body: Mapping[str, Any], sent: Any) -> Receipt:
    has_picture = bool(body.get("input_reference"))
    model = choose(
        caller,
        body,
        "video",
        lambda model: has_what_it_needs(model, body) and (not has_picture or takes_pictures(model)),
        "make a film from a picture" if has_picture else "make a film from a prompt",
        makes_from_text,
    )
    given, _ = split_hints(model, read_texts(model, body) if is_form(caller.request) else body, OWN, HINTS)
    given = {**usual_measures(model, given), **given}
    return await place(caller, MediaOrder(model=model.id, given=given, sent=sent, user=_user_of(body)))


async def _change(request: Request, mode: str) -> Response:
    caller = await admit(request, Scope.GENERATE)
    limits = await count_request(caller)
    if is_form(request):
        async with received_form(caller, FILM) as form:
            receipt = await _place_change(caller, _with_files(form), form.content, mode)
    else:
        body = (await read_json(request)).body
        receipt = await _place_change(caller, body, body, mode)
    return _created(caller, receipt, limits)


async def _place_change(caller: Caller, body: Mapping[str, Any], sent: Any, mode: str) -> Receipt:
    """Accept the change of a film, by default by the model that made it."""
    video = body.get("video")
    if not video:
        message = "`video` is required: a file, or the `id` of a video of yours."
        raise InvalidRequest(message, code="missing_required_parameter", param="video")
    body = {**body, "video": {"job": video_id} if (video_id := as_object(video).get("id")) else video}
    if body.get("model") is None and isinstance(video_id, str):
        made_by = caller.gateway.offers.by_model.get((await _find(caller, video_id)).model)
        if made_by is not None and takes_films(made_by.model):
            body["model"] = made_by.id
    model = choose(caller, body, "video", takes_films, f"{mode} a film")
    given, _ = split_hints(model, read_texts(model, body) if is_form(caller.request) else body, OWN, HINTS)
    if "mode" in param_names(model):
        given.setdefault("mode", mode)
    return await place(caller, MediaOrder(model=model.id, given=given, sent=sent, user=_user_of(body)))


def _user_of(body: Mapping[str, Any]) -> Any:
    return body.get("safety_identifier") or body.get("user")


# -- answers


async def _find(caller: Caller, video_id: str) -> Job:
    """Return the job of a video. A deleted one, and a job of another kind, are not found."""
    try:
        job = await find(caller, video_id)
    except JobDeleted:
        raise JobNotFound("The video was deleted.") from None
    except JobNotFound:
        raise JobNotFound("There is no such video.", suggestion="List yours with GET /v1/videos.") from None
    model = caller.gateway.offers.known.get(job.model)
    if (find_film(job) is None) if model is None else model.kind != "video":
        raise JobNotFound(f"{job.id} is no video.", suggestion=f"Get it with GET /api/v1/jobs/{job.id}.")
    return job


def _created(caller: Caller, receipt: Receipt, limits: Mapping[str, str]) -> Response:
    return _answer(caller, first(receipt), {**limits, **describe_receipt(receipt)})


def _answer(caller: Caller, job: Job, headers: Mapping[str, str]) -> Response:
    wait = poll_after_ms(job, caller.gateway.clock())
    return Json(describe(job), headers={**headers, **({} if wait is None else {POLL_AFTER: str(wait)})})

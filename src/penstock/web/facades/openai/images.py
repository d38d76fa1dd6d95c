"""OpenAI Images: `POST /v1/images/generations` and `/v1/images/edits`. The connection is held until the job is done."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from penstock.catalog.model import GenerationModel
from penstock.catalog.params import shorten
from penstock.chat.replies.chunks.writer import encode_error
from penstock.domain.api_keys import Scope
from penstock.domain.jobs import Job, State
from penstock.errors import InvalidRequest, NotFound, PenstockError
from penstock.jobs.acceptance import Receipt
from penstock.web.api.events import HEARTBEAT_SECONDS, EventStream
from penstock.web.api.generations import describe_receipt, idempotency_key, retry_count
from penstock.web.auth import Caller, admit, count_request
from penstock.web.facades.forms import FileField, ReceivedForm, is_form, read_texts, received_form
from penstock.web.facades.hints import LEFT_OUT
from penstock.web.facades.holding import REPEAT_SECONDS, CallerLeft, hold, is_repeat
from penstock.web.facades.measures import choices_for
from penstock.web.facades.openai import described, pictures
from penstock.web.facades.openai.choosing import (
    choose,
    edits_pictures,
    has_what_it_needs,
    makes_from_text,
    split_hints,
    takes_pictures,
)
from penstock.web.facades.openai.failures import answer_of, still_running
from penstock.web.facades.orders import MediaOrder, place
from penstock.web.json_bodies import read_json
from penstock.web.responses import Json, request_id_of

router = APIRouter(tags=["Images (OpenAI)"])

MAX_NUMBER: Final = 10
FILES: Final = {"image": FileField("image", 16), "images": FileField("image", 16), "mask": FileField("image")}
"""The files of a form."""
OWN: Final = frozenset({"model", "n", "response_format", "stream", "partial_images"})
"""Fields that are not for the model."""
HINTS: Final = frozenset(
    {"prompt", "quality", "style", "moderation", "output_compression", "input_fidelity", "user", "safety_identifier"}
)
"""Fields that a model without them may ignore. The header `x-penstock-left-out` names them."""
OLD_QUALITIES: Final = {"standard": "medium", "hd": "high"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The answer that a request wants, and the jobs that it has. Its inputs are not kept while the caller waits."""

    receipt: Receipt
    as_links: bool
    streamed: bool
    left_out: Sequence[str]


@router.post("/v1/images/generations", responses=described.IMAGES, openapi_extra=described.GENERATION)
async def generate(request: Request) -> Response:
    """Make pictures from a prompt. The answer comes when they are ready."""
    caller = await admit(request, Scope.GENERATE)
    limits = await count_request(caller)
    return await _answer(caller, await _generate(caller), "image_generation", limits)


@router.post("/v1/images/edits", responses=described.IMAGES, openapi_extra=described.EDIT)
async def edit(request: Request) -> Response:
    """Change pictures by a prompt, with an optional mask. The body is a form, or JSON with the pictures' URLs."""
    caller = await admit(request, Scope.GENERATE)
    limits = await count_request(caller)
    if is_form(request):
        async with received_form(caller, FILES) as form:
            wish = await _edit(caller, _with_files(form), form.content)
    else:
        body = (await read_json(request)).body
        wish = await _edit(caller, body, body)
        del body
    return await _answer(caller, wish, "image_edit", limits)


@router.post("/v1/images/variations", responses=described.NO_VARIATIONS, include_in_schema=False)
async def vary(request: Request) -> Response:
    """Refuse: OpenAI has ended variations, too."""
    await admit(request, Scope.GENERATE)
    raise NotFound("Variations of pictures are not served. Use POST /v1/images/edits with a prompt.")


# -- reading


def _with_files(form: ReceivedForm) -> dict[str, Any]:
    """Return the fields of a form with its files by their tokens."""
    body = dict(form.fields)
    for name, file in form.files:
        if name == "mask":
            body[name] = {"file_token": file.token}
        else:
            given = body.get(name)
            body[name] = [*(given if isinstance(given, list) else ()), {"file_token": file.token}]
    return body


async def _generate(caller: Caller) -> Wish:
    body = (await read_json(caller.request)).body
    model = choose(
        caller,
        body,
        "image",
        lambda model: has_what_it_needs(model, body),
        "make pictures from a prompt",
        makes_from_text,
    )
    return await _place(caller, model, body, body)


async def _edit(caller: Caller, body: dict[str, Any], sent: Any) -> Wish:
    model = choose(caller, body, "image", takes_pictures, "change pictures", edits_pictures)
    if not body.get("image") and not body.get("images"):
        message = "`image` is required: one or several pictures."
        raise InvalidRequest(message, code="missing_required_parameter", param="image")
    return await _place(caller, model, read_texts(model, body) if is_form(caller.request) else body, sent)


async def _place(caller: Caller, model: GenerationModel, body: Mapping[str, Any], sent: Any) -> Wish:
    """Accept the jobs, or find those of the request that this one repeats."""
    request = caller.request
    form = body.get("response_format")
    if form not in (None, "url", "b64_json"):
        message = f'`response_format` is "b64_json" or "url", got {shorten(form)}.'
        raise InvalidRequest(message, param="response_format")
    streamed, number = _read_flag(body.get("stream")), _read_number(body.get("n"))
    given, left_out = split_hints(model, body, OWN, HINTS)
    quality = given.get("quality")
    if isinstance(quality, str) and quality in OLD_QUALITIES and quality not in _qualities(model):
        given["quality"] = OLD_QUALITIES[quality]
    is_marked = idempotency_key(request) is not None or retry_count(request) >= 1
    order = MediaOrder(
        model=model.id,
        given=given,
        sent=sent,
        number=number,
        is_retry=not is_marked and await is_repeat(caller, sent),
        retry_seconds=REPEAT_SECONDS,
        user=body.get("safety_identifier") or body.get("user"),
    )
    receipt = await place(caller, order)
    return Wish(receipt=receipt, as_links=form == "url", streamed=streamed, left_out=left_out)


def _qualities(model: GenerationModel) -> Sequence[Any]:
    return choices_for(model.params, "quality")


def _read_number(value: Any) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 3:
        value = int(value)
    number = 1 if value is None else value
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= MAX_NUMBER:
        raise InvalidRequest(f"`n` is a number from 1 to {MAX_NUMBER}, got {shorten(value)}.", param="n")
    return number


def _read_flag(value: Any) -> bool:
    if value in (None, "false", "true") or isinstance(value, bool):
        return value is True or value == "true"
    raise InvalidRequest(f"`stream` is true or false, got {shorten(value)}.", param="stream")


# -- the answer


async def _answer(caller: Caller, wish: Wish, name: str, limits: Mapping[str, str]) -> Response:
    receipt = wish.receipt
    headers = {**limits, "x-penstock-job": ", ".join(job.id for job in receipt.jobs)}
    headers |= {LEFT_OUT: ", ".join(wish.left_out)} if wish.left_out else {}
    headers |= describe_receipt(receipt)
    if wish.streamed:
        stream = EventStream(caller, _stream(caller, receipt.jobs, name))
        stream.headers.update(headers)
        return stream
    try:
        jobs = _finished(await hold(caller, receipt.jobs))
    except CallerLeft:
        return Response(status_code=499)  # nobody reads it
    if wish.as_links:
        body = {**pictures.describe_all(jobs), "data": pictures.links(jobs, caller.scribe)}
        return Json(body, headers=headers)
    texts = pictures.whole_answer(jobs)
    headers["content-length"] = str(sum(text.length for text in texts))
    return StreamingResponse(_pieces(caller, texts), headers=headers, media_type="application/json")


def _finished(jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs that have succeeded. Raise if none has, or if one goes on."""
    for job in jobs:
        if not job.done:
            raise still_running(job)
    succeeded = [job for job in jobs if job.state is State.SUCCEEDED and pictures.pictures_of(job)]
    if not succeeded:
        raise answer_of(jobs[0])
    return succeeded


async def _pieces(caller: Caller, texts: Sequence[pictures.Encoded]) -> AsyncIterator[bytes]:
    for text in texts:
        async with aclosing(text.pieces(caller.gateway.assets)) as pieces:
            async for piece in pieces:
                yield piece


async def _stream(caller: Caller, jobs: Sequence[Job], name: str) -> AsyncIterator[bytes]:
    """Yield heartbeats until the jobs are done, then an event for each picture."""
    waiting = asyncio.ensure_future(hold(caller, jobs))
    try:
        yield b": %b\n\n" % jobs[0].id.encode()
        while not (await asyncio.wait({waiting}, timeout=HEARTBEAT_SECONDS))[0]:
            yield b": heartbeat\n\n"
        async for piece in _pieces(caller, list(pictures.events(_finished(waiting.result()), name))):
            yield piece
    except CallerLeft:
        return
    except PenstockError as error:
        yield b"event: error\ndata: " + encode_error(error, request_id_of(caller.request)) + b"\n\n"
    finally:
        waiting.cancel()

"""Streams of Replicate's API: the logs and the output of a prediction as server-sent events."""

from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from penstock.domain.api_keys import Scope
from penstock.domain.events import ENDINGS, Event
from penstock.domain.jobs import Job, State
from penstock.errors import Gone, InvalidRequest, JobDeleted, JobNotFound, TooManyStreams
from penstock.jobs.dialects.replicate import results_of, write_prediction
from penstock.jobs.records import RecordBuilder
from penstock.store.event_reader import JobEvents
from penstock.web.api.events import EventStream, is_gone, stream_lines
from penstock.web.auth import Caller, admit
from penstock.web.facades import orders
from penstock.web.facades.describe import errors
from penstock.web.facades.replicate.shapes import PREFIX, PROBLEM, TAG
from penstock.web.responses import EVENTS

router = APIRouter(tags=[TAG])

STREAM: Final[dict[int | str, Any]] = {
    200: {
        "description": "Server-sent events `logs`, `output` (one for each result) and at the end `done` or `error`.",
        "content": EVENTS,
    },
    **errors(PROBLEM, InvalidRequest, JobNotFound, Gone, JobDeleted, TooManyStreams),
}


def with_stream(caller: Caller, prediction: dict[str, Any]) -> dict[str, Any]:
    """Return the prediction with the URL of its stream."""
    url = orders.facade_url(caller.request, f"{PREFIX}/predictions/{prediction['id']}/stream")
    return {**prediction, "urls": {**prediction["urls"], "stream": url}}


@router.get(f"{PREFIX}/predictions/{{prediction_id}}/stream", response_class=Response, responses=STREAM)
async def stream_prediction(prediction_id: Annotated[str, Path(description="`job_…`")], request: Request) -> Response:
    """Stream the logs and the output of a prediction, until it is done."""
    caller = await admit(request, Scope.READ)
    await orders.find(caller, prediction_id)

    async def read(position: int) -> JobEvents:
        return await caller.gateway.news.of_job(prediction_id, position)

    gone = partial(is_gone, caller, prediction_id)
    lines = stream_lines(caller, prediction_id, read, 0, tuple(ENDINGS.values()), gone, _frame)
    return EventStream(caller, lines)


def _frame(event: Event, scribe: RecordBuilder) -> bytes:
    assert event.job is not None  # noqa: S101  the stream is of a job
    return b"".join(
        b"id: %b\nevent: %b\n%b\n" % (event.id.encode(), name.encode(), _write_data(text))
        for name, text in _write_events(event.job, scribe)
    )


def _write_data(text: str) -> bytes:
    return b"".join(b"data: %b\n" % line.encode() for line in text.split("\n"))


def _write_events(job: Job, scribe: RecordBuilder) -> Iterator[tuple[str, str]]:
    """Yield the names and the texts of the events that mean this change of a job."""
    if job.started_at is None and not job.done:
        return
    prediction = write_prediction(job, scribe)
    if not job.done:
        yield "logs", prediction["logs"].rstrip("\n")
        return
    if job.state is State.SUCCEEDED:
        for result in results_of(scribe.job(job)):
            yield "output", result["url"]
    elif prediction["error"] is not None:
        yield "error", prediction["error"]
    reason = {} if job.state is State.SUCCEEDED else {"reason": "canceled" if prediction["error"] is None else "error"}
    yield "done", msgspec.json.encode(reason).decode()

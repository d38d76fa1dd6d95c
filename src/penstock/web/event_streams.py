"""Events: a replayable stream per job, and the account's feed as pages or as a stream."""

from collections.abc import AsyncIterator, Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Header, Query, Request
from sqlalchemy import Connection
from starlette.responses import Response, StreamingResponse

from penstock import metrics
from penstock.errors import Gone, InvalidRequest, JobDeleted, JobNotFound, TooManyStreams
from penstock.events import Event, event_id, parse_event_id
from penstock.gateway import Gateway
from penstock.records import Scribe
from penstock.store import event_rows, job_rows
from penstock.web.access import Behind, Reader, Writer, scribe_for, signed_in
from penstock.web.answers import REQUEST_ID, Json
from penstock.web.job_records import JobId
from penstock.web.shapes import Feed

router = APIRouter(tags=["Events"])

HEARTBEAT_SECONDS = 15.0
STREAM_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
STREAM: dict[str, Any] = {
    "description": "Server-sent events; each has an `id` for `Last-Event-ID`, comments keep the line alive.",
    "content": {"text/event-stream": {"schema": {"type": "string"}}},
    "headers": REQUEST_ID,
}
LastEventId = Annotated[str | None, Header(max_length=64, description="resume after this event")]
Read = Callable[[Connection, int], Sequence[Event]]


@router.get(
    "/api/v1/jobs/{job_id}/events",
    response_class=StreamingResponse,
    responses={
        200: STREAM,
        204: {"description": "Nothing comes after the last event: do not reconnect."},
        **signed_in(InvalidRequest, JobNotFound, Gone, JobDeleted, TooManyStreams),
    },
)
async def stream_job(
    job_id: JobId, request: Request, key: Reader, gateway: Behind, last_event_id: LastEventId = None
) -> Response:
    """Every event of a job from its first, or from `Last-Event-ID`, until it is done; then the stream ends."""
    job = await gateway.database.read(job_rows.get, key.account_id, job_id)
    after = parse_event_id(last_event_id or "") or 0

    def read(connection: Connection, position: int) -> Sequence[Event]:
        return event_rows.of_job(connection, job_id, position)

    if job.done and after and not await gateway.database.read(read, after):
        return Response(status_code=204)
    return _stream(request, gateway, job_id, read, after, ends=True)


@router.get(
    "/api/v1/events",
    responses={
        200: {"model": Feed, **STREAM, "description": "A page, or a stream for `Accept: text/event-stream`."},
        **signed_in(InvalidRequest, TooManyStreams),
    },
)
async def feed(
    request: Request,
    key: Reader,
    gateway: Behind,
    scribe: Writer,
    *,
    after: Annotated[str | None, Query(max_length=64, description="an event id; default: from the oldest")] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
    last_event_id: LastEventId = None,
) -> Response:
    """The account's events, oldest first: the same that webhooks carry. A stream without a cursor begins now."""
    cursor = after or last_event_id
    position = None if cursor is None else parse_event_id(cursor)
    if cursor is not None and position is None:
        raise InvalidRequest("`after` is the id of an event, `evt_…`.", param="after")
    account_id = key.account_id

    def read(connection: Connection, position: int) -> Sequence[Event]:
        return event_rows.of_account(connection, account_id, position, limit + 1)

    if "text/event-stream" in request.headers.get("accept", ""):
        if position is None:
            position = await gateway.database.read(event_rows.last_position, account_id)
        return _stream(request, gateway, account_id, read, position, ends=False)
    events = await gateway.database.read(read, position or 0)
    page = events[:limit]
    return Json(
        {
            "object": "list",
            "data": [scribe.event(event) for event in page],
            "has_more": len(events) > limit,
            "next_after": page[-1].id if page else cursor,
        }
    )


def _stream(request: Request, gateway: Gateway, topic: str, read: Read, after: int, *, ends: bool) -> Response:
    most = gateway.settings.server.max_streams
    if gateway.streams >= most:
        raise TooManyStreams(f"{most} event streams are open.", retry_after=5)
    lines = _lines(gateway, lambda: scribe_for(request), topic, read, after, ends=ends)
    return StreamingResponse(lines, media_type="text/event-stream", headers=STREAM_HEADERS)


@contextmanager
def _counted(gateway: Gateway) -> Generator[None]:
    gateway.streams += 1
    metrics.EVENT_STREAMS.set(gateway.streams)
    try:
        yield
    finally:
        gateway.streams -= 1
        metrics.EVENT_STREAMS.set(gateway.streams)


async def _lines(
    gateway: Gateway, scribe: Callable[[], Scribe], topic: str, read: Read, after: int, *, ends: bool
) -> AsyncIterator[bytes]:
    """Events as they are committed. One is listening before it looks, so nothing falls between the two."""
    with _counted(gateway), gateway.database.bell.listen(topic) as ear:
        yield b"retry: 2000\n: " + event_id(after).encode() + b"\n\n"
        while not gateway.draining:
            events = await gateway.database.read(read, after)
            for event in events:
                yield _frame(event, scribe())
                after = event.position
            if ends and events and events[-1].job.done:
                return
            if not events and not await ear.wait(HEARTBEAT_SECONDS):
                yield b": heartbeat\n\n"


def _frame(event: Event, scribe: Scribe) -> bytes:
    data = msgspec.json.encode(scribe.event(event))
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (event.id.encode(), event.type.value.encode(), data)

"""Events: a replayable stream per job, and the feed of an account as pages or as a stream."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Header, Query, Request
from starlette import types
from starlette.responses import Response, StreamingResponse

from penstock.domain.api_keys import Scope
from penstock.domain.events import ENDINGS, Event, event_id, parse_event_id
from penstock.errors import (
    Gone,
    InvalidRequest,
    JobDeleted,
    JobNotFound,
    MissingApiKey,
    StoreUnavailable,
    TooManyStreams,
)
from penstock.jobs.records import RecordBuilder
from penstock.observability import metrics
from penstock.store.event_reader import JobEvents
from penstock.store.queries.jobs import event_rows, job_rows
from penstock.web.api.jobs import JobId
from penstock.web.auth import Caller, admit, signed_in
from penstock.web.responses import REQUEST_ID, Json, success

router = APIRouter(tags=["Events"])

HEARTBEAT_SECONDS = 15.0
STORE_RETRY_SECONDS = 1.0
STREAM_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
STREAM: dict[str, Any] = {
    "description": "Server-sent events. Each has an `id` for `Last-Event-ID`. Comments are heartbeats.",
    "content": {"text/event-stream": {"schema": {"$ref": "#/components/schemas/ServerSentEvent"}}},
    "headers": REQUEST_ID,
}
PAGE = success("A page, or a stream for `Accept: text/event-stream`.", "Feed")
LastEventId = Annotated[str | None, Header(description="resume after this event")]
Read = Callable[[int], Awaitable[JobEvents]]


@router.get(
    "/api/v1/jobs/{job_id}/events",
    response_class=StreamingResponse,
    responses={
        200: STREAM,
        204: {"description": "The job is done and you have its last event. Do not reconnect."},
        **signed_in(InvalidRequest, JobNotFound, Gone, JobDeleted, TooManyStreams),
    },
)
async def stream_job(job_id: JobId, request: Request, last_event_id: LastEventId = None) -> Response:
    """Stream the events of a job from the first, or after `Last-Event-ID`. The stream ends when the job is done."""
    caller = await admit(request, Scope.READ)
    database = caller.gateway.database
    job = await database.look(job_rows.get, caller.account_id, job_id)
    after = parse_event_id(last_event_id or "") or 0
    if after and after > await database.look(event_rows.last_position, caller.account_id):
        after = 0  # an id of another server: send all events again rather than none

    async def read(position: int) -> JobEvents:
        return await caller.gateway.news.of_job(job_id, position)

    if job.done and after and not (await read(after)).events:
        return Response(status_code=204)
    gone = partial(is_gone, caller, job_id)
    return EventStream(caller, stream_lines(caller, job_id, read, after, tuple(ENDINGS.values()), gone))


@router.get(
    "/api/v1/events",
    responses={
        200: {**PAGE, "content": PAGE["content"] | STREAM["content"]},
        **signed_in(InvalidRequest, TooManyStreams),
    },
)
async def feed(
    request: Request,
    *,
    after: Annotated[
        str | None,
        Query(
            pattern="^evt_[0-9a-hjkmnp-tv-z]{13}$",
            description="only events after this event id; default: from the oldest",
        ),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
    last_event_id: LastEventId = None,
) -> Response:
    """List or stream your account's events, oldest first. A stream without `after` begins now."""
    caller = await admit(request, Scope.READ)
    position = parse_event_id(last_event_id or "")  # a client that reconnects repeats its first URL with `after`
    if position is None and after is not None:
        position = parse_event_id(after)
        if position is None:
            raise InvalidRequest("`after` must be the id of an event, `evt_…`.", param="after")
    database, account_id = caller.gateway.database, caller.account_id

    async def read(position: int) -> JobEvents:
        until = await database.settled()
        events = await database.look(event_rows.of_account, account_id, position, limit + 1, until)
        return JobEvents(events, is_all=len(events) <= limit)

    if "text/event-stream" in request.headers.get("accept", ""):
        if position is None:
            position = await database.look(event_rows.last_position, account_id)
        return EventStream(caller, stream_lines(caller, account_id, read, position))
    events, is_all = await read(position or 0)
    page, scribe = events[:limit], caller.scribe
    return Json(
        {
            "object": "list",
            "data": [scribe.event(event) for event in page],
            "has_more": not is_all,
            "next_after": page[-1].id if page else after,
        }
    )


def read_last_event_id(request: Request) -> Mapping[str, Any] | None:
    """Return the header `Last-Event-ID`, unless there is a query as well."""
    return None if request.scope["query_string"] else {"last_event_id": request.headers.get("last-event-id")}


class EventStream(StreamingResponse):
    """An event stream, which counts against the limits from its start to its end."""

    media_type = "text/event-stream"

    def __init__(self, caller: Caller, lines: AsyncIterator[bytes]) -> None:
        super().__init__(lines, headers=STREAM_HEADERS)
        self._caller = caller

    async def __call__(self, scope: types.Scope, receive: types.Receive, send: types.Send) -> None:
        """Send the stream, or raise if there are too many."""
        async with stream_place(self._caller):
            await super().__call__(scope, receive, send)


@asynccontextmanager
async def stream_place(caller: Caller) -> AsyncGenerator[None]:
    """Count one open stream of the caller while the block lasts. Raise if there are too many."""
    ticket = await caller.gateway.admission.open_stream(caller.key)
    try:
        with _counted(caller):
            yield
    finally:
        ticket.settle(0, 0)


@contextmanager
def _counted(caller: Caller) -> Generator[None]:
    gateway, account_id = caller.gateway, caller.account_id
    streams, bounds = gateway.streams, gateway.stream_bounds
    if not streams.try_take(account_id, 1, bounds):
        mine = streams.held_by(account_id)
        message = f"Too many event streams: {streams.total} are open, at most {bounds.total} are allowed."
        if mine >= bounds.each:
            message = f"This account has {mine} event streams open, at most {bounds.each} are allowed."
        suggestion = "Close a stream, or follow several jobs with one stream of GET /api/v1/events."
        raise TooManyStreams(message, suggestion=suggestion, retry_after=5)
    metrics.EVENT_STREAMS.set(streams.total)
    try:
        yield
    finally:
        streams.give_back(account_id, 1)
        metrics.EVENT_STREAMS.set(streams.total)


async def stream_lines(
    caller: Caller,
    topic: str,
    read: Read,
    after: int,
    endings: Collection[str] = (),
    gone: Callable[[], Awaitable[bool]] | None = None,
    frame: Callable[[Event, RecordBuilder], bytes] | None = None,
) -> AsyncIterator[bytes]:
    """Yield events as they are committed. It subscribes before it reads, so that no event is missed.

    `frame` writes one event, if it is not to be as our own streams have it.
    """
    gateway = caller.gateway
    woken = False
    with gateway.database.signals.listen(topic) as subscription:
        yield b"retry: 2000\n: " + event_id(after).encode() + b"\n\n"
        while not gateway.draining and await still_admitted(caller):
            try:
                events, is_all = await read(after)
            except StoreUnavailable:  # the log keeps what is missed meanwhile
                yield b": the store does not answer\n\n"
                await asyncio.sleep(STORE_RETRY_SECONDS)
                continue
            for event in events:
                yield (frame or _frame)(event, caller.scribe)
                after = event.position
            if events and events[-1].type in endings:
                return
            if gone is not None and woken and not events and await gone():
                return
            woken = not is_all or await subscription.wait(HEARTBEAT_SECONDS)
            if not woken:
                yield b": heartbeat\n\n"


async def is_gone(caller: Caller, job_id: str) -> bool:
    """Return whether the job was deleted, and its last events with it."""
    try:
        await caller.gateway.database.look(job_rows.get, caller.account_id, job_id)
    except (JobNotFound, JobDeleted, Gone):
        return True
    except StoreUnavailable:
        pass  # checked again later
    return False


async def still_admitted(caller: Caller) -> bool:
    """Return whether the key is still valid."""
    try:
        await admit(caller.request, Scope.READ)
    except MissingApiKey:
        return False
    except StoreUnavailable:
        pass  # not known now, checked again later
    return True


def _frame(event: Event, scribe: RecordBuilder) -> bytes:
    data = msgspec.json.encode(scribe.event(event))
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (event.id.encode(), event.type.encode(), data)

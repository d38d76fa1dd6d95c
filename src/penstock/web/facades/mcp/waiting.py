"""A call that waits: reports of progress as server-sent events, and the answer at the end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette import types
from starlette.responses import Response, StreamingResponse

from penstock.domain.jobs import Job
from penstock.errors import ConcurrencyLimited, Gone, JobNotFound, StoreUnavailable, TooManyStreams
from penstock.store.queries.jobs import job_rows
from penstock.web.api.events import STREAM_HEADERS, still_admitted, stream_place

if TYPE_CHECKING:  # takes long to load
    from penstock.web.facades.mcp.exchange import ToolExchange

HEARTBEAT_SECONDS: Final = 15.0
HEARTBEAT: Final = b": waiting\n\n"
STORE_RETRY_SECONDS: Final = 1.0


class WaitingResponse(StreamingResponse):
    """Waits for the job of a call. Where no more streams may be open, it answers at once."""

    media_type = "text/event-stream"

    def __init__(self, exchange: "ToolExchange", job: Job, at_once: Response) -> None:
        super().__init__(follow(exchange, job), headers=STREAM_HEADERS)
        self._caller = exchange.call.caller
        self._at_once = at_once

    async def __call__(self, scope: types.Scope, receive: types.Receive, send: types.Send) -> None:
        """Send the stream, or the answer that names the job."""
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(stream_place(self._caller))
            except (TooManyStreams, ConcurrencyLimited):
                await self._at_once(scope, receive, send)
                return
            await super().__call__(scope, receive, send)


async def follow(exchange: "ToolExchange", job: Job) -> AsyncIterator[bytes]:
    """Yield progress while the job is open, then the answer. A client that leaves does not stop the job."""
    call = exchange.call
    gateway = call.caller.gateway
    loop = asyncio.get_running_loop()
    deadline, reported = loop.time() + call.wait_seconds, -1.0
    yield HEARTBEAT + exchange.prime(job.id)  # the response begins now
    with gateway.database.signals.listen(job.id) as subscription:
        while True:
            pause = HEARTBEAT_SECONDS
            try:
                job = await gateway.database.look(job_rows.get, job.account_id, job.id)
            except StoreUnavailable:  # the job is accepted: what it became is read later
                pause = STORE_RETRY_SECONDS
            except (JobNotFound, Gone):
                break
            if job.progress > reported and exchange.progress_token is not None:
                reported = job.progress
                yield write_event(_progress(exchange, job))
            left = deadline - loop.time()
            if job.done or gateway.draining or left <= 0 or not await still_admitted(call.caller):
                break
            if not await subscription.wait(min(pause, left)):
                yield HEARTBEAT
    yield write_event(await exchange.finish(job.id))


def _progress(exchange: "ToolExchange", job: Job) -> dict[str, Any]:
    params = {
        "progressToken": exchange.progress_token,
        "progress": job.progress,
        "total": 1,
        "message": f"{job.id} is {job.state}",
    }
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


def write_event(message: dict[str, Any]) -> bytes:
    """Return a JSON-RPC message as an event."""
    return b"event: message\ndata: %b\n\n" % msgspec.json.encode(message)

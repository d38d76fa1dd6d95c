"""Held requests: the connection waits for its jobs, and a repetition of a request whose answer was lost finds them.

Some clients repeat a request without saying so. Such a request joins the jobs of an equal one before it if that one
was certainly not answered. See `was_answered`.
"""

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

from penstock.domain.jobs import Job
from penstock.gateway import Gateway
from penstock.store.database import Connection
from penstock.store.queries.jobs import job_rows, request_rows
from penstock.web.api.waiting import wait_until_done
from penstock.web.auth import Caller
from penstock.web.facades.orders import mark_of
from penstock.web.server.asgi import CYCLE
from penstock.web.server.request_cycle import Cycle

HOLD_SECONDS: Final = 580.0
"""How long a connection is held. The official clients wait for 600 seconds."""
REPEAT_SECONDS: Final = 2400.0
"""How long ago a request may have been that another one repeats: official clients send it three times."""
RESTART_SECONDS: Final = 60.0
"""How long after a restart, or after the end of the job, a client may repeat a request that the restart cut."""
PARALLEL_SECONDS: Final = 1.0
"""Equal requests within this time are sent at once, to get several results. Clients wait before they repeat one."""


class CallerLeft(Exception):
    """The caller has closed the connection. Its jobs go on."""


@dataclass(frozen=True, slots=True)
class HoldRule:
    """The seconds for which a protocol holds a connection, and whether clients then have what they need."""

    seconds: float
    is_answered: bool = False


async def hold(caller: Caller, jobs: Sequence[Job], rule: HoldRule | None = None) -> list[Job]:
    """Return the jobs once all are done, the time has passed or the gateway drains. Raise if the caller leaves."""
    cycle: Cycle = caller.request.scope["extensions"][CYCLE]
    with ExitStack() as stack:
        for job in jobs:
            stack.enter_context(caller.gateway.database.signals.listen(_topic(job)))
        waiting = asyncio.ensure_future(wait_until_done(caller.gateway, jobs, (rule or _usual()).seconds))
        cycle.on_gone = waiting.cancel
        try:
            if cycle.gone:
                waiting.cancel()
            return await waiting
        except asyncio.CancelledError:
            if cycle.gone:
                raise CallerLeft from None
            raise
        finally:
            cycle.on_gone = None
            waiting.cancel()


def _topic(job: Job) -> str:
    """Return the topic to which every connection listens that is held for a job."""
    return f"held:{job.id}"


def _usual() -> HoldRule:
    return HoldRule(HOLD_SECONDS)


async def is_repeat(caller: Caller, sent: Any, rule: HoldRule | None = None) -> bool:
    """Return whether an equal request was not answered, so that this one repeats it."""
    gateway = caller.gateway
    now = gateway.clock()
    jobs = await gateway.database.read(_find_jobs, caller.key.public_id, mark_of(caller, sent), now)
    held = any(gateway.database.signals.is_heard(_topic(job)) for job in jobs)
    return bool(jobs) and not held and not was_answered(gateway, jobs, now, rule or _usual())


def _find_jobs(connection: Connection, key_id: str, mark: bytes, now: float) -> list[Job]:
    found = request_rows.by_body(connection, key_id, mark, now - REPEAT_SECONDS)
    return [] if found is None else job_rows.get_several(connection, found.job_ids)


def was_answered(gateway: Gateway, jobs: Sequence[Job], now: float, rule: HoldRule) -> bool:
    """Return whether the request of these jobs may have got its answer, or is held by another process.

    It surely did not if it was held for as long as may be, if this process started while the jobs were open, or if
    they are open and no other process serves callers.
    """
    begun = jobs[0].created_at
    ended = None if not all(job.done for job in jobs) else max(job.finished_at or now for job in jobs)
    if (ended or now) > begun + rule.seconds:
        return rule.is_answered
    started = gateway.started_at
    if begun < started and (ended is None or ended >= started):
        return now > max(started, ended or now) + RESTART_SECONDS
    return ended is not None or gateway.database.is_shared or now < begun + PARALLEL_SECONDS

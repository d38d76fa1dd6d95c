"""Holding a request until its jobs are done."""

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack

from penstock.domain.jobs import Job
from penstock.errors import StoreUnavailable
from penstock.gateway import Gateway
from penstock.store.queries.jobs import job_rows
from penstock.store.signals import Subscription

AWAY_SECONDS = 1.0
LOOK_SECONDS = 15.0
"""So often one looks without being told: as event streams do."""


async def wait_until_done(gateway: Gateway, jobs: Sequence[Job], seconds: float) -> list[Job]:
    """The jobs, as they are once all are done, the time is over or the gateway shuts down.

    A store that is away is waited for, too: the jobs are accepted, and what is known of them stays true.
    """
    deadline = asyncio.get_running_loop().time() + seconds
    with ExitStack() as stack:
        subscriptions = [stack.enter_context(gateway.database.signals.listen(job.id)) for job in jobs]
        return [
            await _wait(gateway, job, subscription, deadline)
            for job, subscription in zip(jobs, subscriptions, strict=True)
        ]


async def _wait(gateway: Gateway, job: Job, subscription: Subscription, deadline: float) -> Job:
    """One is listening before it looks, so nothing falls between the two; the last look is when the time is over."""
    while not job.done:
        left, pause = deadline - asyncio.get_running_loop().time(), LOOK_SECONDS
        try:
            job = await gateway.database.look(job_rows.get, job.account_id, job.id)
        except StoreUnavailable:
            pause = AWAY_SECONDS
        if job.done or gateway.draining or left <= 0:
            break
        await subscription.wait(min(pause, max(0.0, deadline - asyncio.get_running_loop().time())))
    return job

"""Long polling: wait until jobs are done."""

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack

from penstock.domain.jobs import Job
from penstock.errors import StoreUnavailable
from penstock.gateway import Gateway
from penstock.store.queries.jobs import job_rows
from penstock.store.signals import Subscription

STORE_RETRY_SECONDS = 1.0
RECHECK_SECONDS = 15.0
"""Seconds between two reads without a signal."""


async def wait_until_done(gateway: Gateway, jobs: Sequence[Job], seconds: float) -> list[Job]:
    """Return the jobs once all are done, the time has passed or the gateway drains.

    If the store does not answer, wait for it as well. The jobs are accepted, and their last known state is returned.
    """
    deadline = asyncio.get_running_loop().time() + seconds
    with ExitStack() as stack:
        subscriptions = [stack.enter_context(gateway.database.signals.listen(job.id)) for job in jobs]
        return [
            await _wait(gateway, job, subscription, deadline)
            for job, subscription in zip(jobs, subscriptions, strict=True)
        ]


async def _wait(gateway: Gateway, job: Job, subscription: Subscription, deadline: float) -> Job:
    """Return the job at the deadline or earlier. The caller subscribed before, so that no change is missed."""
    while not job.done:
        left, pause = deadline - asyncio.get_running_loop().time(), RECHECK_SECONDS
        try:
            job = await gateway.database.look(job_rows.get, job.account_id, job.id)
        except StoreUnavailable:
            pause = STORE_RETRY_SECONDS
        if job.done or gateway.draining or left <= 0:
            break
        await subscription.wait(min(pause, max(0.0, deadline - asyncio.get_running_loop().time())))
    return job

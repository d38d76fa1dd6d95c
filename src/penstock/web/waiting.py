"""Holding a request until its jobs are done."""

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack

from penstock.gateway import Gateway
from penstock.jobs import Job
from penstock.store import job_rows


async def wait_until_done(gateway: Gateway, account_id: str, job_ids: Sequence[str], seconds: float) -> list[Job]:
    """The jobs, as they are once all are done, the time is over or the gateway shuts down."""
    deadline = asyncio.get_running_loop().time() + seconds
    with ExitStack() as stack:
        ears = [stack.enter_context(gateway.database.bell.listen(job_id)) for job_id in job_ids]
        jobs: list[Job] = []
        for job_id, ear in zip(job_ids, ears, strict=True):
            job = await gateway.database.read(job_rows.get, account_id, job_id)
            while not job.done and not gateway.draining:
                if not await ear.wait(max(0.0, deadline - asyncio.get_running_loop().time())):
                    break
                job = await gateway.database.read(job_rows.get, account_id, job_id)
            jobs.append(job)
        return jobs

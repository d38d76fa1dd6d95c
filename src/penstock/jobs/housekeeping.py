"""Keeps house: counts open jobs, removes what is past its time, and deletes what callers want gone."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from penstock.domain.jobs import Job
from penstock.errors import Gone, StoreUnavailable
from penstock.jobs.backlog import Backlog
from penstock.jobs.inputs import Inputs
from penstock.observability import metrics
from penstock.storage.assets import Assets
from penstock.storage.backend import StorageUnavailable
from penstock.store.database import Connection, Database
from penstock.store.queries.billing import process_lease_rows
from penstock.store.queries.files import asset_rows, file_rows, storage_rows
from penstock.store.queries.jobs import job_rows, open_job_rows, request_rows, wakeup_rows, worker_rows
from penstock.store.queries.webhooks import delivery_rows

COUNT_SECONDS = 1.0
SWEEP_SECONDS = 30.0
BATCH = 100
ORPHAN_SECONDS = 3600.0
TIDY_SECONDS = 3600.0
STALE_SECONDS = 86_400.0
"""How old an upload in parts is that nobody is going to finish."""
NUDGE_SECONDS = 60.0
"""More than enough for every server to have seen it."""
DELIVERY_SECONDS = 30 * 86_400.0
"""How long it is known what webhooks were told; what is told of a job goes with it, though."""

log = logging.getLogger(__name__)


class Upkeep:
    """The slow loop beside the jobs."""

    def __init__(
        self,
        database: Database,
        assets: Assets,
        inputs: Inputs,
        clock: Callable[[], float],
        recover: Callable[[], Awaitable[None]],
        is_steady: Callable[[], bool] = lambda: True,
    ) -> None:
        self._database = database
        self._assets = assets
        self._inputs = inputs
        self._clock = clock
        self._recover = recover
        self._is_steady = is_steady
        self._task: asyncio.Task[None] | None = None
        self.sweeps = False
        """Whether what is past its time is removed here: by the one server that runs the jobs."""
        self.backlog = Backlog()
        self._lagging = set[str]()

    async def start(self) -> None:
        """Count once, then keep house until `stop`."""
        await self._count()
        self._task = asyncio.create_task(self._work(), name="upkeep")

    async def stop(self) -> None:
        """End the loop."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def delete(self, account_id: str, job_id: str, reason: str = "deleted") -> None:
        """Remove a finished job's params, outputs and files; first from view, then from disk."""
        await self._database.write(_bury, account_id, job_id, reason)
        with suppress(StorageUnavailable):  # the sweep goes on with it
            await self._clear(job_id)

    async def _clear(self, job_id: str) -> None:
        await self._assets.remove_outputs(job_id)
        await self._database.write(asset_rows.mark_swept, job_id)
        for file in await self._database.read(file_rows.of_job, job_id):
            await self._inputs.remove(file)

    async def sweep(self) -> int:
        """Remove what is past its time; how much it was."""
        now = self._clock()
        await self._database.write(process_lease_rows.expire, now, leases=self._is_steady())
        await self._database.write(wakeup_rows.remove, now - NUDGE_SECONDS)
        await self._database.write(delivery_rows.remove_old, now - DELIVERY_SECONDS)
        expired = await self._database.read(job_rows.expired, now, BATCH)
        for account_id, job_id in expired:
            with suppress(Gone):  # its caller deleted it in this moment
                await self.delete(account_id, job_id, "expired")
        unswept = await self._database.read(asset_rows.unswept, BATCH)  # a process died before it was done
        for job_id in unswept:
            await self._clear(job_id)
        files = [
            *await self._database.read(file_rows.expired, now, BATCH),
            *await self._database.read(file_rows.orphans, now - ORPHAN_SECONDS, BATCH),
        ]
        for file in files:
            await self._inputs.remove(file)
        return len(expired) + len(unswept) + len(files)

    async def _work(self) -> None:
        next_sweep = next_tidying = time.monotonic()
        while True:
            try:
                await self._database.recheck()
                await self._count()
                await self._recover()
                if self.sweeps and time.monotonic() >= next_sweep:
                    next_sweep = time.monotonic() + SWEEP_SECONDS
                    is_ours = await self._database.write(worker_rows.take_turn, "sweep", SWEEP_SECONDS / 2)
                    while is_ours and await self.sweep() >= BATCH:
                        await self._count()
                if self.sweeps and time.monotonic() >= next_tidying:
                    next_tidying = time.monotonic() + TIDY_SECONDS
                    await self._mend_storage()
                    await self._assets.end_stale_uploads(self._clock() - STALE_SECONDS)
            except StoreUnavailable as error:
                log.warning("upkeep waits", extra={"fields": {"reason": error.message}})
            except Exception:
                log.exception("upkeep failed; it goes on")
            await asyncio.sleep(COUNT_SECONDS)

    async def _mend_storage(self) -> None:
        """Correct sums of what accounts keep: processes of an earlier version do not keep them up to date."""
        for account_id in await self._database.read(storage_rows.find_drift):
            await self._database.write(storage_rows.recount, account_id)

    async def _count(self) -> None:
        self.backlog.learn(await self._database.read(open_job_rows.count))
        oldest, now = await self._database.read(open_job_rows.oldest_waiting), self._clock()
        for vendor in self._lagging - oldest.keys():
            metrics.QUEUE_LAG.labels(vendor).set(0)
        for vendor, created_at in oldest.items():
            metrics.QUEUE_LAG.labels(vendor).set(max(0.0, now - created_at))
        self._lagging |= oldest.keys()


def _bury(connection: Connection, account_id: str, job_id: str, reason: str) -> Job:
    """What the store forgets of a job, in one transaction."""
    job = job_rows.remove(connection, account_id, job_id, reason)
    asset_rows.hide_of_job(connection, job_id, reason)
    others = job.batch_id and job_rows.page(connection, account_id, {"batch_id": job.batch_id}, None, 1)
    if not others:
        request_rows.remove(connection, [job.batch_id or job_id])
    return job

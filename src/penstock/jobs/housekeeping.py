"""Housekeeping: count open jobs, remove expired jobs and files, and delete what callers ask to delete."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from penstock.billing.record_retention import RecordRetention
from penstock.domain.jobs import Job
from penstock.errors import Gone, JobNotFound, PipelineNotFinished, StoreUnavailable
from penstock.jobs.backlog import Backlog
from penstock.jobs.files.inputs import Inputs
from penstock.observability import metrics
from penstock.storage.assets import Assets
from penstock.storage.backend import StorageUnavailable
from penstock.store.database import Connection, Database
from penstock.store.queries.accounts import identity_rows, session_rows
from penstock.store.queries.billing import process_lease_rows
from penstock.store.queries.chat import content_rows, response_rows
from penstock.store.queries.files import asset_rows, file_rows, lineage_rows, share_rows, storage_rows
from penstock.store.queries.jobs import (
    advance_rows,
    job_rows,
    open_job_rows,
    pipeline_rows,
    request_rows,
    wakeup_rows,
    worker_rows,
)
from penstock.store.queries.webhooks import delivery_rows
from penstock.store.search_indexer import SearchIndexer

COUNT_INTERVAL_SECONDS = 1.0
SWEEP_INTERVAL_SECONDS = 30.0
TIDY_INTERVAL_SECONDS = 3600.0
SWEEP_BATCH = 100
STALLED_SECONDS = 60.0
"""Seconds without the end of a job after which a pipeline is looked at."""
ORPHAN_AGE_SECONDS = 3600.0
STALE_UPLOAD_SECONDS = 86_400.0
"""The age at which a multipart upload counts as abandoned."""
WAKEUP_RETENTION_SECONDS = 60.0
"""More than enough for every server to have read a wakeup."""
DELIVERY_RETENTION_SECONDS = 30 * 86_400.0
"""The age at which a webhook delivery is removed. The deliveries of a job are removed with it, if that is earlier."""

log = logging.getLogger(__name__)


class Upkeep:
    """The housekeeping loops of one process."""

    def __init__(
        self,
        database: Database,
        assets: Assets,
        inputs: Inputs,
        clock: Callable[[], float],
        recover: Callable[[], Awaitable[None]],
        is_steady: Callable[[], bool] = lambda: True,
        steady: Callable[[], float] = time.monotonic,
        tidy: Callable[[], Awaitable[object]] | None = None,
        retention: RecordRetention | None = None,
        content_retention: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._database = database
        self._assets = assets
        self._inputs = inputs
        self._clock = clock
        self._recover = recover
        self._is_steady = is_steady
        self._steady = steady
        self._tidy = tidy
        """Removes what this process alone can remove, also where others run the jobs."""
        self._retention = retention
        self._content_retention = content_retention
        self._removal: asyncio.Task[None] | None = None
        """The removal of old records under way. It is no step of the loop, as it may take hours the first time."""
        self._tasks: list[asyncio.Task[None]] = []
        self.sweeps = False
        """True in the one server that runs the jobs: only that one removes what has expired."""
        self.backlog = Backlog()
        self._indexer = SearchIndexer(database, steady)
        self._lagging = set[str]()

    async def start(self) -> None:
        """Count open jobs once, then run the loops until `stop`."""
        await self._count()
        loops = {"upkeep": self._work(), "search index": self._index()}
        self._tasks = [asyncio.create_task(loop, name=name) for name, loop in loops.items()]

    async def stop(self) -> None:
        """End the loops."""
        tasks = [*self._tasks] if self._removal is None else [*self._tasks, self._removal]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def delete(self, account_id: str, job_id: str, reason: str = "deleted") -> None:
        """Remove a finished job's params, outputs and files: first from view, then from storage."""
        await self._database.write(_remove_job, account_id, job_id, reason)
        with suppress(StorageUnavailable):  # the next sweep continues it
            await self._clear(job_id)

    async def delete_pipeline(self, account_id: str, pipeline_id: str) -> None:
        """Remove an ended pipeline and the jobs that it added, with their outputs."""
        pipeline = await self._database.read(pipeline_rows.get, account_id, pipeline_id)
        if not pipeline.done:
            raise PipelineNotFinished
        for job_id in pipeline.job_ids:
            if job_id not in pipeline.reused:
                with suppress(Gone, JobNotFound):  # it was removed before
                    await self.delete(account_id, job_id)
        await self._database.write(_remove_pipeline, account_id, pipeline_id, "deleted")

    async def _sweep_pipelines(self, now: float) -> None:
        """Remove expired pipelines, and advance those whose jobs were ended by code that knows no pipelines."""
        for account_id, pipeline_id in await self._database.read(pipeline_rows.expired, now, SWEEP_BATCH):
            with suppress(Gone):
                await self._database.write(_remove_pipeline, account_id, pipeline_id, "expired")
        for pipeline_id in await self._database.read(pipeline_rows.stalled, now - STALLED_SECONDS, SWEEP_BATCH):
            try:
                await self._database.write(advance_rows.resume, pipeline_id, now)
            except StoreUnavailable:
                raise
            except Exception:  # it must not block the others
                log.exception("a pipeline cannot go on", extra={"fields": {"pipeline_id": pipeline_id}})

    async def _clear(self, job_id: str) -> None:
        """Remove the bytes of a removed job, unless an open job still needs its outputs: a later sweep does."""
        if await self._database.read(lineage_rows.is_needed, job_id):
            return
        await self._assets.remove_outputs(job_id)
        await self._database.write(asset_rows.mark_swept, job_id)
        for file in await self._database.read(file_rows.of_job, job_id):
            await self._inputs.remove(file)

    async def sweep(self) -> int:
        """Remove what has expired. Return the number of jobs, files and responses removed."""
        now = self._clock()
        await self._database.write(process_lease_rows.expire, now, leases=self._is_steady())
        await self._database.write(wakeup_rows.remove, now - WAKEUP_RETENTION_SECONDS)
        await self._database.write(delivery_rows.remove_old, now - DELIVERY_RETENTION_SECONDS)
        await self._database.write(share_rows.remove_expired, now, SWEEP_BATCH)
        await self._database.write(session_rows.remove_expired, now, SWEEP_BATCH)
        await self._database.write(identity_rows.remove_expired, now)
        if self._is_steady():
            await self._database.write(response_rows.end_lost, now, SWEEP_BATCH)
        responses = await self._database.write(response_rows.remove_expired, now, SWEEP_BATCH)
        contents = await self._sweep_contents(now)
        expired = await self._database.read(job_rows.expired, now, SWEEP_BATCH)
        for account_id, job_id in expired:
            with suppress(Gone):  # its caller has just deleted it
                await self.delete(account_id, job_id, "expired")
        await self._sweep_pipelines(now)
        unswept = await self._database.read(asset_rows.unswept, SWEEP_BATCH)  # left by a process that died
        for job_id in unswept:
            await self._clear(job_id)
        files = [
            *await self._database.read(file_rows.expired, now, SWEEP_BATCH),
            *await self._database.read(file_rows.orphans, now - ORPHAN_AGE_SECONDS, SWEEP_BATCH),
        ]
        for file in files:
            await self._inputs.remove(file)
        await self._indexer.check_some()
        return max(len(expired) + len(unswept) + len(files) + responses, contents)

    async def _sweep_contents(self, now: float) -> int:
        """Remove some of the logged content that is past its retention or whose account is closed."""
        retention = self._content_retention()
        old = await self._database.write(content_rows.remove_old, now, retention, SWEEP_BATCH)
        closed = await self._database.write(content_rows.remove_of_closed, SWEEP_BATCH)
        metrics.RECORDS_REMOVED.labels("content").inc(old + closed)
        return max(old, closed)

    async def _tidy_up(self) -> None:
        if self._tidy is not None:
            await self._tidy()
        if self.sweeps:
            await self._correct_storage()
            await self._assets.end_stale_uploads(self._clock() - STALE_UPLOAD_SECONDS)
            await self._remove_old_records()

    async def _remove_old_records(self) -> None:
        """Begin to remove old records, unless the last removal still runs here or in another process."""
        retention, removal = self._retention, self._removal
        if retention is None or not retention.is_wanted or (removal is not None and not removal.done()):
            return
        if await self._database.write(worker_rows.take_turn, "records", TIDY_INTERVAL_SECONDS / 2):
            self._removal = asyncio.create_task(self._retire(retention), name="record retention")

    async def _retire(self, retention: RecordRetention) -> None:
        try:
            await retention.run()
        except StoreUnavailable as error:
            log.warning(
                "removal of old records was interrupted; it is retried", extra={"fields": {"reason": error.message}}
            )
        except Exception:
            log.exception("removal of old records failed; it is retried")

    async def _work(self) -> None:
        next_sweep = next_tidying = self._steady()
        while True:
            try:
                await self._database.recheck()
                await self._count()
                await self._recover()
                if self.sweeps and self._steady() >= next_sweep:
                    next_sweep = self._steady() + SWEEP_INTERVAL_SECONDS
                    is_ours = await self._database.write(worker_rows.take_turn, "sweep", SWEEP_INTERVAL_SECONDS / 2)
                    while is_ours and await self.sweep() >= SWEEP_BATCH:
                        await self._count()
                if self._steady() >= next_tidying:
                    next_tidying = self._steady() + TIDY_INTERVAL_SECONDS
                    await self._tidy_up()
            except StoreUnavailable as error:
                log.warning("housekeeping was interrupted; it is retried", extra={"fields": {"reason": error.message}})
            except Exception:
                log.exception("a round of housekeeping failed; the next one follows")
            await asyncio.sleep(COUNT_INTERVAL_SECONDS)

    async def _index(self) -> None:
        """Keep the search index up to date. It has a loop of its own, as it may wait for open transactions."""
        while True:
            try:
                if self.sweeps:
                    await self._indexer.take_part()
            except StoreUnavailable as error:
                log.warning("indexing was interrupted; it is retried", extra={"fields": {"reason": error.message}})
            except Exception:
                log.exception("indexing failed; it is retried")
            await asyncio.sleep(COUNT_INTERVAL_SECONDS)

    async def _correct_storage(self) -> None:
        """Correct the storage sums of accounts, which processes of an earlier version do not update."""
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


def _remove_pipeline(connection: Connection, account_id: str, pipeline_id: str, reason: str) -> None:
    pipeline_rows.remove(connection, account_id, pipeline_id, reason)
    request_rows.remove(connection, [pipeline_id])


def _remove_job(connection: Connection, account_id: str, job_id: str, reason: str) -> Job:
    """Remove a job from the store, in one transaction."""
    job = job_rows.remove(connection, account_id, job_id, reason)
    asset_rows.hide_of_job(connection, job_id, reason)
    share_rows.remove_of_job(connection, job_id)
    content_rows.remove_of_job(connection, job_id)
    others = job.batch_id and job_rows.page(connection, account_id, {"batch_id": job.batch_id}, None, 1)
    if not others:
        request_rows.remove(connection, [job.batch_id or job_id])
    return job

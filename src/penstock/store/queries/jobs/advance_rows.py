"""Advance a pipeline in the transaction in which one of its jobs ends: pin outputs, start, end and cancel jobs.

Locks are taken in one order: the job that ends, its pipeline, jobs that wait, balances. A job at work is locked by its
runner before the pipeline, so it is only canceled here if its row is free. If it is not, its order is refused
(`job_rows.amend`), or its end advances the pipeline again.
"""

from collections.abc import Callable
from typing import Final

from sqlalchemy import Connection

from penstock.domain.jobs import Job, State, request_cancel
from penstock.domain.pipelines import rules
from penstock.domain.pipelines.records import Pipeline
from penstock.domain.pipelines.rules import Advance
from penstock.store import sql
from penstock.store.database import RUNG
from penstock.store.queries.files import lineage_rows
from penstock.store.queries.jobs import change_rows, event_rows, pipeline_rows
from penstock.store.signals import QUEUE, nudge

_START_BY: Final = "UPDATE jobs SET start_by = ? WHERE id = ?"
_OPEN: Final = "SELECT document FROM jobs WHERE done = 0 AND id IN"


def advance(
    connection: Connection,
    pipeline_id: str,
    now: float,
    change: Callable[[Pipeline], Pipeline] = lambda pipeline: pipeline,
) -> list[Job]:
    """Take the next step of a pipeline, after a change of it. Return the jobs that it ended: `close` them."""
    before = pipeline_rows.lock(connection, pipeline_id)
    if before is None or before.done:
        return []
    waiting = pipeline_rows.lock_waiting(connection, before.job_ids)
    jobs = pipeline_rows.jobs_of(connection, before.job_ids, removed=True) | waiting
    step = rules.advance(change(before), jobs, now)
    ended = [written for pair in step.changed if (written := _write(connection, *pair, now)).done]
    _cancel(connection, step, now)
    pipeline_rows.write(connection, before, step.pipeline, now)
    connection.info[RUNG].update((pipeline_id, QUEUE))
    return ended


def cancel(connection: Connection, account_id: str, pipeline_id: str, now: float) -> bool:
    """Cancel a pipeline: its waiting jobs end, the others are asked to. Return whether all were asked."""
    pipeline_rows.get(connection, account_id, pipeline_id)
    ended = advance(connection, pipeline_id, now, lambda pipeline: rules.request_stop(pipeline, now))
    change_rows.close(connection, ended, now)
    pipeline, jobs = pipeline_rows.get_whole(connection, account_id, pipeline_id)
    return pipeline.done or all(job.done or job.cancel_requested_at is not None for job in jobs.values())


def resume(connection: Connection, pipeline_id: str, now: float) -> None:
    """Advance a pipeline whose job was ended by code that knows no pipelines."""
    change_rows.close(connection, advance(connection, pipeline_id, now), now)


def _write(connection: Connection, before: Job, after: Job, now: float) -> Job:
    if after.state is State.CANCELED:  # by way of the state that every canceled job has
        before = change_rows.write(connection, before, request_cancel(before, now), now)
    after = change_rows.write(connection, before, after, now)
    lineage_rows.pin(connection, after)
    if not after.is_waiting:
        sql.run(connection, _START_BY, after.start_by, after.id)
    return after


def _cancel(connection: Connection, step: Advance, now: float) -> None:
    if not step.to_cancel:
        return
    statement, *values = sql.among(_OPEN, step.to_cancel)
    skipping = sql.SKIPPING if connection.dialect.name == "postgresql" else ""
    for (document,) in sql.run(connection, statement + skipping, *values):
        job = event_rows.decode_job(document)
        if rules.is_to_be_canceled(step.pipeline, job):  # it may have been ordered since it was read
            change_rows.write(connection, job, request_cancel(job, now), now)
            connection.info[RUNG].add(nudge(job.id))

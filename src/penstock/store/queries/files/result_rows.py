"""Marks of results, by which a request for exact reuse finds the one that there is."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, delete

from penstock.domain.jobs import Job, ResultMark
from penstock.store import sql
from penstock.store.queries.jobs import event_rows
from penstock.store.sql import Statement
from penstock.store.tables import results

_KEPT: Final = (
    "SELECT jobs.document FROM results JOIN jobs ON jobs.id = results.job_id "
    "WHERE results.account_id = ? AND results.digest = ? "
    "AND jobs.removed IS NULL AND (jobs.expires_at IS NULL OR jobs.expires_at > ?)"
)
_OLDEST: Final = " ORDER BY results.job_id LIMIT ?"


def describe(job: Job, mark: ResultMark) -> dict[str, Any]:
    """Return the row of the mark of a job's result."""
    return {"job_id": job.id, "account_id": job.account_id, "digest": mark.digest, "seed": mark.seed}


def addition(rows: Sequence[Mapping[str, Any]]) -> list[Statement]:
    """Return the statements that write these rows."""
    return [sql.insertion(results, rows)] if rows else []


def find(
    connection: Connection, account_id: str, wanted: Sequence[ResultMark], now: float, taken: Collection[str] = ()
) -> Job | None:
    """Return an account's oldest kept job with the first of these marks that has one, other than those `taken`.

    A mark without a seed fits any.

    It is the oldest, so that a repeated request finds the same job as long as it is kept.
    """
    limit = len(taken) + 1
    for mark in wanted:
        values = (account_id, mark.digest, now)
        if mark.seed is None:
            rows = sql.run(connection, f"{_KEPT}{_OLDEST}", *values, limit)
        else:
            rows = sql.run(connection, f"{_KEPT} AND results.seed = ?{_OLDEST}", *values, mark.seed, limit)
        found = (event_rows.decode_job(document) for (document,) in rows)
        if job := next((job for job in found if job.id not in taken), None):
            return job
    return None


def remove(connection: Connection, job_id: str) -> None:
    """Remove the mark of a removed job: a digest may confirm a guess of its params."""
    connection.execute(delete(results).where(results.c.job_id == job_id))

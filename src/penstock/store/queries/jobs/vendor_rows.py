"""Open jobs and latest failures of vendors, as the jobs show them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from penstock.domain.jobs import State
from penstock.store.queries.jobs.event_rows import decode_job
from penstock.store.tables import jobs

BLAMED = ("upstream_error", "upstream_auth", "upstream_unavailable", "upstream_outcome_unknown", "bad_output")
"""Error codes of a job that are its vendor's fault."""
MAX_FAILURES_READ = 10
"""The number of a model's latest failures that are read."""


@dataclass(frozen=True, slots=True)
class VendorFailure:
    """A vendor's latest failure, as shown to the caller."""

    at: float
    code: str
    message: str
    model: str


def open_jobs(connection: Connection) -> dict[tuple[str, str], int]:
    """Return the number of open jobs by vendor and state."""
    query = select(jobs.c.vendor, jobs.c.state, func.count()).where(jobs.c.done == 0)
    return {(row[0], row[1]): row[2] for row in connection.execute(query.group_by(jobs.c.vendor, jobs.c.state))}


def last_failures(connection: Connection, models: Iterable[str]) -> dict[str, VendorFailure]:
    """Return the latest failure of each vendor with one of these models."""
    found: dict[str, VendorFailure] = {}
    for model in models:
        for vendor, failure in _failures(connection, model):
            if vendor not in found or found[vendor].at < failure.at:
                found[vendor] = failure
    return found


def _failures(connection: Connection, model: str) -> Sequence[tuple[str, VendorFailure]]:
    query = (
        select(jobs.c.vendor, jobs.c.finished_at, jobs.c.document)
        .where(jobs.c.model == model, jobs.c.state == State.FAILED.value, jobs.c.removed.is_(None))
        .order_by(jobs.c.finished_at.desc())
        .limit(MAX_FAILURES_READ)
    )
    found: list[tuple[str, VendorFailure]] = []
    for vendor, finished_at, document in connection.execute(query):
        error = decode_job(document).error or {}
        if error.get("code") in BLAMED:
            found.append((vendor, VendorFailure(finished_at, error["code"], error["message"], model)))
    return found

"""What the jobs in the store tell of the vendors that run them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from penstock.domain.jobs import State
from penstock.store.queries.jobs.event_rows import decode_job
from penstock.store.tables import jobs

BLAMED = ("upstream_error", "upstream_auth", "upstream_unavailable", "upstream_outcome_unknown", "bad_output")
"""Errors of a job that are its vendor's."""
LATEST = 10
"""How many of a model's latest failures are looked at."""


@dataclass(frozen=True, slots=True)
class VendorFailure:
    """What last went wrong at a vendor, as callers were told."""

    at: float
    code: str
    message: str
    model: str


def open_jobs(connection: Connection) -> dict[tuple[str, str], int]:
    """How many jobs are open, by vendor and state."""
    query = select(jobs.c.vendor, jobs.c.state, func.count()).where(jobs.c.done == 0)
    return {(row[0], row[1]): row[2] for row in connection.execute(query.group_by(jobs.c.vendor, jobs.c.state))}


def last_failures(connection: Connection, models: Iterable[str]) -> dict[str, VendorFailure]:
    """What last went wrong at each vendor with one of these models."""
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
        .limit(LATEST)
    )
    found: list[tuple[str, VendorFailure]] = []
    for vendor, finished_at, document in connection.execute(query):
        error = decode_job(document).error or {}
        if error.get("code") in BLAMED:
            found.append((vendor, VendorFailure(finished_at, error["code"], error["message"], model)))
    return found

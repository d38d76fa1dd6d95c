"""Claims on PostgreSQL: at most as many jobs of a vendor as it has seats, fair between accounts.

Seats are counted from the rows, not by worker: the vendor's order of a dead worker still runs.
"""

import logging
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

import msgspec
from sqlalchemy import Connection, update

from penstock.domain.jobs import Claim, Job, State
from penstock.store import locks, sql
from penstock.store.database import RUNG
from penstock.store.queries.jobs import event_rows, open_job_rows
from penstock.store.signals import QUEUE
from penstock.store.tables import jobs

log = logging.getLogger(__name__)

WAITING: Final = "done = 0 AND owner IS NULL AND seated = 0"
_VENDORS: Final = f"""
    WITH RECURSIVE found AS (
        SELECT (SELECT min(vendor) FROM jobs WHERE {WAITING}) AS vendor
        UNION ALL
        SELECT (SELECT min(vendor) FROM jobs WHERE {WAITING} AND vendor > found.vendor)
        FROM found WHERE found.vendor IS NOT NULL
    )
    SELECT vendor FROM found WHERE vendor IS NOT NULL
"""  # noqa: S608  constant text
_ORPHANS: Final = f"""
    SELECT id FROM jobs WHERE done = 0 AND owner IS NULL AND seated = 1 AND vendor = ANY(CAST(? AS TEXT[]))
    ORDER BY id LIMIT ?{sql.SKIPPING}
"""  # noqa: S608  constant text
# The seats taken of a vendor, and the account that was served last.
_TAKEN: Final = """
    SELECT (SELECT count(*) FROM jobs WHERE done = 0 AND seated = 1 AND vendor = ?),
           (SELECT account_id FROM turns WHERE vendor = ?)
"""
_FAIR: Final = f"""
    WITH RECURSIVE turns AS (
        SELECT (SELECT min(account_id) FROM jobs WHERE {WAITING} AND vendor = ?) AS account_id, 1 AS number
        UNION ALL
        SELECT (SELECT min(account_id) FROM jobs
                WHERE {WAITING} AND vendor = ? AND account_id > turns.account_id), turns.number + 1
        FROM turns WHERE turns.account_id IS NOT NULL AND turns.number < ?
    ),
    held AS (
        SELECT account_id, count(*) AS number FROM jobs
        WHERE done = 0 AND seated = 1 AND vendor = ? GROUP BY account_id
    )
    SELECT line.id, turns.account_id
    FROM turns
    LEFT JOIN held ON held.account_id = turns.account_id
    CROSS JOIN LATERAL (
        SELECT id, row_number() OVER (ORDER BY id) AS place
        FROM (SELECT id FROM jobs WHERE {WAITING} AND vendor = ? AND account_id = turns.account_id
              ORDER BY id LIMIT ?) AS first
    ) AS line
    WHERE turns.account_id IS NOT NULL
    ORDER BY coalesce(held.number, 0) + line.place, turns.account_id <= ?, turns.account_id
    LIMIT ?
"""  # noqa: S608  constant text
_SERVE: Final = """
    INSERT INTO turns (vendor, account_id) VALUES (?, ?)
    ON CONFLICT (vendor) DO UPDATE SET account_id = excluded.account_id
"""
_PLACES: Final = f"""
    SELECT id, row_number() OVER (PARTITION BY vendor ORDER BY place, id) - 1
    FROM (SELECT id, vendor, row_number() OVER (PARTITION BY vendor, account_id ORDER BY id) AS place
          FROM (SELECT id, vendor, account_id FROM jobs
                WHERE {WAITING} AND vendor <> '' ORDER BY id LIMIT ?) AS oldest) AS lines
"""  # noqa: S608  constant text
_BEGUN: Final = f"""
    SELECT id, document FROM jobs WHERE done = 0 AND owner IS NULL AND state = '{State.RUNNING}' ORDER BY id LIMIT ?
"""  # noqa: S608  constant text
MAX_ACCOUNTS: Final = 1_000
"""The number of accounts considered for one claim."""


class Claimed(NamedTuple):
    """A claimed job, and whether it has one of its vendor's seats."""

    claim: Claim
    job: Job
    is_seated: bool


def claim(connection: Connection, owner: str, limits: Mapping[str, int], most: int, now: float) -> list[Claimed]:
    """Claim up to `most` free jobs: those with a seat first, then those that can only end, then new ones.

    `limits` has the seats of each vendor that this worker knows. Jobs of other vendors wait for other workers.
    """
    orphans = [row[0] for row in sql.run(connection, _ORPHANS, list(limits), most)]
    found = [Claimed(*each, is_seated=True) for each in open_job_rows.take(connection, owner, orphans)]
    found += claim_ending(connection, owner, most, now)
    for (vendor,) in sql.run(connection, _VENDORS):
        room = most - len(found)
        if room > 0 and vendor in limits:
            found += _claim_seats(connection, owner, vendor, limits[vendor], room)
    return found


def claim_ending(connection: Connection, owner: str, most: int, now: float) -> list[Claimed]:
    """Claim jobs that can only end: canceled ones, and those whose deadline has passed. They need no seat."""
    ending = open_job_rows.claim_ending(connection, owner, most, now) + _claim_late(connection, owner, most, now)
    return [Claimed(*each, is_seated=False) for each in ending]


def _claim_seats(connection: Connection, owner: str, vendor: str, seats: int, most: int) -> list[Claimed]:
    """Claim the oldest job of each account, each seat for the account with the fewest. Among equals they take turns."""
    locks.hold(connection, "seats", vendor)
    [(taken, served)] = sql.run(connection, _TAKEN, vendor, vendor)
    free = min(most, seats - taken)
    if free <= 0:
        return []
    turns = (vendor, vendor, MAX_ACCOUNTS)
    chosen = sql.run(connection, _FAIR, *turns, vendor, vendor, free, served or "", free)
    if not chosen:
        return []
    sql.run(connection, _SERVE, vendor, chosen[-1][1])
    claimed = open_job_rows.take(connection, owner, [row[0] for row in chosen], seated=True)
    return [Claimed(*each, is_seated=True) for each in claimed]


def _claim_late(connection: Connection, owner: str, most: int, now: float) -> list[tuple[Claim, Job]]:
    """Claim begun jobs past their deadline that wait for a seat, or for a worker that knows their vendor."""
    rows = sql.run(connection, _BEGUN, most)
    late = [job_id for job_id, document in rows if _is_late(job_id, document, now)]
    return open_job_rows.take(connection, owner, late)


def _is_late(job_id: str, document: bytes, now: float) -> bool:
    try:
        return now >= event_rows.decode_job(document).deadline
    except msgspec.DecodeError:  # one damaged row must not block the others
        log.exception("a job's row cannot be decoded; the job is skipped", extra={"fields": {"job_id": job_id}})
        return False


def places(connection: Connection, most: int) -> dict[str, int]:
    """Return, for each waiting job, the number of jobs before it in its vendor's fair queue."""
    return dict(sql.run(connection, _PLACES, most))  # in one query: there may be thousands


def give_back_all_but(connection: Connection, owner: str, kept: Collection[str]) -> None:
    """Release this owner's jobs except those kept. Seats stay taken, as vendors may be at work."""
    theirs = update(jobs).where(jobs.c.done == 0, jobs.c.owner == owner, jobs.c.id.not_in(kept))
    if connection.execute(theirs.values(owner=None)).rowcount:
        connection.info[RUNG].add(QUEUE)

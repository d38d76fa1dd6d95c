"""Workers and their leases on PostgreSQL, by its clock, as those of machines differ."""

from typing import Final, NamedTuple

from sqlalchemy import (
    Connection,
    Integer,
    and_,
    delete,
    insert,
    literal_column,
    select,
    update,
)

from penstock.store import locks, sql
from penstock.store.clock import NOW, NOW_TEXT
from penstock.store.database import RUNG
from penstock.store.queries.jobs.open_job_rows import SUSPECTED
from penstock.store.signals import QUEUE
from penstock.store.tables import chores, jobs, workers

HANDING_OVER: Final = "/handing over"
"""The suffix of an owner that has claimed a job for whichever worker takes it over."""
# A locked row is freed by the next sweep: a worker that waited for it could not renew its own lease.
_ORPHANED: Final = f"""
    UPDATE jobs SET owner = NULL, at_risk = 0, deaths = {SUSPECTED}
    WHERE id IN (
        SELECT id FROM jobs WHERE done = 0 AND owner IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM workers WHERE workers.id = split_part(jobs.owner, '/', 1))
        FOR UPDATE SKIP LOCKED)
    RETURNING id
"""  # noqa: S608  constant text


_RENEW: Final = f"UPDATE workers SET renewed_at = {NOW_TEXT} WHERE id = ? RETURNING id"  # noqa: S608  constant text
_SILENT: Final = f"DELETE FROM workers WHERE renewed_at < {NOW_TEXT} - CAST(? AS DOUBLE PRECISION)"  # noqa: S608
_MY_TURN: Final = f"""
    UPDATE chores SET until = {NOW_TEXT} + CAST(? AS DOUBLE PRECISION) WHERE name = ? AND until < {NOW_TEXT}
    RETURNING name
"""  # noqa: S608  constant text
_IS_KNOWN: Final = "SELECT name FROM chores WHERE name = ?"


class WorkerRow(NamedTuple):
    """A process that runs jobs."""

    id: str
    name: str
    started_at: float
    silent_seconds: float
    jobs: int


def register(connection: Connection, worker: str, name: str) -> None:
    """Register a new worker with a full lease."""
    connection.execute(insert(workers).values(id=worker, name=name, started_at=NOW, renewed_at=NOW))


def renew(connection: Connection, worker: str) -> bool:
    """Renew a worker's lease. Return False if it has ended and others have its jobs."""
    return bool(sql.run(connection, _RENEW, worker))


def sweep(connection: Connection, seconds: float) -> int:
    """End leases not renewed for so many seconds, and free jobs without a living owner. Return the number freed."""
    if not locks.try_hold(connection, "leases"):  # two sweeps might free what a new worker has claimed meanwhile
        return 0
    sql.run(connection, _SILENT, seconds)
    freed = len(sql.run(connection, _ORPHANED))
    if freed:
        connection.info[RUNG].add(QUEUE)
    return freed


def leave(connection: Connection, worker: str) -> None:
    """End a worker's lease and free its jobs at once."""
    connection.execute(delete(workers).where(workers.c.id == worker))
    theirs = and_(jobs.c.done == 0, jobs.c.owner.in_((worker, worker + HANDING_OVER)))
    freed = connection.execute(update(jobs).where(theirs).values(owner=None))
    if freed.rowcount:
        connection.info[RUNG].add(QUEUE)


def list_all(connection: Connection) -> list[WorkerRow]:
    """Return the workers, oldest first, with the number of jobs of each."""
    held = literal_column("(SELECT count(*) FROM jobs WHERE done = 0 AND owner = workers.id)", Integer)
    query = select(workers.c.id, workers.c.name, workers.c.started_at, NOW - workers.c.renewed_at, held)
    return [WorkerRow(*row) for row in connection.execute(query.order_by(workers.c.started_at, workers.c.id))]


def take_turn(connection: Connection, chore: str, seconds: float) -> bool:
    """Return whether this process is to do a chore now. If so, no other does it for so many seconds."""
    if connection.dialect.name == "sqlite":
        return True  # only one process does chores there
    if sql.run(connection, _MY_TURN, seconds, chore):
        return True
    if sql.run(connection, _IS_KNOWN, chore):
        return False
    connection.execute(insert(chores).values(name=chore, until=NOW + seconds))
    return True

"""Workers and their leases on PostgreSQL: by its clock, as those of machines differ."""

from typing import Final, NamedTuple

from sqlalchemy import (
    Connection,
    Integer,
    and_,
    delete,
    insert,
    literal_column,
    select,
    text,
    update,
)

from penstock.store import locks
from penstock.store.clock import NOW
from penstock.store.database import RUNG
from penstock.store.queries.jobs.open_job_rows import SUSPECTED
from penstock.store.signals import QUEUE
from penstock.store.tables import chores, jobs, workers

HANDING_OVER: Final = "/handing over"
"""After a worker's name: it has claimed the job for whichever worker takes it over."""
# A row that somebody still has locked is freed by the next look: a worker that waited for it could not renew its own
# lease meanwhile.
_ORPHANED: Final = text(f"""
    UPDATE jobs SET owner = NULL, at_risk = 0, deaths = {SUSPECTED}
    WHERE id IN (
        SELECT id FROM jobs WHERE done = 0 AND owner IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM workers WHERE workers.id = split_part(jobs.owner, '/', 1))
        FOR UPDATE SKIP LOCKED)
""")  # noqa: S608  words of our own


class WorkerRow(NamedTuple):
    """A process that runs jobs."""

    id: str
    name: str
    started_at: float
    silent_seconds: float
    jobs: int


def register(connection: Connection, worker: str, name: str) -> None:
    """A new worker begins with a whole lease."""
    connection.execute(insert(workers).values(id=worker, name=name, started_at=NOW, renewed_at=NOW))


def renew(connection: Connection, worker: str) -> bool:
    """The worker lives; False if its lease has ended, and others have its jobs."""
    renewed = connection.execute(update(workers).where(workers.c.id == worker).values(renewed_at=NOW))
    return bool(renewed.rowcount)


def sweep(connection: Connection, seconds: float) -> int:
    """End the leases of whoever was silent for so long, and free what has no living owner; how many jobs it were."""
    if not locks.try_hold(connection, "leases"):  # two might free what one has freed and a new worker has claimed
        return 0
    connection.execute(delete(workers).where(workers.c.renewed_at < NOW - seconds))
    freed = connection.execute(_ORPHANED).rowcount
    if freed:
        connection.info[RUNG].add(QUEUE)
    return freed


def leave(connection: Connection, worker: str) -> None:
    """The worker stops: all that it has is free at once."""
    connection.execute(delete(workers).where(workers.c.id == worker))
    theirs = and_(jobs.c.done == 0, jobs.c.owner.in_((worker, worker + HANDING_OVER)))
    freed = connection.execute(update(jobs).where(theirs).values(owner=None))
    if freed.rowcount:
        connection.info[RUNG].add(QUEUE)


def list_all(connection: Connection) -> list[WorkerRow]:
    """The workers, oldest first, with how many jobs each has."""
    held = literal_column("(SELECT count(*) FROM jobs WHERE done = 0 AND owner = workers.id)", Integer)
    query = select(workers.c.id, workers.c.name, workers.c.started_at, NOW - workers.c.renewed_at, held)
    return [WorkerRow(*row) for row in connection.execute(query.order_by(workers.c.started_at, workers.c.id))]


def take_turn(connection: Connection, chore: str, seconds: float) -> bool:
    """Whether it is this process that does a chore now: then nobody else does for so long."""
    if connection.dialect.name == "sqlite":
        return True  # there only one process does them
    mine = update(chores).where(chores.c.name == chore, chores.c.until < NOW).values(until=NOW + seconds)
    if connection.execute(mine).rowcount:
        return True
    if connection.execute(select(chores.c.name).where(chores.c.name == chore)).first() is not None:
        return False
    connection.execute(insert(chores).values(name=chore, until=NOW + seconds))
    return True

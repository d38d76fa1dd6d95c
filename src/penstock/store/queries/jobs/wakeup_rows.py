"""What a vendor tells a server that does not run the job: a row, which the server that does hears of."""

from sqlalchemy import Connection, delete, insert

from penstock.store.database import RUNG
from penstock.store.signals import nudge
from penstock.store.tables import nudges


def add(connection: Connection, job_id: str, now: float) -> None:
    """Have whoever works on the job look at it."""
    connection.info[RUNG].add(nudge(job_id))
    connection.execute(insert(nudges), {"job_id": job_id, "created_at": now})


def remove(connection: Connection, before: float) -> None:
    """Forget those that were heard long ago."""
    connection.execute(delete(nudges).where(nudges.c.created_at < before))

"""Wakeups: vendors' callbacks that reached a server other than the one that runs the job."""

from sqlalchemy import Connection, delete, insert

from penstock.store.database import RUNG
from penstock.store.signals import nudge
from penstock.store.tables import nudges


def add(connection: Connection, job_id: str, now: float) -> None:
    """Wake the process that runs the job."""
    connection.info[RUNG].add(nudge(job_id))
    connection.execute(insert(nudges), {"job_id": job_id, "created_at": now})


def remove(connection: Connection, before: float) -> None:
    """Delete old wakeups."""
    connection.execute(delete(nudges).where(nudges.c.created_at < before))

"""Handover on PostgreSQL: one worker claims a job with a seat, another one that Temporal chooses runs it."""

from collections.abc import Collection, Sequence

from sqlalchemy import Connection, select, update

from penstock.domain.jobs import Claim
from penstock.store.database import RUNG
from penstock.store.queries.jobs import event_rows
from penstock.store.queries.jobs.postgres_claim_rows import Claimed
from penstock.store.queries.jobs.worker_rows import HANDING_OVER
from penstock.store.signals import QUEUE
from penstock.store.tables import jobs


class HeldElsewhere(Exception):
    """Another worker with a valid lease has the job, or this worker does not know its vendor."""


def take(connection: Connection, owner: str, job_id: str, vendors: Collection[str]) -> Claimed | None:
    """Take over a job that has a seat and is being handed over or free. Return None if there is nothing to do."""
    row = connection.execute(select(jobs).where(jobs.c.id == job_id).with_for_update()).one_or_none()
    if row is None or row.done or not row.seated:
        return None
    is_held = row.owner is not None and not row.owner.endswith(HANDING_OVER)
    if is_held or row.vendor not in vendors:
        raise HeldElsewhere
    claim = Claim(job_id, owner, row.epoch + 1, row.deaths)
    connection.execute(update(jobs).where(jobs.c.id == job_id).values(owner=owner, epoch=claim.epoch, at_risk=0))
    return Claimed(claim, event_rows.decode_job(row.document), is_seated=True)


def give_back(connection: Connection, claim: Claim) -> None:
    """Release a job with its seat: its vendor may be at work."""
    ours = update(jobs).where(
        jobs.c.id == claim.job_id, jobs.c.owner == claim.owner, jobs.c.epoch == claim.epoch, jobs.c.done == 0
    )
    if connection.execute(ours.values(owner=None)).rowcount:
        connection.info[RUNG].add(QUEUE)


def list_handed_over(connection: Connection, owner: str) -> Sequence[tuple[Claim, str]]:
    """Return the jobs that this owner hands over and no worker has taken, each with its account."""
    query = select(jobs.c.id, jobs.c.epoch, jobs.c.account_id).where(
        jobs.c.done == 0, jobs.c.owner == owner, jobs.c.seated == 1
    )
    return [(Claim(row.id, owner, row.epoch), row.account_id) for row in connection.execute(query)]

"""Workers on PostgreSQL take up only what they can work on, or can end."""

from sqlalchemy import Connection, update
from store.sample_jobs import NOW, make_job
from store.trials import undone

from penstock import jobs
from penstock.jobs import Job
from penstock.store import claim_rows, job_rows, lease_rows
from penstock.store.job_rows import Claim
from penstock.store.tables import jobs as job_table

LATE = NOW + 10_000.0


def begin(connection: Connection) -> Job:
    """A job that a worker has begun at its vendor before it ended."""
    (accepted,) = job_rows.insert_all(connection, [make_job(vendor="known")], NOW)
    lease_rows.register(connection, "worker_gone", "gone")
    ((claim, _, _),) = claim_rows.claim(connection, "worker_gone", {"known": 1}, 10, NOW)
    job = job_rows.amend(connection, claim, lambda job: jobs.start(job, NOW), NOW)
    lease_rows.leave(connection, "worker_gone")
    assert job.id == accepted.id
    return job


def claim(connection: Connection, now: float, **limits: int) -> list[Claim]:
    return [each.claim for each in claim_rows.claim(connection, "worker_here", limits, 10, now)]


def test_a_begun_job_waits_for_a_worker_that_knows_its_vendor(postgres_trial: Connection):
    with undone(postgres_trial) as connection:
        job = begin(connection)
        assert claim(connection, NOW, other=5) == []
        assert claim(connection, NOW, other=5, known=1) == [Claim(job.id, "worker_here", 2)]


def test_once_its_time_is_over_any_worker_ends_it(postgres_trial: Connection):
    with undone(postgres_trial) as connection:
        job = begin(connection)
        assert claim(connection, LATE, other=5) == [Claim(job.id, "worker_here", 2)]
        connection.execute(update(job_table).values(owner=None))
        assert claim(connection, LATE) == [Claim(job.id, "worker_here", 3)]

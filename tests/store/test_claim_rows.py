"""Workers on PostgreSQL take up only what they can work on, or can end."""

from dataclasses import replace

from sqlalchemy import Connection, select, update
from store.sample_jobs import NOW, make_job
from store.trials import undone

from penstock.domain import jobs
from penstock.domain.jobs import Claim, Job, Phase
from penstock.store.queries.jobs import job_rows, postgres_claim_rows, worker_rows
from penstock.store.tables import jobs as job_table

LATE = NOW + 10_000.0


def begin(connection: Connection) -> Job:
    """A job that a worker has begun at its vendor before it ended."""
    (accepted,) = job_rows.insert_all(connection, [make_job(vendor="known")], NOW)
    worker_rows.register(connection, "worker_gone", "gone")
    ((claim, _, _),) = postgres_claim_rows.claim(connection, "worker_gone", {"known": 1}, 10, NOW)
    job = job_rows.amend(connection, claim, lambda job: jobs.start(job, NOW), NOW)
    worker_rows.leave(connection, "worker_gone")
    assert job.id == accepted.id
    return job


def claim(connection: Connection, now: float, **limits: int) -> list[Claim]:
    return [each.claim for each in postgres_claim_rows.claim(connection, "worker_here", limits, 10, now)]


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


def test_a_row_that_cannot_be_read_keeps_nobody_from_the_others(postgres_trial: Connection):
    with undone(postgres_trial) as connection:
        newer = begin(connection)
        document = connection.execute(select(job_table.c.document)).scalar_one()
        changed = document.replace(b'"phase":"', b'"phase":"of a newer version: ')
        connection.execute(update(job_table).where(job_table.c.id == newer.id).values(document=changed))
        (job,) = job_rows.insert_all(connection, [make_job(id="job_other", vendor="other")], NOW)
        assert claim(connection, NOW, other=5) == [Claim(job.id, "worker_here", 1)]


def test_a_dead_workers_jobs_are_freed_whatever_is_in_their_prompts(postgres_trial: Connection):
    with undone(postgres_trial) as connection:
        prompts = ("a\0b", "a\\u0000b", "plain")
        wanted = [make_job(id=f"job_{number}", params={"prompt": text}) for number, text in enumerate(prompts)]
        job_rows.insert_all(connection, wanted, NOW)
        worker_rows.register(connection, "worker_dead", "dead")
        taken = postgres_claim_rows.claim(connection, "worker_dead", {wanted[0].vendor: 9}, 10, NOW)
        for each in taken:
            job_rows.amend(connection, each.claim, lambda job: replace(job, phase=Phase.FETCHING), NOW)
        assert worker_rows.sweep(connection, -1.0) == len(prompts)
        assert connection.execute(select(job_table.c.owner)).scalars().all() == [None] * len(prompts)
        again = postgres_claim_rows.claim(connection, "worker_here", {wanted[0].vendor: 9}, 10, NOW)
        assert [each.job.params["prompt"] for each in again] == list(prompts)
        assert {each.claim.deaths for each in again} == {1}


def test_a_death_is_blamed_on_risky_steps_only_and_on_a_suspect_only_if_it_was_alone(postgres_trial: Connection):
    with undone(postgres_trial) as connection:
        marks = {"waits": (0, 0), "first": (1, 0), "beside": (1, 3), "alone": (2, 3)}
        wanted = [make_job(id=f"job_{name}") for name in marks]
        job_rows.insert_all(connection, wanted, NOW)
        worker_rows.register(connection, "worker_dead", "dead")
        postgres_claim_rows.claim(connection, "worker_dead", {wanted[0].vendor: 9}, 10, NOW)
        for name, (at_risk, deaths) in marks.items():
            values = {"at_risk": at_risk, "deaths": deaths}
            connection.execute(update(job_table).where(job_table.c.id == f"job_{name}").values(values))
        assert worker_rows.sweep(connection, -1.0) == len(marks)
        again = postgres_claim_rows.claim(connection, "worker_here", {wanted[0].vendor: 9}, 10, NOW)
        found = {each.job.id.removeprefix("job_"): each.claim.deaths for each in again}
        assert found == {"waits": 0, "first": 1, "beside": 3, "alone": 4}
        assert set(connection.execute(select(job_table.c.at_risk)).scalars()) == {0}

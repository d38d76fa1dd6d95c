"""Pipelines under every dispatcher: a job starts when its inputs are made, also after its worker has died."""

import asyncio
import time
from typing import Any

from crew import Crew, until
from store.sample_jobs import make_job

from penstock.domain.ids import new_id
from penstock.domain.jobs import Job, Parent
from penstock.domain.pipelines.records import Pipeline, PipelineState, PipelineStep
from penstock.store.database import Connection
from penstock.store.queries.files import lineage_rows
from penstock.store.queries.jobs import advance_rows, job_rows, pipeline_rows

NEEDS = {"picture": (), "film": ("picture",), "other": ("picture",), "last": ("film", "other")}


async def accept(crew: Crew) -> tuple[Pipeline, dict[str, Job]]:
    """Write a pipeline of four steps as the gateway does."""
    now, ids = time.time(), {name: new_id("job") for name in NEEDS}
    pipeline_id = new_id("pipe")
    jobs = {name: make_step_job(name, ids, pipeline_id, now) for name in NEEDS}
    steps = tuple(
        PipelineStep(name=name, model="sim_text_to_video", job_ids=(ids[name],), needs=needs)
        for name, needs in NEEDS.items()
    )
    base: dict[str, Any] = {"account_id": "acct_one", "key_id": "key", "request_id": "req_1", "created_at": now}
    pipeline = Pipeline(id=pipeline_id, **base, steps=steps, given={}, params={})
    await crew.database.write(write, pipeline, list(jobs.values()), now)
    return pipeline, jobs


def make_step_job(name: str, ids: dict[str, str], pipeline_id: str, now: float) -> Job:
    paths = {f"images.{number}": ids[need] for number, need in enumerate(NEEDS[name])}
    return make_job(
        id=ids[name],
        created_at=now,
        start_by=now + 600,
        estimated=0,
        pipeline_id=pipeline_id,
        step=name,
        parents=tuple(Parent(path, parent_id, "") for path, parent_id in paths.items()),
        awaits=dict.fromkeys(paths, ("video",)),
    )


def write(connection: Connection, pipeline: Pipeline, jobs: list[Job], now: float) -> None:
    lineage_rows.add(connection, jobs)
    pipeline_rows.add(connection, pipeline, now)
    job_rows.insert_all(connection, jobs, now)


async def ended(crew: Crew, pipeline: Pipeline) -> tuple[Pipeline, dict[str, Job]]:
    while True:
        found = await crew.database.read(pipeline_rows.get_whole, pipeline.account_id, pipeline.id)
        if found[0].done:
            return found
        await asyncio.sleep(0.02)


async def test_each_job_is_ordered_once_its_inputs_are_made(crew: Crew):
    await crew.hire(number=2)
    pipeline, jobs = await accept(crew)
    ordered = crew.vendor.orders
    await until(lambda: set(ordered) == {jobs["picture"].id})
    await crew.vendor.finish(jobs["picture"].id)
    await until(lambda: set(ordered) == {jobs[name].id for name in ("picture", "film", "other")})
    await crew.vendor.finish(jobs["film"].id)
    await crew.vendor.finish(jobs["other"].id)
    await until(lambda: jobs["last"].id in ordered)
    await crew.vendor.finish_all()
    done, found = await ended(crew, pipeline)
    assert done.state is PipelineState.SUCCEEDED
    assert set(ordered.values()) == {1}
    last = found[jobs["last"].id]
    assert {path: file.token for path, file in last.files.items()} == {
        f"images.{number}": found[jobs[name].id].outputs[0].id for number, name in enumerate(("film", "other"))
    }


async def test_it_goes_on_when_the_worker_of_a_step_dies(crew: Crew):
    await crew.hire()
    pipeline, jobs = await accept(crew)
    await until(lambda: jobs["picture"].id in crew.vendor.orders)
    await crew.workers[0].kill()
    await crew.hire()
    await crew.vendor.finish_all()
    assert (await ended(crew, pipeline))[0].state is PipelineState.SUCCEEDED
    assert set(crew.vendor.orders.values()) == {1}


async def test_a_cancel_ends_what_waits_at_once(crew: Crew):
    """Nobody is at work yet, and the first job is not ordered afterwards."""
    pipeline, jobs = await accept(crew)
    await crew.database.write(advance_rows.cancel, pipeline.account_id, pipeline.id, time.time())
    found, states = await crew.database.read(pipeline_rows.get_whole, pipeline.account_id, pipeline.id)
    assert (found.state, found.done) == (PipelineState.CANCELING, False)
    assert [job.state.value for job in states.values()] == ["canceling", "canceled", "canceled", "canceled"]
    assert jobs["picture"].id not in crew.vendor.orders

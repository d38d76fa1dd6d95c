"""Rules of pipelines on random graphs with random outcomes: no I/O, no clock."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store.sample_jobs import NOW, make_asset, make_attempt, make_job

from penstock.domain.jobs import Job, Outcome, Parent, State, fail, order, request_cancel, start, stop, succeed
from penstock.domain.pipelines.records import OnError, Pipeline, PipelineState, PipelineStep
from penstock.domain.pipelines.rules import advance, request_stop

START_SECONDS = 60.0
PRICE = 400_000_000
ENDINGS = ("succeeded", "failed", "expired", "canceled")


def make_pipeline(steps: list[PipelineStep], **fields: Any) -> Pipeline:
    base = {"id": "pipe_1", "account_id": "acct_one", "key_id": "key", "request_id": "req_1", "created_at": NOW}
    return Pipeline(**base, steps=tuple(steps), given={}, params={}, **fields)


def make_step(number: int, jobs: list[Job], on_error: OnError = OnError.STOP) -> PipelineStep:
    return PipelineStep(
        name=f"s{number}", model="sim_text_to_video", job_ids=tuple(job.id for job in jobs), on_error=on_error
    )


def make_child(job_id: str, parents: list[str], **fields: Any) -> Job:
    paths = {f"images.{number}": parent for number, parent in enumerate(parents)}
    return make_job(
        id=job_id,
        pipeline_id="pipe_1",
        start_by=NOW + START_SECONDS,
        parents=tuple(Parent(path, parent, "") for path, parent in paths.items()),
        awaits=dict.fromkeys(paths, ("video",)),
        **fields,
    )


@dataclass
class Run:
    """A pipeline and its jobs, as the store has them."""

    pipeline: Pipeline
    jobs: dict[str, Job]
    now: float = NOW
    started: list[str] = field(default_factory=list[str])

    def advance(self) -> None:
        """Take the next step, and check that a second one changes nothing."""
        waiting = {job_id for job_id, job in self.jobs.items() if job.is_waiting}
        step = advance(self.pipeline, self.jobs, self.now)
        assert all(before is self.jobs[after.id] and before.id in waiting for before, after in step.changed)
        self.jobs |= {after.id: after for _, after in step.changed}
        self.pipeline = step.pipeline
        for job_id in waiting:
            job = self.jobs[job_id]
            if not job.done and not job.is_waiting:
                assert job.start_by == pytest.approx(self.now + START_SECONDS)
        if not self.pipeline.done:
            again = advance(self.pipeline, self.jobs, self.now)
            assert (again.pipeline, again.changed, again.to_cancel) == (self.pipeline, [], step.to_cancel)
        for job_id in step.to_cancel:
            self.jobs[job_id] = request_cancel(self.jobs[job_id], self.now)

    def runnable(self) -> list[Job]:
        return [job for job in self.jobs.values() if not job.done and not job.is_waiting]

    def take(self, job: Job, ending: str) -> None:
        """Let a job take its next step: start, or end in this way."""
        if job.state is State.QUEUED:
            assert all(self.jobs[parent.job_id].state is State.SUCCEEDED for parent in job.parents)
            assert set(job.inputs) == {parent.path for parent in job.parents}
            self.started.append(job.id)
            self.jobs[job.id] = start(job, self.now)
        elif job.state is State.CANCELING:
            self.jobs[job.id] = stop(job, self.now)
        elif not job.attempts:
            self.jobs[job.id] = order(job, make_attempt(job.id))
        else:
            self.jobs[job.id] = finish(job, ending, self.now)


def finish(job: Job, ending: str, now: float) -> Job:
    if ending == "succeeded":
        return replace(succeed(job, now, (make_asset(),), ()), final=PRICE, charged=True)
    if ending == "canceled":
        return stop(request_cancel(job, now), now)
    return fail(job, now, {"code": "upstream_error", "message": "no"}, Outcome.FAILED, State(ending))


@st.composite
def runs(draw: st.DrawFn) -> Run:
    jobs: dict[str, Job] = {}
    steps: list[PipelineStep] = []
    for number in range(draw(st.integers(1, 6))):
        made: list[Job] = []
        for index in range(draw(st.integers(1, 3))):
            parents = draw(st.lists(st.sampled_from(sorted(jobs)), unique=True, max_size=3)) if jobs else []
            made.append(make_child(f"job_{number}_{index}", parents))
        steps.append(make_step(number, made, draw(st.sampled_from(OnError))))
        jobs |= {job.id: job for job in made}
    return Run(make_pipeline(steps), jobs)


@given(runs(), st.data())
def test_every_pipeline_ends_and_agrees_with_its_jobs(run: Run, data: st.DataObject):
    cancel_after = data.draw(st.none() | st.integers(0, 20))
    for turn in range(10 * len(run.jobs) + 10):
        if turn == cancel_after:
            run.pipeline = request_stop(run.pipeline, run.now)
        run.now += 1.0
        run.advance()
        if run.pipeline.done:
            break
        job = data.draw(st.sampled_from(sorted(run.runnable(), key=lambda job: job.id)))
        run.take(job, data.draw(st.sampled_from(ENDINGS)))
    assert run.pipeline.done
    states = {job_id: job.state for job_id, job in run.jobs.items()}
    assert run.pipeline.states == states
    assert run.pipeline.final == sum(job.final or 0 for job in run.jobs.values())
    assert (run.pipeline.state is PipelineState.SUCCEEDED) == (set(states.values()) == {State.SUCCEEDED})
    assert (run.pipeline.error is not None) == (run.pipeline.state is PipelineState.FAILED)
    assert len(run.started) == len(set(run.started))


@given(runs(), st.data())
def test_with_continue_all_that_can_run_does(run: Run, data: st.DataObject):
    steps = tuple(replace(step, on_error=OnError.CONTINUE) for step in run.pipeline.steps)
    run.pipeline = replace(run.pipeline, steps=steps)
    run.advance()
    while not run.pipeline.done:
        run.take(run.runnable()[0], data.draw(st.sampled_from(ENDINGS[:2])))
        run.advance()
    for job in run.jobs.values():
        has_inputs = all(run.jobs[parent.job_id].state is State.SUCCEEDED for parent in job.parents)
        assert has_inputs == (job.id in run.started)
        assert has_inputs or (job.error or {}).get("code") == "parent_failed"


def ended(job_id: str, ending: str = "succeeded") -> Job:
    job = order(start(make_child(job_id, []), NOW), make_attempt(job_id))
    return finish(job, ending, NOW)


def pair(parent: Job, **child: Any) -> tuple[Pipeline, Mapping[str, Job]]:
    made = replace(make_child("job_b", [parent.id]), **child)
    return make_pipeline([make_step(0, [parent]), make_step(1, [made])]), {parent.id: parent, "job_b": made}


def test_a_removed_parent_fails_its_child_and_its_cost_stays():
    gone = replace(ended("job_a"), outputs=(), params={}, error=None)
    step = advance(*pair(gone), NOW)
    child = step.changed[0][1]
    assert (child.state, child.error and child.error["code"]) == (State.FAILED, "parent_failed")
    assert "has been deleted" in child.error["message"]
    assert (step.pipeline.final, step.pipeline.states) == (PRICE, {"job_a": "succeeded", "job_b": "failed"})


def test_an_output_of_another_kind_fails_the_child():
    child = advance(*pair(ended("job_a"), awaits={"images.0": ("3d",)}), NOW).changed[0][1]
    assert "is of kind video, not 3d" in child.error["message"]


def test_after_a_failure_paid_orders_go_on_and_others_are_canceled():
    paid = order(start(make_child("job_b", []), NOW), make_attempt("job_b"))
    begun, fresh = start(make_child("job_c", []), NOW), make_child("job_d", [])
    jobs = {job.id: job for job in (ended("job_a", "failed"), paid, begun, fresh)}
    pipeline = make_pipeline([make_step(number, [job]) for number, job in enumerate(jobs.values())])
    assert advance(pipeline, jobs, NOW).to_cancel == ["job_c", "job_d"]
    assert advance(request_stop(pipeline, NOW), jobs, NOW).to_cancel == ["job_b", "job_c", "job_d"]

"""Rules of pipelines: which job starts, ends or is canceled next. Pure, without a clock."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.domain.files import FileKind, Origin, StoredFile, asset_key, contradiction
from penstock.domain.job_errors import ParentFailed
from penstock.domain.jobs import Asset, Job, Outcome, Parent, State, fail, request_cancel, stop, take_file
from penstock.domain.pipelines.records import OnError, Pipeline, PipelineState, PipelineStep

OUTPUT_KINDS: Mapping[str, FileKind] = {"model": "3d", "video": "video", "image": "image", "audio": "audio"}
"""The kinds of files that outputs are, by their own kind."""
ENDS: Mapping[State, str] = {State.CANCELED: "was canceled", State.EXPIRED: "expired", State.FAILED: "failed"}


@dataclass(frozen=True, slots=True)
class Advance:
    """The next state of a pipeline and of its waiting jobs, and the open jobs that are to be canceled."""

    pipeline: Pipeline
    changed: Sequence[tuple[Job, Job]]
    to_cancel: Sequence[str]


class NoSuchOutput(Exception):
    """A job has no output of this name."""


def find_output(job: Job, name: int | str) -> Asset:
    """Return an output of a job by its number or role. Raise `NoSuchOutput` if it has none."""
    if not job.outputs:
        raise NoSuchOutput(f"{job.id} has been deleted.")
    if isinstance(name, int):
        if name < len(job.outputs):
            return job.outputs[name]
        raise NoSuchOutput(f"{job.id} has {len(job.outputs)} outputs, numbered from 0.")
    found = next((asset for asset in job.outputs if asset.role == name), None)
    if found is None:
        raise NoSuchOutput(f"{job.id} has no {name} output.")
    return found


def describe_end(job: Job) -> str:
    """Return what became of a job that made no outputs, as the end of a sentence."""
    return ENDS.get(job.state, f"is {job.state.value}")


def refer_to(job: Job, asset: Asset) -> StoredFile:
    """Return an output as an input file. Its bytes are those of the output itself."""
    attempt = next((each for each in reversed(job.attempts) if each.outcome is Outcome.SUCCEEDED), None)
    upstream_id = attempt and (attempt.result_id or attempt.upstream_id)
    origin = attempt and Origin(attempt.vendor, attempt.credential, upstream_id or "", job.model)
    return StoredFile(
        token=asset.id,
        account_id=job.account_id,
        sha256=asset.sha256,
        bytes=asset.bytes,
        content_type=asset.content_type,
        width=asset.width or 0,
        height=asset.height or 0,
        created_at=job.finished_at or job.created_at,
        expires_at=None,
        name=asset.filename,
        kind=OUTPUT_KINDS.get(asset.kind, "image"),
        duration_seconds=asset.duration_seconds,
        key=asset_key(job.id, asset.filename, asset.sha256),
        origin=origin,
    )


# -- the next step


def advance(pipeline: Pipeline, jobs: Mapping[str, Job], now: float) -> Advance:
    """Return what follows from the states of a pipeline's jobs. Removed jobs are among them, without outputs."""
    current = dict(jobs)
    for job in _in_order(pipeline, jobs):
        if job.is_waiting:
            current[job.id] = _supply(job, current, now)
    stopping = pipeline.is_stopping or any(_stops(pipeline, step, current) for step in pipeline.steps)
    pipeline = replace(pipeline, is_stopping=stopping)
    to_cancel: list[str] = []
    for job in _in_order(pipeline, current):
        if stopping and job.is_waiting:
            current[job.id] = stop(request_cancel(job, now), now)
        elif is_to_be_canceled(pipeline, job):
            to_cancel.append(job.id)
    changed = [(jobs[job_id], job) for job_id, job in current.items() if job is not jobs[job_id]]
    pipeline = replace(pipeline, states={job.id: job.state.value for job in _ended(current)})
    if all(job.done for job in current.values()):
        pipeline = _finish(pipeline, current, now)
    return Advance(pipeline, changed, [job_id for job_id in to_cancel if current[job_id] is jobs[job_id]])


def request_stop(pipeline: Pipeline, now: float) -> Pipeline:
    """Record the caller's cancel; a second one changes nothing."""
    if pipeline.done or pipeline.cancel_requested_at is not None:
        return pipeline
    return replace(pipeline, state=PipelineState.CANCELING, is_stopping=True, cancel_requested_at=now)


def _in_order(pipeline: Pipeline, jobs: Mapping[str, Job]) -> Iterator[Job]:
    return (jobs[job_id] for job_id in pipeline.job_ids if job_id in jobs)


def _ended(jobs: Mapping[str, Job]) -> Iterator[Job]:
    return (job for job in jobs.values() if job.done)


def _stops(pipeline: Pipeline, step: PipelineStep, jobs: Mapping[str, Job]) -> bool:
    """Return whether a job of this step ended without success, and that stops the pipeline."""
    if step.on_error is OnError.CONTINUE:
        return False
    ended = (jobs[job_id] for job_id in step.job_ids if job_id in jobs and job_id not in pipeline.reused)
    return any(job.done and job.state is not State.SUCCEEDED for job in ended)


def is_to_be_canceled(pipeline: Pipeline, job: Job) -> bool:
    """Return whether to cancel an open job: on the caller's cancel any, after a failure those not ordered yet."""
    if not pipeline.is_stopping or job.done or job.state is State.CANCELING:
        return False
    return pipeline.cancel_requested_at is not None or not job.attempts


def _supply(job: Job, jobs: Mapping[str, Job], now: float) -> Job:
    """Give a waiting job the outputs that are there. End it if one will never be."""
    for parent in job.parents:
        if parent.path not in job.awaits:
            continue
        maker = jobs.get(parent.job_id)
        if maker is not None and not maker.done:
            continue
        try:
            job = _pin(job, parent, maker)
        except NoSuchOutput as problem:
            error = ParentFailed(f"The input `{parent.path}` is missing: {problem}").body(job.request_id)
            return fail(replace(job, awaits={}), now, error, Outcome.NOT_SENT)
    if job.awaits:
        return job
    shift = max(0.0, now - job.created_at)
    eta_at = None if job.eta_at is None else job.eta_at + shift
    return replace(job, start_by=job.start_by + shift, eta_at=eta_at)


def _pin(job: Job, parent: Parent, maker: Job | None) -> Job:
    """Give a waiting job one output. Raise `NoSuchOutput` if it was not made or is of another kind."""
    if maker is None:
        raise NoSuchOutput(f"{parent.job_id} has been deleted.")
    if maker.state is not State.SUCCEEDED:
        raise NoSuchOutput(f"the step `{maker.step}` ({maker.id}) {describe_end(maker)}.")
    asset = find_output(maker, parent.output)
    file, kinds = refer_to(maker, asset), job.awaits[parent.path]
    if file.kind not in kinds:
        raise NoSuchOutput(f"output {parent.output} of {maker.id} is of kind {file.kind}, not {' or '.join(kinds)}.")
    if problem := contradiction(file, parent.declared):
        raise NoSuchOutput(problem)
    parents = tuple(replace(each, asset_id=asset.id) if each is parent else each for each in job.parents)
    awaits = {path: kinds for path, kinds in job.awaits.items() if path != parent.path}
    return take_file(replace(job, parents=parents, awaits=awaits), parent.path, file)


def _finish(pipeline: Pipeline, jobs: Mapping[str, Job], now: float) -> Pipeline:
    """End the pipeline: its cost is that of the jobs that it added."""
    own = [job for job in jobs.values() if job.id not in pipeline.reused]
    costs = [job.final for job in own]
    state = _outcome(pipeline, own)
    return replace(
        pipeline,
        state=state,
        finished_at=max([now, *(job.finished_at or now for job in own)]),
        expires_at=None if pipeline.retention is None else now + pipeline.retention,
        final=None if None in costs else sum(cost for cost in costs if cost is not None),
        error=_error(pipeline, jobs) if state is PipelineState.FAILED else None,
    )


def _outcome(pipeline: Pipeline, jobs: Sequence[Job]) -> PipelineState:
    states = {job.state for job in jobs}
    if states <= {State.SUCCEEDED}:
        return PipelineState.SUCCEEDED
    if pipeline.cancel_requested_at is not None or states <= {State.SUCCEEDED, State.CANCELED}:
        return PipelineState.CANCELED
    return PipelineState.FAILED


def _error(pipeline: Pipeline, jobs: Mapping[str, Job]) -> Mapping[str, Any]:
    """Return the error that names the failed steps. It has the code of the first, unless that only followed."""
    failed: list[tuple[PipelineStep, Job]] = []
    for step in pipeline.steps:
        found = (jobs[job_id] for job_id in step.job_ids if job_id in jobs)
        failed += [(step, job) for job in found if job.state in (State.FAILED, State.EXPIRED)]
    causes = [each for each in failed if (each[1].error or {}).get("code") != ParentFailed.code] or failed
    names = list(dict.fromkeys(step.name for step, _ in causes))
    first = causes[0][1].error or {}
    listed = ", ".join(f"`{name}`" for name in names)
    return {
        "message": f"{'Steps' if len(names) > 1 else 'Step'} {listed} failed: {first.get('message', '')}",
        "code": first.get("code"),
        "steps": names,
        "job_ids": [job.id for _, job in causes],
        "retryable": bool(first.get("retryable")),
    }

"""Jobs as tasks, as the two generations of the protocol write them."""

from typing import Any, Final

from penstock.domain.ids import timestamp
from penstock.domain.jobs import Job, State, poll_after_ms

MODERN_STATES: Final = {State.CANCELED: "cancelled"}
"""States of finished jobs that differ from `completed`. A failed job has a result, which is an error."""
HANDSHAKE_STATES: Final = {State.CANCELED: "cancelled", State.FAILED: "failed", State.EXPIRED: "failed"}
"""Such states in 2025-11-25, where a task fails if its result is an error."""
RELATED_TASK: Final = "io.modelcontextprotocol/related-task"
IMMEDIATE: Final = "io.modelcontextprotocol/model-immediate-response"


def describe_task(job: Job, now: float) -> dict[str, Any]:
    """Return a job as a task of the extension of 2026-07-28."""
    return _describe(job, MODERN_STATES) | {"ttlMs": _task_ttl(job), "pollIntervalMs": _poll_interval(job, now)}


def describe_handshake_task(job: Job, now: float) -> dict[str, Any]:
    """Return a job as a task of 2025-11-25."""
    return _describe(job, HANDSHAKE_STATES) | {"ttl": _task_ttl(job), "pollInterval": _poll_interval(job, now)}


def create_handshake_task(job: Job, now: float) -> dict[str, Any]:
    """Return the result of a call that 2025-11-25 answers with a task. Its text is for the agent's model."""
    said = f"The job {job.id} goes on as a task. Its result comes with job_status, too."
    return {"task": describe_handshake_task(job, now), "_meta": {IMMEDIATE: said}}


def _describe(job: Job, endings: dict[State, str]) -> dict[str, Any]:
    return {
        "taskId": job.id,
        "status": endings.get(job.state, "completed") if job.done else "working",
        "statusMessage": _say(job),
        "createdAt": timestamp(job.created_at),
        "lastUpdatedAt": timestamp(job.finished_at or max(job.created_at, job.started_at or 0.0)),
    }


def _say(job: Job) -> str:
    if not job.done:
        return f"The job is {job.state}: {job.progress:.0%}."
    return f"The job is {job.state}." if job.error is None else f"The job is {job.state}: {job.error['message']}"


def _poll_interval(job: Job, now: float) -> int:
    return poll_after_ms(job, now) or 1000


def _task_ttl(job: Job) -> int | None:
    """Return the milliseconds from a job's creation to its removal, at the latest while it is open."""
    if job.done:
        return None if job.expires_at is None else round((job.expires_at - job.created_at) * 1000)
    if job.retention is None:
        return None
    return round((job.start_by - job.created_at + job.run_seconds + job.retention) * 1000)

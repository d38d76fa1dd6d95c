"""A job as a request of fal."""

from collections.abc import Mapping
from typing import Any, Final

from penstock.domain.ids import timestamp
from penstock.domain.jobs import Job, State
from penstock.jobs.records import JobRecord, OutputShape, RecordBuilder
from penstock.vendor_api.generation import Kind, Role

OWNER: Final = "penstock"
"""The owner of every app: an app is a model."""
STATUSES: Final[Mapping[State, str]] = {
    State.QUEUED: "IN_QUEUE",
    State.RUNNING: "IN_PROGRESS",
    State.CANCELING: "IN_PROGRESS",
}
"""Of jobs that are not done. All others are `COMPLETED`."""
TRANSCRIPT: Final = "transcript"
NAMES: Final[Mapping[str, tuple[str, str]]] = {
    Kind.IMAGE: ("image", "images"),
    Kind.VIDEO: ("video", "videos"),
    Kind.MODEL: ("model_mesh", "model_meshes"),
    Kind.AUDIO: ("audio", "audios"),
    Kind.TEXT: (TRANSCRIPT, "transcripts"),
}
"""By kind: the field of one result, and that of several."""
FILTERED: Final = "content_filtered"


def urls_of(job: Job, scribe: RecordBuilder) -> dict[str, str]:
    """Return the links of a request. Clients that write them themselves know the first two parts of an app only."""
    app = job.model.partition("/")[0]
    url = f"{scribe.base_url}/fal/queue/{OWNER}/{app}/requests/{job.id}"
    return {"response_url": url, "status_url": f"{url}/status", "cancel_url": f"{url}/cancel"}


def write_status(job: Job, scribe: RecordBuilder, *, has_logs: bool = False) -> dict[str, Any]:
    """Return the status. Clients raise if `queue_position` or `logs` is missing."""
    status: dict[str, Any] = {
        "status": STATUSES.get(job.state, "COMPLETED"),
        "request_id": job.id,
        **urls_of(job, scribe),
    }
    if job.state is State.QUEUED:
        return {**status, "queue_position": scribe.job(job)["queue_position"] or 0}
    status["logs"] = _write_logs(job) if has_logs else []
    if job.done:
        status["metrics"] = _measure(job)
        if job.state is not State.SUCCEEDED:
            message, code = failure_of(job)
            status |= {"error": message, "error_type": code}
    return status


def failure_of(job: Job) -> tuple[str, str]:
    """Return the message and the code of a job that has not succeeded."""
    if job.error is None:
        return "The request was canceled.", "canceled"
    return job.error["message"], job.error["code"]


def write_failure(job: Job) -> dict[str, Any]:
    """Return the body that answers for the result of a job that has not succeeded."""
    message, code = failure_of(job)
    place = ["body", "prompt"] if code == FILTERED else ["body"]
    kind = "content_policy_violation" if code == FILTERED else code
    return {"detail": [{"loc": place, "msg": message, "type": kind}], "message": message, "error_type": kind}


def write_result(job: Job, scribe: RecordBuilder) -> dict[str, Any]:
    """Return the result, in the form that fal's models of this kind have."""
    record = scribe.job(job)
    results = [output for output in record["outputs"] if output["role"] == Role.PRIMARY]
    kind = results[0]["kind"] if results else Kind.IMAGE
    one, several = NAMES[kind]
    files = [_write_file(output) for output in results]
    found: dict[str, Any] = {several: files} if kind == Kind.IMAGE or len(files) > 1 else {}
    if kind != Kind.IMAGE:
        found[one] = files[0]
    return {**found, **_write_preview(record), **({} if job.seed is None else {"seed": job.seed})}


def _write_preview(record: JobRecord) -> dict[str, Any]:
    previews = [output for output in record["outputs"] if output["role"] == Role.PREVIEW]
    return {"rendered_image": _write_file(previews[0])} if previews else {}


def _write_file(output: OutputShape) -> dict[str, Any]:
    file: dict[str, Any] = {
        "url": output["url"],
        "content_type": output["content_type"],
        "file_name": output["url"].partition("?")[0].rpartition("/")[2],
        "file_size": output["bytes"],
    }
    size = {name: output[name] for name in ("width", "height") if output[name] is not None}
    return {**file, **size, **({} if output["duration_seconds"] is None else {"duration": output["duration_seconds"]})}


def _write_logs(job: Job) -> list[dict[str, Any]]:
    """Return the warnings and the progress."""
    moment = timestamp(job.finished_at or job.started_at or job.created_at)
    lines = [*job.warnings, f"{int(job.progress * 100)}% done"]
    return [{"message": line, "level": "INFO", "source": "USER", "timestamp": moment} for line in lines]


def _measure(job: Job) -> dict[str, float]:
    """Return the seconds that it ran."""
    if job.started_at is None or job.finished_at is None:
        return {}
    return {"inference_time": round(job.finished_at - job.started_at, 3)}


def write_message(job: Job, scribe: RecordBuilder) -> Mapping[str, Any]:
    """Return the message to a webhook."""
    message = {"request_id": job.id, "gateway_request_id": job.id}
    if job.state is State.SUCCEEDED:
        return {**message, "status": "OK", "payload": write_result(job, scribe)}
    return {**message, "status": "ERROR", "error": failure_of(job)[0], "payload": write_failure(job)}

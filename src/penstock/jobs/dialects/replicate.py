"""A job as a prediction of Replicate."""

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, cast

from penstock.catalog.params import as_object
from penstock.domain.jobs import Job, State
from penstock.jobs.records import JobRecord, OutputShape, RecordBuilder
from penstock.vendor_api.generation import Kind, Role

OWNER: Final = "penstock"
"""The owner of every model."""
STATUSES: Final[Mapping[State, str]] = {
    State.QUEUED: "starting",
    State.RUNNING: "processing",
    State.CANCELING: "processing",
    State.SUCCEEDED: "succeeded",
    State.FAILED: "failed",
    State.CANCELED: "canceled",
    State.EXPIRED: "failed",
}
"""Clients know these five statuses. Any other raises, or is polled for ever."""
_BAR_WIDTH: Final = 10


@lru_cache(1024)
def version_of(model: str) -> str:
    """Return the version of a model, by which it can be ordered too."""
    return hashlib.sha256(f"{OWNER}/{model}".encode()).hexdigest()


def write_prediction(job: Job, scribe: RecordBuilder) -> dict[str, Any]:
    """Return the prediction."""
    record = scribe.job(job)
    url = f"{scribe.base_url}/replicate/v1/predictions/{job.id}"
    return {
        "id": job.id,
        "model": f"{OWNER}/{job.model}",
        "version": version_of(job.model),
        "status": STATUSES[job.state],
        "input": _write_input(job, record),
        "output": write_output(results_of(record)) if job.state is State.SUCCEEDED else None,
        "logs": _write_logs(job),
        "error": None if job.error is None else f"{job.error['message']} ({job.error['code']})",
        "metrics": _measure(job),
        "source": "api",
        "data_removed": False,
        "created_at": record["created_at"],
        "started_at": record["started_at"],
        "completed_at": record["finished_at"],
        "urls": {"get": url, "cancel": f"{url}/cancel"},
    }


def not_done_yet(prediction: dict[str, Any]) -> dict[str, Any]:
    """Return a prediction that was waited for in vain. Clients take any status but `starting` for its end."""
    return {**prediction, "status": "starting"}


def results_of(record: JobRecord) -> list[OutputShape]:
    """Return the results proper, without previews."""
    return [output for output in record["outputs"] if output["role"] == Role.PRIMARY]


def write_output(results: list[OutputShape]) -> Any:
    """Return a list of links for pictures, and one link for a result of another kind."""
    links = [result["url"] for result in results]
    return links[0] if len(links) == 1 and results[0]["kind"] != Kind.IMAGE else links


def _write_input(job: Job, record: JobRecord) -> dict[str, Any]:
    """Return the params with a link in the place of each file."""
    found = dict(record["input"])
    paths: list[str] = [*(["file"] if "file" in job.params else []), *job.to_fetch, *job.files]
    for name in dict.fromkeys(path.partition(".")[0] for path in paths):
        given = found[name]
        found[name] = [_link(each) for each in cast("list[Any]", given)] if isinstance(given, list) else _link(given)
    return found


def _link(file: Any) -> Any:
    """Return the link of a file. A link that the caller gave is shown as given."""
    fields = as_object(file)
    return next((fields[name] for name in ("url", "preview_url", "file_token", "job") if name in fields), file)


def _write_logs(job: Job) -> str:
    """Return the warnings, and the progress in the form from which clients parse it."""
    lines = list(job.warnings)
    if job.started_at is not None:
        percent = int(job.progress * 100)
        bar = "#" * (percent * _BAR_WIDTH // 100)
        lines.append(f"{percent:3}%|{bar:<{_BAR_WIDTH}}| {percent}/100")
    return "".join(f"{line}\n" for line in lines)


def _measure(job: Job) -> dict[str, float]:
    """Return the seconds that it ran, and those since it was ordered."""
    if job.started_at is None or job.finished_at is None:
        return {}
    return {
        "predict_time": round(job.finished_at - job.started_at, 3),
        "total_time": round(job.finished_at - job.created_at, 3),
    }

"""A job as OpenAI's video object."""

from collections.abc import Mapping
from typing import Any, Final

from penstock.domain.jobs import Asset, Job, State
from penstock.vendor_api.generation import Role
from penstock.web.facades.measures import DURATION_NAMES, sizes_of
from penstock.web.facades.openai.failures import describe as describe_failure

STATES: Final[Mapping[State, str]] = {
    State.QUEUED: "queued",
    State.RUNNING: "in_progress",
    State.CANCELING: "in_progress",
    State.SUCCEEDED: "completed",
    State.FAILED: "failed",
    State.CANCELED: "failed",
    State.EXPIRED: "failed",
}
"""OpenAI has no state for a canceled video: the error's code says it."""


def find_film(job: Job) -> Asset | None:
    """Return the film that a job has made."""
    return next((asset for asset in job.outputs if asset.kind == "video" and asset.role == Role.PRIMARY), None)


def find_thumbnail(job: Job) -> Asset | None:
    """Return the preview picture of a film, if its model makes one."""
    return next((asset for asset in job.outputs if asset.kind == "image"), None)


def describe(job: Job) -> dict[str, Any]:
    """Return the video. What is not known yet is an empty text."""
    film, done = find_film(job), job.state is State.SUCCEEDED
    return {
        "id": job.id,
        "object": "video",
        "created_at": int(job.created_at),
        "completed_at": int(job.finished_at) if done and job.finished_at else None,
        "expires_at": None if job.expires_at is None else int(job.expires_at),
        "status": STATES[job.state],
        "model": job.model,
        "progress": 100 if done else int(job.progress * 100),
        "seconds": _seconds(job, film),
        "size": _size(job, film),
        "prompt": job.params.get("prompt"),
        "remixed_from_video_id": next((parent.job_id for parent in job.parents if parent.path == "video"), None),
        "error": describe_failure(job),
    }


def _seconds(job: Job, film: Asset | None) -> str:
    """Return the length that was asked for, else that of the film."""
    asked = next((value for name in DURATION_NAMES if (value := job.params.get(name)) is not None), None)
    if asked is None:
        asked = None if film is None else film.duration_seconds
    return f"{asked:g}" if isinstance(asked, int | float) else (asked or "").removesuffix("s")


def _size(job: Job, film: Asset | None) -> str:
    """Return the size of the film, else the one that was asked for."""
    if film is not None and film.width:
        return f"{film.width}x{film.height}"
    return next(sizes_of(job.params), "")

"""The errors of jobs as OpenAI's clients read them: as the answer of a held request, or inside a video."""

from collections.abc import Mapping
from typing import Any, Final

from penstock.domain.jobs import Job, State
from penstock.errors import InternalError, InvalidRequest, PenstockError, StillRunning, VendorFailed, VendorTimeout

FILTERED: Final = "content_filtered"
MODERATION: Final = "moderation_blocked"
"""OpenAI's code of a result that a filter held back."""
CANCELED: Final = "job_canceled"
ANSWERS: Final[Mapping[str, type[PenstockError]]] = {
    FILTERED: InvalidRequest,
    "file_fetch_failed": InvalidRequest,
    "file_unreadable": InvalidRequest,
    "url_not_allowed": InvalidRequest,
    "upstream_rejected": InvalidRequest,
    "parent_failed": InvalidRequest,
    "start_timeout": VendorTimeout,
    "run_timeout": VendorTimeout,
    "internal_error": InternalError,
}
"""By the code of a job's error: the kind of answer, and with it the status. All others are the vendor's failures."""


def describe(job: Job) -> dict[str, Any] | None:
    """Return code and message of a job that ended without a result."""
    if not job.done or job.state is State.SUCCEEDED:
        return None
    if job.state is State.CANCELED:
        return {"code": CANCELED, "message": "The job was canceled."}
    error = job.error or {}
    code = error.get("code") or InternalError.code
    return {"code": MODERATION if code == FILTERED else code, "message": error.get("message") or "The job failed."}


def answer_of(job: Job) -> PenstockError:
    """Return the error to answer for a job that ended without a result.

    Clients must not send it again by themselves: they would only find the same job.
    """
    found, error = describe(job) or {}, job.error or {}
    kind = InvalidRequest if job.state is State.CANCELED else ANSWERS.get(error.get("code") or "", VendorFailed)
    answer = kind(
        found.get("message"),
        code=found.get("code"),
        suggestion=error.get("suggestion"),
        headers={"x-should-retry": "false"},
    )
    answer.retryable = bool(error.get("retryable"))
    answer.charged = job.charged
    answer.job_id = job.id
    return answer


def still_running(job: Job) -> StillRunning:
    """Return the error of a request that was held for as long as it may be."""
    answer = StillRunning(
        f"The job {job.id} goes on, but this connection cannot be held any longer.",
        suggestion=f"Send the same request again to wait for it, or read GET /api/v1/jobs/{job.id}.",
        retry_after=1,
    )
    answer.job_id = job.id
    return answer

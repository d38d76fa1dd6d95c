"""Errors of jobs: shown in a job's `error`, never as an HTTP status.

JobError
├── FileFetchFailed, FileUnreadable, UrlNotAllowed, ParentFailed            the input
├── UpstreamRejected, UpstreamAuth, UpstreamUnavailable                     the order
├── UpstreamOutcomeUnknown, UpstreamError, ContentFiltered, BadOutput       the result
└── StartTimeout, RunTimeout, JobCrashed (internal_error)                   the time, and ourselves
"""

from collections.abc import Mapping
from typing import Any

from penstock.errors import PenstockError


class JobError(PenstockError):
    """The job failed."""

    type = "job_error"
    stage: str = "generating"

    def __init__(
        self,
        message: str | None = None,
        *,
        stage: str | None = None,
        retryable: bool | None = None,
        upstream: Mapping[str, str | None] | None = None,
        **rest: Any,
    ) -> None:
        super().__init__(message, **rest)
        self.stage = stage or type(self).stage
        if retryable is not None:
            self.retryable = retryable
        self.upstream = dict(upstream) if upstream else None

    def body(self, request_id: str | None = None) -> dict[str, Any]:
        """Return the error shape with the job's stage and the vendor's reason."""
        return super().body(request_id) | {"stage": self.stage, "upstream": self.upstream}


class FileFetchFailed(JobError):
    """The input file could not be fetched."""

    stage = "fetching"
    retryable = True


class FileUnreadable(JobError):
    """The input file is not a readable image of an accepted kind and size."""

    stage = "fetching"


class UrlNotAllowed(JobError):
    """The URL may not be fetched from here."""

    stage = "fetching"


class ContentFiltered(JobError):
    """The vendor's content filter held the result back."""


class UpstreamRejected(JobError):
    """The vendor refused the request."""

    stage = "dispatching"


class UpstreamAuth(JobError):
    """The vendor rejected the gateway's own credential. The operator has been notified."""

    stage = "dispatching"


class UpstreamUnavailable(JobError):
    """The vendor could not be reached. Nothing was submitted."""

    stage = "dispatching"
    retryable = True


class UpstreamOutcomeUnknown(JobError):
    """The vendor's answer was lost and it cannot be asked whether the job was accepted."""

    stage = "reconciling"
    charged = None


class UpstreamError(JobError):
    """The vendor failed to generate."""

    retryable = True


class BadOutput(JobError):
    """The vendor's output could not be opened or is not what was asked for."""

    stage = "storing"
    retryable = True


class ParentFailed(JobError):
    """A job of the pipeline did not make the output that this one needs."""

    stage = "waiting"


class StartTimeout(JobError):
    """The job did not start in time."""

    stage = "queued"
    retryable = True


class RunTimeout(JobError):
    """The job did not finish in time."""

    retryable = True


class JobCrashed(JobError):
    """Something went wrong inside the gateway while it worked on the job."""

    code = "internal_error"
    retryable = True

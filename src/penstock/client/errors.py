"""Exceptions of the client, as one tree.

PenstockClientError
├── ApiError                    the server refused
│   ├── InvalidRequestError     400, and every 4xx that is not below
│   ├── AuthenticationError     401
│   ├── BudgetError             402
│   ├── PermissionDeniedError   403
│   ├── NotFoundError           404
│   ├── ConflictError           409
│   ├── GoneError               410
│   ├── LimitError              429
│   └── ServerError             5xx
├── ConnectionFailed            no answer after all retries
├── UnexpectedAnswer            an answer that is not Penstock's
├── WaitTimeout                 the wait is over, while the job continues
├── JobFailed                   the job is over and has no result
│   ├── JobCanceled
│   └── JobExpired
├── PipelineFailed              the pipeline failed or was canceled
├── DownloadFailed              the bytes received are not those of the output
├── BadInput                    an argument that cannot be sent
└── MissingExtra                an optional package is not installed
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from penstock.client.transport.steps import Reply

if TYPE_CHECKING:  # records raise these errors themselves
    from penstock.client.records import Awaited, JobRecord, PipelineRecord


class PenstockClientError(Exception):
    """Base class of the client's exceptions."""

    @property
    def message(self) -> str:
        """The error as one sentence for people."""
        return str(self.args[0]) if self.args else ""

    def __reduce__(self) -> tuple[Any, ...]:
        return _revive, (type(self), self.args, self.__dict__)


def _revive(kind: type[PenstockClientError], args: tuple[Any, ...], state: Mapping[str, Any]) -> PenstockClientError:
    """Rebuild an unpickled error."""
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


@dataclass(frozen=True, slots=True)
class Detail:
    """One invalid field of a request."""

    loc: str
    message: str
    code: str


class ErrorFields:
    """Reader of the `error` object of a request or a job."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.fields = fields

    def text(self, name: str) -> str | None:
        """Return a field if it is text, else None."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else None

    def flag(self, name: str) -> bool | None:
        """Return a field if it is a boolean, else None."""
        value = self.fields.get(name)
        return value if isinstance(value, bool) else None

    def details(self) -> tuple[Detail, ...]:
        """Return all invalid fields."""
        found = self.fields.get("details")
        rows = cast("list[Any]", found) if isinstance(found, list) else []
        mappings = [cast("Mapping[str, Any]", row) for row in rows if isinstance(row, Mapping)]
        return tuple(Detail(*(str(row.get(name, "")) for name in ("loc", "message", "code"))) for row in mappings)


class DescribedError(PenstockClientError):
    """An error with the fields of the API's `error` object, such as `code`, `param` and `suggestion`."""

    def __init__(self, message: str, fields: Mapping[str, Any]) -> None:
        super().__init__(message)
        known = ErrorFields(fields)
        self.fields: Mapping[str, Any] = fields
        """The whole `error` object, with extra fields such as a budget's `spent` and `cap`."""
        self.code = known.text("code")
        self.type = known.text("type")
        self.param = known.text("param")
        self.details = known.details()
        self.retryable = known.flag("retryable")
        self.charged = known.flag("charged")
        self.suggestion = known.text("suggestion")
        self.request_id = known.text("request_id")

    def __str__(self) -> str:
        parts = [self.message, self.suggestion or ""]
        if self.request_id:
            parts.append(f"({self.request_id})")
        return " ".join(filter(None, parts))


class ApiError(DescribedError):
    """The server refused a request. `status` is the HTTP status, `code` the error code."""

    def __init__(self, reply: Reply, fields: Mapping[str, Any], retry_after: float | None = None) -> None:
        known = ErrorFields(fields).text("message") or f"The server answered with status {reply.status}."
        super().__init__(known, fields)
        self.status = reply.status
        self.headers = reply.headers
        self.retry_after = retry_after
        """Seconds that the server asks to wait before a retry, or None."""
        self.request_id = self.request_id or reply.headers.get("x-request-id")


class InvalidRequestError(ApiError):
    """The request is invalid. `param` and `details` name the fields."""


class AuthenticationError(ApiError):
    """The key is missing, wrong, expired or revoked."""


class BudgetError(ApiError):
    """The budget of the key or account is used up."""


class PermissionDeniedError(ApiError):
    """The key is not allowed to do this."""


class NotFoundError(ApiError):
    """The account has no such job, file, model or webhook."""


class ConflictError(ApiError):
    """The request conflicts with the current state."""


class GoneError(ApiError):
    """The resource existed and has been deleted."""


class LimitError(ApiError):
    """A rate limit or concurrency limit is exceeded. `retry_after` says when to retry."""


class ServerError(ApiError):
    """The server failed or is unavailable."""


BY_STATUS: Mapping[int, type[ApiError]] = {
    401: AuthenticationError,
    402: BudgetError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    429: LimitError,
}


def refusal(reply: Reply, retry_after: float | None = None) -> ApiError:
    """Return the exception for an error answer, even if a proxy wrote it."""
    usual = ServerError if reply.status >= 500 else InvalidRequestError
    return BY_STATUS.get(reply.status, usual)(reply, error_fields(reply.body), retry_after)


def error_fields(body: bytes) -> Mapping[str, Any]:
    """Return the `error` object of a body. It is empty if a proxy or another server answered."""
    try:
        known = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        return {}
    return cast("Mapping[str, Any]", known) if isinstance(known, Mapping) else {}


class ConnectionFailed(PenstockClientError):
    """No answer after all retries. `sent` is true if the request may have arrived."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class UnexpectedAnswer(PenstockClientError):
    """An answer that is not Penstock's. Check the address."""


class WaitTimeout(PenstockClientError, TimeoutError):
    """The job or pipeline was not done in time. It continues. `record` is its last known state; `job` too, of a job."""

    def __init__(self, message: str, record: "Awaited") -> None:
        super().__init__(message)
        self.record = record

    @property
    def job(self) -> "JobRecord":
        """The job's last known state. It is `record`, for programs that wait for jobs only."""
        return cast("JobRecord", self.record)


class JobFailed(DescribedError):
    """The job ended without a result. `job` is its record, `stage` the stage that failed."""

    def __init__(self, job: "JobRecord") -> None:
        known: Mapping[str, Any] = {} if job.error is None else job.error.raw
        why = ErrorFields(known).text("message") or f"It ended as {job.status}."
        super().__init__(f"{job.id}: {why}", known)
        self.job = job
        self.stage = ErrorFields(known).text("stage")


class JobCanceled(JobFailed):
    """The job was canceled."""


class JobExpired(JobFailed):
    """The job exceeded its `start_timeout` or `run_timeout`."""


def job_failure(job: "JobRecord") -> JobFailed:
    """Return the exception for a job that ended without a result."""
    return {"canceled": JobCanceled, "expired": JobExpired}.get(job.status, JobFailed)(job)


class PipelineFailed(DescribedError):
    """The pipeline failed or was canceled. `pipeline` is its record, `steps` the names of the steps that failed."""

    def __init__(self, pipeline: "PipelineRecord") -> None:
        known: Mapping[str, Any] = {} if pipeline.error is None else pipeline.error.raw
        why = ErrorFields(known).text("message") or f"It ended as {pipeline.status}."
        super().__init__(f"{pipeline.id}: {why}", known)
        self.pipeline = pipeline
        self.steps: tuple[str, ...] = () if pipeline.error is None else pipeline.error.steps


class DownloadFailed(PenstockClientError):
    """The bytes received are not those of the stored output."""


class BadInput(PenstockClientError, ValueError):
    """An argument cannot be sent, such as an unreadable file."""


class MissingExtra(PenstockClientError, ImportError):
    """An optional package is not installed."""

"""Everything that the client raises, as one tree.

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
├── ConnectionFailed            no answer, after all retries
├── UnexpectedAnswer            an answer that is not Penstock's
├── WaitTimeout                 the caller stops waiting; the job goes on
├── JobFailed                   the job is over and has no result
│   ├── JobCanceled
│   └── JobExpired
├── DownloadFailed              what came is not what was stored
├── BadInput                    something that was given cannot be sent
└── MissingExtra                an optional package is not installed
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from penstock.client.transport.steps import Reply

if TYPE_CHECKING:  # records raise these errors themselves
    from penstock.client.records import JobRecord


class PenstockClientError(Exception):
    """The root of all that the client raises."""

    @property
    def message(self) -> str:
        """One sentence for people."""
        return str(self.args[0]) if self.args else ""

    def __reduce__(self) -> tuple[Any, ...]:
        return _revive, (type(self), self.args, self.__dict__)


def _revive(kind: type[PenstockClientError], args: tuple[Any, ...], state: Mapping[str, Any]) -> PenstockClientError:
    """An error as it was in another process."""
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


@dataclass(frozen=True, slots=True)
class Detail:
    """One field at fault."""

    loc: str
    message: str
    code: str


class ErrorFields:
    """What the error shape tells, of a request or of a job."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.fields = fields

    def text(self, name: str) -> str | None:
        """A field that is text, or null."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else None

    def flag(self, name: str) -> bool | None:
        """A field that is true, false or not known."""
        value = self.fields.get(name)
        return value if isinstance(value, bool) else None

    def details(self) -> tuple[Detail, ...]:
        """Every field at fault."""
        found = self.fields.get("details")
        rows = cast("list[Any]", found) if isinstance(found, list) else []
        mappings = [cast("Mapping[str, Any]", row) for row in rows if isinstance(row, Mapping)]
        return tuple(Detail(*(str(row.get(name, "")) for name in ("loc", "message", "code"))) for row in mappings)


class TellingError(PenstockClientError):
    """An error with the fields of the one error shape."""

    def __init__(self, message: str, fields: Mapping[str, Any]) -> None:
        super().__init__(message)
        told = ErrorFields(fields)
        self.fields: Mapping[str, Any] = fields
        """The whole `error` object as it came, such as `spent` and `cap` of a budget."""
        self.code = told.text("code")
        self.type = told.text("type")
        self.param = told.text("param")
        self.details = told.details()
        self.retryable = told.flag("retryable")
        self.charged = told.flag("charged")
        self.suggestion = told.text("suggestion")
        self.request_id = told.text("request_id")

    def __str__(self) -> str:
        parts = [self.message, self.suggestion or ""]
        if self.request_id:
            parts.append(f"({self.request_id})")
        return " ".join(filter(None, parts))


class ApiError(TellingError):
    """The server refused a request."""

    def __init__(self, reply: Reply, fields: Mapping[str, Any], retry_after: float | None = None) -> None:
        told = ErrorFields(fields).text("message") or f"The server answered with status {reply.status}."
        super().__init__(told, fields)
        self.status = reply.status
        self.headers = reply.headers
        self.retry_after = retry_after
        """Seconds after which the server wants to be asked again, where it says so."""
        self.request_id = self.request_id or reply.headers.get("x-request-id")


class InvalidRequestError(ApiError):
    """Something in the request is wrong."""


class AuthenticationError(ApiError):
    """The key is missing, wrong, expired or revoked."""


class BudgetError(ApiError):
    """A budget does not suffice."""


class PermissionDeniedError(ApiError):
    """The key may not do this."""


class NotFoundError(ApiError):
    """There is no such thing in this account."""


class ConflictError(ApiError):
    """It contradicts what is there."""


class GoneError(ApiError):
    """It was there and is no more."""


class LimitError(ApiError):
    """Too much at once."""


class ServerError(ApiError):
    """The server cannot do it now."""


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
    """The error that an answer is, whoever wrote its body."""
    usual = ServerError if reply.status >= 500 else InvalidRequestError
    return BY_STATUS.get(reply.status, usual)(reply, error_fields(reply.body), retry_after)


def error_fields(body: bytes) -> Mapping[str, Any]:
    """The `error` object of a body; empty where a proxy or another server answered."""
    try:
        told = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        return {}
    return cast("Mapping[str, Any]", told) if isinstance(told, Mapping) else {}


class ConnectionFailed(PenstockClientError):
    """No answer came. `sent` tells whether the request may have arrived."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class UnexpectedAnswer(PenstockClientError):
    """A success that is not Penstock's: the address may lead to something else."""


class WaitTimeout(PenstockClientError, TimeoutError):
    """The job was not done in time. It goes on: `job` is how it stood."""

    def __init__(self, message: str, job: "JobRecord") -> None:
        super().__init__(message)
        self.job = job


class JobFailed(TellingError):
    """The job is over and has no result; `job` is its record."""

    def __init__(self, job: "JobRecord") -> None:
        told: Mapping[str, Any] = {} if job.error is None else job.error.raw
        why = ErrorFields(told).text("message") or f"It ended as {job.status}."
        super().__init__(f"{job.id}: {why}", told)
        self.job = job
        self.stage = ErrorFields(told).text("stage")


class JobCanceled(JobFailed):
    """The job was stopped."""


class JobExpired(JobFailed):
    """`start_timeout` or `run_timeout` passed."""


def job_failure(job: "JobRecord") -> JobFailed:
    """The error that a job's end is."""
    return {"canceled": JobCanceled, "expired": JobExpired}.get(job.status, JobFailed)(job)


class DownloadFailed(PenstockClientError):
    """What came is not what was stored."""


class BadInput(PenstockClientError, ValueError):
    """Something that was given cannot be sent."""


class MissingExtra(PenstockClientError, ImportError):
    """An optional package is not installed."""

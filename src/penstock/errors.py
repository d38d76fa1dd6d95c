"""All errors of the gateway, each with its code, its HTTP status and whether a retry can help.

PenstockError
├── InvalidRequest 400     invalid_params or, by `code`: invalid_json, invalid_http, unknown_param, model_mismatch,
│   │                      missing_required_parameter, url_not_allowed, file_unreadable; in chat, OpenAI's own codes
│   └── ContentRefused, InputNotReady
├── MissingApiKey 401
│   └── InvalidApiKey ── ExpiredApiKey, RevokedApiKey
├── InsufficientBudget 402
├── ModelNotAllowed 403, ScopeNotAllowed 403, OriginNotAllowed 403, StorageQuotaExceeded 403, RoleNotAllowed 403
├── NotFound 404 ── ModelNotFound, JobNotFound, FileNotFound, AssetNotFound, WebhookNotFound, DeliveryNotFound,
│                   ShareNotFound, ResponseNotFound, PipelineNotFound, TemplateNotFound,
│                   UploadNotFound, ContentNotFound; for administrators
│                   AccountNotFound, KeyNotFound, BudgetNotFound, EntryNotFound, PersonNotFound,
│                   SettingNotFound, PriceNotFound
├── MethodNotAllowed 405, RequestTimeout 408
├── IdempotencyInProgress 409, JobNotFinished 409, TooManyWebhooks 409, WebhookDisabled 409
├── JobNotShareable 409, TooManyShares 409, PipelineNotFinished 409, TooManyTemplates 409
├── AccountExists 409, AccountClosed 409, KeyNotRotatable 409, EntryConflict 409, PersonExists 409,
│   KeyPolicyExceeded 409, SettingsConflict 409, SettingFromFile 409, PricesChanged 409,
│   TooManyPrices 409
├── Gone 410 (job_expired) ── JobDeleted, AssetExpired, UploadExpired
├── TusVersionNotSupported 412, UploadOffsetConflict 409, UploadLocked 423
├── BodyTooLarge 413, UnsupportedMediaType 415, RangeNotSatisfiable 416
├── IdempotencyKeyMismatch 422
├── QueueFull 429, TooManyStreams 429, TooManyUploads 429, ConcurrencyLimited 429, TooManyPings 429
├── RateLimited 429 ── ChatRateLimited (rate_limit_exceeded)
├── HeadersTooLarge 431
├── InternalError 500, StoreUnavailable 503, SecretsUnavailable 503, Overloaded 503, GuardrailUnavailable 503,
│   StillRunning 504
├── VendorFailed, VendorAnswerLost 502 (upstream_error), VendorRefusedUs 502 (upstream_auth), VendorTimeout 504
├── SignInFailed and others of sign-in: domain/people/sign_in_errors.py
└── JobError               shown in a job's `error`, never as an HTTP status: domain/job_errors.py

A class's docstring is its default message; its name, in snake case, is its code unless it says otherwise.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class Detail:
    """One problem of one field."""

    loc: str
    message: str
    code: str = "invalid_params"


class PenstockError(Exception):
    """Something went wrong."""

    code: str = "internal_error"
    status: ClassVar[int] = 500
    type: ClassVar[str] = "server_error"
    retryable: bool = False
    charged: bool | None = False
    """None: unknown, as the vendor's reply was lost."""
    suggestion: str | None = None
    """Advice for the caller: the usual one, unless an error brings its own."""
    job_id: str | None = None
    """The job that the error is about, for callers who only know their request."""
    reply: tuple[int, Mapping[str, str], bytes] | None = None
    """Status, headers and body of a vendor's own error, for a caller of the vendor's dialect."""

    def __init_subclass__(cls) -> None:
        if "code" not in vars(cls):
            cls.code = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    def __init__(
        self,
        message: str | None = None,
        *,
        code: str | None = None,
        param: str | None = None,
        details: Sequence[Detail] = (),
        suggestion: str | None = None,
        retry_after: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.message = message or (type(self).__doc__ or "").strip()
        self.code = type(self).code if code is None else code  # "": none, as OpenAI's own errors may have
        self.param = param
        self.details = tuple(details)
        if suggestion is not None:
            self.suggestion = suggestion
        self.retry_after = retry_after
        self.headers = dict(headers or {})
        super().__init__(self.message)

    def body(self, request_id: str | None = None) -> dict[str, Any]:
        """Return the error shape of all responses."""
        return {
            "message": self.message,
            "type": self.type,
            "code": self.code or None,
            "param": self.param,
            "details": [{"loc": d.loc, "message": d.message, "code": d.code} for d in self.details],
            "retryable": self.retryable,
            "charged": self.charged,
            "suggestion": self.suggestion,
            "request_id": request_id,
            **({} if self.job_id is None else {"job_id": self.job_id}),
        }


# -- errors of the request


class InvalidRequest(PenstockError):
    """The request is not valid."""

    code = "invalid_params"
    status = 400
    type = "invalid_request_error"


class ContentRefused(InvalidRequest):
    """The request was refused for its content."""

    code = "content_refused"
    suggestion = "Change the request: sent as it is, it is refused again."

    def __init__(self, reason: str, guardrail: str) -> None:
        super().__init__(f"The request was refused: {reason.rstrip('.')}.")
        self.reason = reason
        self.guardrail = guardrail

    def body(self, request_id: str | None = None) -> dict[str, Any]:
        """Return the error shape with the reason and the guardrail's name."""
        return super().body(request_id) | {"reason": self.reason, "guardrail": self.guardrail}


class InputNotReady(InvalidRequest):
    """A job named as an input has not succeeded."""

    code = "input_not_ready"


class MissingApiKey(PenstockError):
    """You didn't provide an API key. Send the header `Authorization: Bearer psk_…` or `x-api-key: psk_…`."""

    status = 401
    type = "invalid_request_error"  # chat clients tell a wrong key by this type and the words of the message


class InvalidApiKey(MissingApiKey):
    """Incorrect API key provided: it is not known here."""


class ExpiredApiKey(InvalidApiKey):
    """Incorrect API key provided: it has expired."""


class RevokedApiKey(InvalidApiKey):
    """Incorrect API key provided: it was revoked."""


class InsufficientBudget(PenstockError):
    """The budget does not suffice."""

    status = 402
    type = "insufficient_quota"  # as chat clients know it

    def __init__(self, message: str | None = None, *, facts: Mapping[str, Any] | None = None, **options: Any) -> None:
        super().__init__(message, **options)
        self.facts = dict(facts or {})
        """Amounts spent, held and allowed, and the reset time of the budget."""

    def body(self, request_id: str | None = None) -> dict[str, Any]:
        """Return the error shape with the facts of the budget."""
        return super().body(request_id) | self.facts


class ModelNotAllowed(PenstockError):
    """This API key may not use this model."""

    status = 403
    type = "permission_error"


class ScopeNotAllowed(PenstockError):
    """This API key may not use this endpoint."""

    status = 403
    type = "permission_error"


class RoleNotAllowed(PenstockError):
    """Your role does not allow this."""

    status = 403
    type = "permission_error"
    suggestion = "Ask an owner or administrator of the account."


class OriginNotAllowed(PenstockError):
    """Pages of this origin may not use this endpoint."""

    status = 403
    type = "permission_error"
    suggestion = "Serve the page from this machine or from `server.public_url`, or call from a program."


class StorageQuotaExceeded(PenstockError):
    """The account keeps as many bytes of files and results as it may."""

    status = 403
    type = "insufficient_quota"
    suggestion = (
        "Delete uploads (DELETE /api/v1/files/{token}) or finished jobs (DELETE /api/v1/jobs/{id}), or ask for a "
        "larger quota."
    )


class NotFound(PenstockError):
    """There is nothing at this path."""

    status = 404
    type = "not_found_error"


class ModelNotFound(NotFound):
    """There is no such model."""

    type = "invalid_request_error"  # as chat clients know it


class JobNotFound(NotFound):
    """There is no such job."""

    suggestion = "List your jobs with GET /api/v1/jobs."


class FileNotFound(NotFound):
    """There is no such file."""

    suggestion = "Upload it again with POST /api/v1/files."


class UploadNotFound(NotFound):
    """There is no such upload."""

    suggestion = "Start a new one with POST /api/v1/files/tus."


class AssetNotFound(NotFound):
    """There is no such asset."""


class WebhookNotFound(NotFound):
    """There is no such webhook."""

    suggestion = "List yours with GET /api/v1/webhooks."


class DeliveryNotFound(NotFound):
    """There is no such delivery."""

    suggestion = "List yours with GET /api/v1/webhooks/deliveries."


class ShareNotFound(NotFound):
    """There is no such share link, or it has expired or was revoked."""

    suggestion = "List yours with GET /api/v1/shares."


class PipelineNotFound(NotFound):
    """There is no such pipeline."""

    suggestion = "List yours with GET /api/v1/pipelines."


class TemplateNotFound(NotFound):
    """There is no such pipeline template."""

    suggestion = "List yours with GET /api/v1/pipelines/templates."


class ResponseNotFound(NotFound):
    """There is no such response, or it is not kept any more."""

    type = "invalid_request_error"  # as chat clients know it


class ContentNotFound(NotFound):
    """There is no such record in the content log, or it is not kept any more."""


class AccountNotFound(NotFound):
    """There is no such account."""


class KeyNotFound(NotFound):
    """There is no such key."""


class BudgetNotFound(NotFound):
    """There is no budget for this period."""


class PersonNotFound(NotFound):
    """There is no such person."""


class SettingNotFound(NotFound):
    """There is no such vendor, model or version among the run-time settings."""


class PriceNotFound(NotFound):
    """There is no such price."""

    suggestion = "`penstock prices list` and GET /admin/v1/prices list them."


class EntryNotFound(NotFound):
    """The ledger knows nothing of this job or completion."""


class MethodNotAllowed(PenstockError):
    """This path does not take this method."""

    status = 405
    type = "invalid_request_error"


class RequestTimeout(PenstockError):
    """The request's body did not arrive in time. Send it again."""

    status = 408
    type = "invalid_request_error"
    retryable = True


class IdempotencyInProgress(PenstockError):
    """A request with this Idempotency-Key is still being accepted."""

    status = 409
    type = "conflict_error"
    retryable = True


class JobNotFinished(PenstockError):
    """The job is not finished. Cancel it first."""

    status = 409
    type = "conflict_error"


class PipelineNotFinished(PenstockError):
    """The pipeline has not ended yet."""

    status = 409
    type = "conflict_error"
    suggestion = "Cancel it, or wait until it has ended."


class UploadOffsetConflict(PenstockError):
    """The upload has another number of bytes than `Upload-Offset` says."""

    status = 409
    type = "conflict_error"
    suggestion = "HEAD of the upload returns its offset. Continue there."


class TooManyTemplates(PenstockError):
    """The account has as many pipeline templates as it may have."""

    status = 409
    type = "conflict_error"


class TooManyWebhooks(PenstockError):
    """The account has as many webhooks as it may have."""

    status = 409
    type = "conflict_error"


class WebhookDisabled(PenstockError):
    """The webhook is disabled: nothing is sent to it."""

    status = 409
    type = "conflict_error"
    suggestion = 'Enable it first: PATCH /api/v1/webhooks/{id} with {"disabled": false}.'


class JobNotShareable(PenstockError):
    """Only a job that has succeeded can be shared."""

    status = 409
    type = "conflict_error"


class TooManyShares(PenstockError):
    """The account has as many share links as it may have."""

    status = 409
    type = "conflict_error"
    suggestion = "Revoke some with DELETE /api/v1/shares/{id}, or wait until some have expired."


class AccountExists(PenstockError):
    """There is an account of this name already."""

    status = 409
    type = "conflict_error"


class AccountClosed(PenstockError):
    """The account is closed."""

    status = 409
    type = "conflict_error"


class KeyNotRotatable(PenstockError):
    """Only a key that works can be rotated."""

    status = 409
    type = "conflict_error"


class PersonExists(PenstockError):
    """There is a person with this e-mail address already."""

    status = 409
    type = "conflict_error"


class SettingsConflict(PenstockError):
    """The settings were changed meanwhile. Read them again, and repeat the change on the new version."""

    status = 409
    type = "conflict_error"


class KeyPolicyExceeded(PenstockError):
    """The account's limits for keys of its people do not allow this."""

    status = 409
    type = "conflict_error"


class SettingFromFile(PenstockError):
    """This is set in the settings file of the server, and can only be changed there."""

    status = 409
    type = "conflict_error"


class PricesChanged(PenstockError):
    """The prices were changed since you saw them."""

    status = 409
    type = "conflict_error"
    suggestion = "Nothing was written. Look at the differences again."


class TooManyPrices(PenstockError):
    """The store has as many prices as it may have."""

    status = 409
    type = "conflict_error"
    suggestion = "Write lasting prices in the settings file."


class EntryConflict(PenstockError):
    """The ledger has another ending for this already."""

    status = 409
    type = "conflict_error"


class Gone(PenstockError):
    """The job is past its retention; its params, outputs and files are removed."""

    code = "job_expired"
    status = 410
    type = "gone_error"


class JobDeleted(Gone):
    """The job was deleted."""


class AssetExpired(Gone):
    """The asset is past its retention, or the link has expired. Get the job again for a new link."""


class UploadExpired(Gone):
    """The upload has expired."""

    suggestion = "Start a new one with POST /api/v1/files/tus."


class BodyTooLarge(PenstockError):
    """The request's body is too large."""

    status = 413
    type = "invalid_request_error"


class UnsupportedMediaType(PenstockError):
    """This endpoint does not take this media type."""

    status = 415
    type = "invalid_request_error"


class RangeNotSatisfiable(PenstockError):
    """The asked range lies outside the file."""

    status = 416
    type = "invalid_request_error"


class TusVersionNotSupported(PenstockError):
    """The request does not speak version 1.0.0 of tus."""

    status = 412
    type = "invalid_request_error"
    suggestion = "Send the header `Tus-Resumable: 1.0.0`."


class UploadLocked(PenstockError):
    """Another request is sending bytes of this upload."""

    status = 423
    type = "conflict_error"
    retryable = True


class IdempotencyKeyMismatch(PenstockError):
    """This Idempotency-Key was used with another body."""

    status = 422
    type = "invalid_request_error"


class QueueFull(PenstockError):
    """Too many jobs are waiting."""

    status = 429
    type = "rate_limit_error"
    retryable = True


class TooManyStreams(PenstockError):
    """Too many streams are open."""

    status = 429
    type = "rate_limit_error"
    retryable = True


class TooManyUploads(PenstockError):
    """Too many files are sent at once."""

    status = 429
    type = "rate_limit_error"
    retryable = True


class ConcurrencyLimited(PenstockError):
    """Too many jobs are open at once."""

    status = 429
    type = "rate_limit_error"
    retryable = True
    suggestion = "Wait until one ends, or cancel one with POST /api/v1/jobs/{job_id}/cancel."

    def __init__(
        self, message: str | None = None, *, limit: int | None = None, remaining: int = 0, **options: Any
    ) -> None:
        super().__init__(message, **options)
        if limit is not None:
            self.headers |= open_job_headers(limit, remaining)


def open_job_headers(limit: int, remaining: int) -> dict[str, str]:
    """Return the headers of a limit on open jobs: sent with every accepted job, and with a ConcurrencyLimited."""
    return {"x-ratelimit-limit-jobs": str(limit), "x-ratelimit-remaining-jobs": str(remaining)}


class TooManyPings(PenstockError):
    """Too many pings of this account are under way."""

    status = 429
    type = "rate_limit_error"
    retryable = True


class RateLimited(PenstockError):
    """Too many requests."""

    status = 429
    type = "rate_limit_error"
    retryable = True


class ChatRateLimited(RateLimited):
    """Too many requests, or too many tokens."""

    code = "rate_limit_exceeded"  # as chat clients know it


class HeadersTooLarge(PenstockError):
    """The request line and headers together are larger than the 65536 bytes allowed."""

    status = 431
    type = "invalid_request_error"


# -- errors of the gateway


class InternalError(PenstockError):
    """Something went wrong inside the gateway. It is logged under this request id."""

    status = 500
    retryable = True


class StoreUnavailable(PenstockError):
    """The store does not answer. Nothing was lost; try again."""

    status = 503
    retryable = True
    in_doubt = False
    """True if a write may have been committed nevertheless."""


class SecretsUnavailable(PenstockError):
    """This server cannot open the stored secrets."""

    status = 503


class Overloaded(PenstockError):
    """The gateway is too busy or shutting down."""

    status = 503
    retryable = True


class GuardrailUnavailable(PenstockError):
    """The request could not be inspected, as its guardrail does not answer. Nothing was accepted; try again."""

    status = 503
    retryable = True


class StillRunning(PenstockError):
    """The job goes on, but the connection was held for as long as it may be. Send the request again to wait for it."""

    status = 504
    retryable = True
    charged = None


# -- errors of chat vendors


class VendorFailed(PenstockError):
    """The vendor failed to answer."""

    code = "upstream_error"
    status = 502
    retryable = True


class VendorRefusedUs(PenstockError):
    """The vendor rejected the gateway's own credential. The operator has been notified."""

    code = "upstream_auth"
    status = 502


class VendorAnswerLost(VendorFailed):
    """The connection to the vendor was lost before it answered. It may have done the work."""

    code = "upstream_error"
    charged = None


class VendorTimeout(PenstockError):
    """The vendor did not answer in time. It may have done the work."""

    code = "upstream_timeout"
    status = 504
    retryable = True
    charged = None

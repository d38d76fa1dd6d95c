"""The shapes of webhooks and their deliveries, for the OpenAPI document."""

from typing import Literal

from pydantic import Field

from penstock.domain.webhooks import DisabledReason, Status
from penstock.web.openapi.schemas import Moment, Shape


class WebhookRecord(Shape):
    """An address that is told of events."""

    id: str
    object: Literal["webhook"]
    url: str
    events: list[str]
    description: str
    disabled: bool
    disabled_at: Moment | None
    disabled_reason: DisabledReason | None = Field(description="asked for, answered 410, or failing for days")
    failing_since: Moment | None = Field(description="since when it only fails; null: the last attempt went well")
    former_secret_until: Moment | None = Field(description="until when messages are signed with the former secret too")
    created_at: Moment


class WebhookWithSecret(WebhookRecord):
    """The same with its secret, which is shown this once."""

    secret: str = Field(description="`whsec_…`, for Standard Webhooks libraries")


class WebhookSecret(Shape):
    """What signs the webhooks that jobs bring along."""

    object: Literal["webhook.secret"]
    secret: str
    former_secret_until: Moment | None


class WebhookPage(Shape):
    """A part of a list; pass `next_cursor` as `cursor` for the next."""

    object: Literal["list"]
    data: list[WebhookRecord]
    has_more: bool
    next_cursor: str | None


class DeliveryAttempt(Shape):
    """One time that it was sent, or could not be."""

    at: Moment
    status_code: int | None = Field(description="null: there was no answer")
    latency_ms: int
    error: str | None = Field(description="null: it was a success")
    response: str = Field(description="the beginning of the answer, up to 1024 bytes")


class DeliveryRecord(Shape):
    """One event on its way to one address."""

    id: str
    object: Literal["webhook.delivery"]
    webhook_id: str | None = Field(description="null: the job's own webhook")
    url: str
    type: str
    event_id: str = Field(description="the `webhook-id` of every attempt")
    job_id: str | None
    sequence: int
    status: Status
    created_at: Moment
    next_attempt_at: Moment | None
    finished_at: Moment | None
    attempts: list[DeliveryAttempt] = Field(description="the last 20")


class DeliveryPage(Shape):
    """A part of a list; pass `next_cursor` as `cursor` for the next."""

    object: Literal["list"]
    data: list[DeliveryRecord]
    has_more: bool
    next_cursor: str | None

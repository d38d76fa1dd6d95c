"""What the server tells besides jobs: events, files, models, quotes, usage, webhooks."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from penstock.client.decoding import Record, amount, count_of_bytes, many, moment, one, pairs, read, several
from penstock.client.job_record import Cost, JobRecord


@dataclass(frozen=True, kw_only=True)
class Event(Record):
    """Something that happened; `job` is the job as it was then, None where it is about a budget."""

    type: str = ""
    id: str = ""
    created_at: datetime | None = moment()
    sequence: int = 0
    data: Mapping[str, Any] = pairs()

    @property
    def job(self) -> JobRecord | None:
        """The job as it was then."""
        return read(JobRecord, self.data) if self.data.get("object") == "generation.job" else None


@dataclass(frozen=True, kw_only=True)
class FileRecord(Record):
    """An upload; give it to a model's `file` as it is."""

    file_token: str = ""
    sha256: str = ""
    size: int = count_of_bytes()
    content_type: str = ""
    width: int | None = None
    height: int | None = None
    created_at: datetime | None = moment()
    expires_at: datetime | None = moment()


@dataclass(frozen=True, kw_only=True)
class TypicalSeconds(Record):
    """How long such jobs took: half are faster than `p50`, nine in ten than `p90`."""

    p50: float = 0.0
    p90: float = 0.0
    jobs: int = 0


@dataclass(frozen=True, kw_only=True)
class Model(Record):
    """A model on offer; `params` is a JSON Schema."""

    id: str = ""
    kind: str = ""
    title: str = ""
    params: Mapping[str, Any] = pairs()
    defaults: Mapping[str, Any] = pairs()
    example: Mapping[str, Any] = pairs()
    price: Mapping[str, Any] = pairs()
    prices: tuple[Mapping[str, Any], ...] = several()
    vendors: tuple[str, ...] = several()
    typical_seconds: TypicalSeconds | None = one(TypicalSeconds)


@dataclass(frozen=True, kw_only=True)
class Quote(Record):
    """What a generation would do and cost; nothing was created."""

    model: str = ""
    valid: bool = False
    input: tuple[Mapping[str, Any], ...] = several()
    cost: Cost | None = one(Cost)
    budget_left: Decimal | None = amount()
    expected_seconds: TypicalSeconds | None = one(TypicalSeconds)


@dataclass(frozen=True, kw_only=True)
class Budget(Record):
    """Where a budget stands."""

    of: str = ""
    period: str = ""
    time_zone: str = ""
    cap: Decimal | None = amount()
    spent: Decimal | None = amount()
    held: Decimal | None = amount()
    left: Decimal | None = amount()
    resets_at: datetime | None = moment()


@dataclass(frozen=True, kw_only=True)
class Usage(Record):
    """What was used and what it cost, a line for each group, and their sum."""

    by: tuple[str, ...] = several()
    currency: str = "USD"
    data: tuple[Mapping[str, Any], ...] = several()
    total: Mapping[str, Any] = pairs()
    budgets: tuple[Budget, ...] = many(Budget)


@dataclass(frozen=True, kw_only=True)
class Webhook(Record):
    """An address that is told of events; `secret` is there only when it was just made or rotated."""

    id: str = ""
    url: str = ""
    events: tuple[str, ...] = several()
    description: str | None = None
    created_at: datetime | None = moment()
    disabled: bool = False
    disabled_at: datetime | None = moment()
    disabled_reason: str | None = None
    failing_since: datetime | None = moment()
    former_secret_until: datetime | None = moment()

    @property
    def secret(self) -> str | None:
        """What its messages are signed with; not in the repr."""
        return self.raw.get("secret")


@dataclass(frozen=True, kw_only=True)
class Delivery(Record):
    """A message to a webhook, and what each attempt was answered."""

    id: str = ""
    webhook_id: str | None = None
    url: str = ""
    type: str = ""
    event_id: str = ""
    job_id: str | None = None
    sequence: int | None = None
    status: str = ""
    created_at: datetime | None = moment()
    next_attempt_at: datetime | None = moment()
    finished_at: datetime | None = moment()
    attempts: tuple[Mapping[str, Any], ...] = several()

"""Records of the API: jobs, events, files, models, quotes, usage, webhooks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Self, cast
from urllib.parse import unquote, urlsplit

from penstock.client.decoding import Record, amount, count_of_bytes, many, moment, one, pairs, read, several
from penstock.client.errors import BadInput

SOURCES = ("url", "file_token", "object")
"""Of these a `file` has one; what else a record tells of it was found out."""


class Bound:
    """Something of a client. Copies keep the client; a pickle leaves it behind, and its key with it."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "client"}

    def __getattr__(self, name: str) -> Any:
        if name == "client":
            raise BadInput("It comes out of a pickle and has no client: ask yours for it, `client.job(id)`.")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __copy__(self) -> Self:
        return self  # it is frozen

    def __deepcopy__(self, _memo: object) -> Self:
        return self


@dataclass(frozen=True, kw_only=True)
class Cost(Record):
    """What a job costs; null where no price is known."""

    estimated: Decimal | None = amount()
    final: Decimal | None = amount()
    currency: str = "USD"


@dataclass(frozen=True, kw_only=True)
class JobError(Record):
    """Why a job failed."""

    message: str = ""
    code: str | None = None
    type: str | None = None
    param: str | None = None
    retryable: bool | None = None
    charged: bool | None = None
    suggestion: str | None = None
    stage: str | None = None
    upstream: Mapping[str, Any] = pairs()
    request_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Attempt(Record):
    """One order at a vendor."""

    number: int = 0
    vendor: str = ""
    upstream_id: str | None = None
    started_at: datetime | None = moment()
    outcome: str | None = None


@dataclass(frozen=True, kw_only=True)
class OutputRecord(Record):
    """One result of a job."""

    id: str = ""
    kind: str = ""
    role: str = ""
    content_type: str = ""
    size: int = count_of_bytes()
    sha256: str = ""
    width: int | None = None
    height: int | None = None
    duration_seconds: float | None = None
    fps: float | None = None
    faces: int | None = None
    vertices: int | None = None
    url: str = field(default="", repr=False)  # a signed link opens to whoever reads it
    url_expires_at: datetime | None = moment()

    @property
    def filename(self) -> str:
        """What the server calls it, such as `model.glb`; never a path."""
        name = unquote(urlsplit(self.url).path.rsplit("/", 1)[-1])
        return name.replace("/", "_").replace("\\", "_").lstrip(".") or self.id


@dataclass(frozen=True, kw_only=True)
class JobRecord(Record):
    """One generation, as it stood when the server was asked."""

    id: str = ""
    model: str = ""
    status: str = ""
    done: bool = False
    phase: str = ""
    progress: float = 0.0
    queue_position: int | None = None
    eta_seconds: float | None = None
    poll_after_ms: int | None = None
    created_at: datetime | None = moment()
    started_at: datetime | None = moment()
    finished_at: datetime | None = moment()
    expires_at: datetime | None = moment()
    input: Mapping[str, Any] = pairs()
    seed: int | None = None
    vendor: str = ""
    outputs: tuple[OutputRecord, ...] = many(OutputRecord)
    error: JobError | None = one(JobError)
    warnings: tuple[str, ...] = several()
    attempts: tuple[Attempt, ...] = many(Attempt)
    cost: Cost | None = one(Cost)
    charged: bool | None = None
    client_ref: str | None = None
    metadata: Mapping[str, str] = pairs()
    batch_id: str | None = None
    request_id: str = ""

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.model} {self.status} {self.progress:.0%}>"

    @property
    def succeeded(self) -> bool:
        """Whether it is done and has its outputs."""
        return self.status == "succeeded"


def listed_outputs(told: Any) -> list[Any]:
    """The outputs in a job's record, as they came; none where it is no record."""
    found: Any = cast("Mapping[str, Any]", told).get("outputs") if isinstance(told, Mapping) else None
    return cast("list[Any]", found) if isinstance(found, list) else []


def given_params(job: JobRecord, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The params that make this job again, with some of them changed; None takes one away."""
    params = {**job.input, **changes}
    file: Any = params.get("file")
    if isinstance(file, Mapping) and "file" not in changes:
        params["file"] = _given_file(job.id, cast("Mapping[str, Any]", file))
    return {name: value for name, value in params.items() if value is not None}


def _given_file(job_id: str, told: Mapping[str, Any]) -> dict[str, Any]:
    """The job's own copy, whatever became of an upload or an address; before there is one, what was given."""
    copy = told.get("copy_token")
    given = {"file_token": copy} if copy else {name: told[name] for name in SOURCES if name in told}
    if not given:
        raise BadInput(f"{job_id} does not tell the picture that it was made of: give `file` again.")
    return given | {name: told[name] for name in ("type",) if name in told}


# -- besides jobs


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

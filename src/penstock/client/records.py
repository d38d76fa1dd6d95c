"""Records of the API: jobs, events, files, models, quotes, usage, webhooks, share links."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Self, cast
from urllib.parse import unquote, urlsplit

from penstock.client.decoding import Record, amount, count_of_bytes, many, moment, one, pairs, read, several
from penstock.client.errors import BadInput

SOURCES = ("url", "file_token", "object")
"""Sources of a `file` param, of which a request has one. Its other fields are added by the server."""


class Bound:
    """Mixin of objects bound to a client. Copies keep the client. Pickles omit it, and so the key."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "client"}

    def __getattr__(self, name: str) -> Any:
        if name == "client":
            raise BadInput("An unpickled object has no client: fetch the job again with `client.job(id)`.")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __copy__(self) -> Self:
        return self  # immutable

    def __deepcopy__(self, _memo: object) -> Self:
        return self


@dataclass(frozen=True, kw_only=True)
class Cost(Record):
    """Cost of a job in USD. None if the price is unknown."""

    estimated: Decimal | None = amount()
    final: Decimal | None = amount()
    currency: str = "USD"


@dataclass(frozen=True, kw_only=True)
class JobError(Record):
    """Cause of a job's failure."""

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
    """One order placed at a vendor."""

    number: int = 0
    vendor: str = ""
    upstream_id: str | None = None
    started_at: datetime | None = moment()
    outcome: str | None = None


@dataclass(frozen=True, kw_only=True)
class ClipRecord(Record):
    """One animation of a model."""

    name: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class MeshRecord(Record):
    """Facts of a 3D model beside its faces and vertices. None is unknown."""

    format: str = ""
    size: tuple[float, ...] = several()
    unit: str | None = None
    has_uv: bool | None = None
    is_watertight: bool | None = None
    quads: int | None = None
    materials: int | None = None
    textures: int | None = None
    skins: int | None = None
    joints: int | None = None
    clips: tuple[ClipRecord, ...] = many(ClipRecord)


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
    mesh: MeshRecord | None = one(MeshRecord)
    url: str = field(default="", repr=False)  # a signed link needs no key
    url_expires_at: datetime | None = moment()

    @property
    def filename(self) -> str:
        """The server's file name, such as `model.glb`. It never contains a path."""
        name = unquote(urlsplit(self.url).path.rsplit("/", 1)[-1])
        return name.replace("/", "_").replace("\\", "_").lstrip(".") or self.id


@dataclass(frozen=True, kw_only=True)
class JobRecord(Record):
    """One generation as an immutable snapshot. Loop on `done`."""

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
    parents: tuple[str, ...] = several()
    request_id: str = ""

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.model} {self.status} {self.progress:.0%}>"

    @property
    def succeeded(self) -> bool:
        """Return whether the job is done and has its outputs."""
        return self.status == "succeeded"


def listed_outputs(data: Any) -> list[Any]:
    """Return the raw outputs of a job's record, or none if it is not a record."""
    found: Any = cast("Mapping[str, Any]", data).get("outputs") if isinstance(data, Mapping) else None
    return cast("list[Any]", found) if isinstance(found, list) else []


def given_params(job: JobRecord, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the params that repeat this job. `changes` replace params, None removes one."""
    params = {**job.input, **changes}
    file: Any = params.get("file")
    if isinstance(file, Mapping) and "file" not in changes:
        params["file"] = _given_file(job.id, cast("Mapping[str, Any]", file))
    return {name: value for name, value in params.items() if value is not None}


def _given_file(job_id: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `file` param: the job's own copy of the picture, or its source while there is no copy."""
    copy = data.get("copy_token")
    given = {"file_token": copy} if copy else {name: data[name] for name in SOURCES if name in data}
    if not given:
        raise BadInput(f"{job_id} has no copy of its input picture: pass `file` again.")
    return given | {name: data[name] for name in ("type",) if name in data}


# -- besides jobs


@dataclass(frozen=True, kw_only=True)
class Event(Record):
    """An event. `job` is the job at that time, or None for a budget's event."""

    type: str = ""
    id: str = ""
    created_at: datetime | None = moment()
    sequence: int = 0
    data: Mapping[str, Any] = pairs()

    @property
    def job(self) -> JobRecord | None:
        """The job at the time of the event, or None."""
        return read(JobRecord, self.data) if self.data.get("object") == "generation.job" else None


@dataclass(frozen=True, kw_only=True)
class FileRecord(Record):
    """An uploaded file. Pass it as a param that takes a file."""

    file_token: str = ""
    kind: str = ""
    sha256: str = ""
    size: int = count_of_bytes()
    content_type: str = ""
    width: int | None = None
    height: int | None = None
    duration_seconds: float | None = None
    name: str | None = None
    created_at: datetime | None = moment()
    expires_at: datetime | None = moment()


@dataclass(frozen=True, kw_only=True)
class TypicalSeconds(Record):
    """Typical duration in seconds. Half of the jobs are faster than `p50`, nine in ten than `p90`."""

    p50: float = 0.0
    p90: float = 0.0
    jobs: int = 0


@dataclass(frozen=True, kw_only=True)
class Model(Record):
    """A model that you can use. `params` is a JSON Schema."""

    id: str = ""
    kind: str = ""
    title: str = ""
    description: str | None = None
    params: Mapping[str, Any] = pairs()
    defaults: Mapping[str, Any] = pairs()
    example: Mapping[str, Any] = pairs()
    price: Mapping[str, Any] = pairs()
    prices: tuple[Mapping[str, Any], ...] = several()
    vendors: tuple[str, ...] = several()
    typical_seconds: TypicalSeconds | None = one(TypicalSeconds)
    endpoints: tuple[str, ...] = several()


@dataclass(frozen=True, kw_only=True)
class Quote(Record):
    """Result of a dry run: resolved input, cost in USD and typical duration."""

    model: str = ""
    valid: bool = False
    input: tuple[Mapping[str, Any], ...] = several()
    cost: Cost | None = one(Cost)
    budget_left: Decimal | None = amount()
    expected_seconds: TypicalSeconds | None = one(TypicalSeconds)


@dataclass(frozen=True, kw_only=True)
class Budget(Record):
    """State of a budget in USD. `held` is reserved for running jobs."""

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
    """Usage and cost per group in `data`, and their sum in `total`."""

    by: tuple[str, ...] = several()
    currency: str = "USD"
    data: tuple[Mapping[str, Any], ...] = several()
    total: Mapping[str, Any] = pairs()
    budgets: tuple[Budget, ...] = many(Budget)


@dataclass(frozen=True, kw_only=True)
class Webhook(Record):
    """A URL that receives events. `secret` is set only after creation and rotation."""

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
        """The signing secret, if the server sent it. The repr omits it."""
        return self.raw.get("secret")


@dataclass(frozen=True, kw_only=True)
class Share(Record):
    """A public link to the outputs of a job. `url` is set only after creation."""

    id: str = ""
    job_id: str = ""
    include_input: bool = False
    created_at: datetime | None = moment()
    expires_at: datetime | None = moment()

    @property
    def url(self) -> str | None:
        """The link itself, if the server sent it. The repr omits it, as it needs no key."""
        return self.raw.get("url")


@dataclass(frozen=True, kw_only=True)
class Delivery(Record):
    """An event sent to a webhook, with the receiver's answer to each attempt."""

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

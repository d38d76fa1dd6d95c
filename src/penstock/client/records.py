"""Records of the API: jobs, pipelines, events, files, models, quotes, usage, webhooks, share links."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Self, TypeVar, cast
from urllib.parse import unquote, urlsplit

from penstock.client.decoding import Record, amount, count_of_bytes, many, moment, one, pairs, read, several
from penstock.client.errors import BadInput

SOURCES = ("url", "file_token", "object", "job")
"""Sources of a file, of which a request has one. Most of its other fields are added by the server."""
BESIDE_SOURCE = ("type", "role", "output")
"""Fields that a request has beside the source."""


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
class TypicalSeconds(Record):
    """Typical duration in seconds. Half of the jobs are faster than `p50`, nine in ten than `p90`."""

    p50: float = 0.0
    p90: float = 0.0
    jobs: int = 0


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
    provenance: str | None = None  # "c2pa" or "sidecar"
    sidecar_url: str | None = field(default=None, repr=False)
    url: str = field(default="", repr=False)  # a signed link needs no key
    url_expires_at: datetime | None = moment()

    @property
    def filename(self) -> str:
        """The server's file name, such as `model.glb`. It never contains a path."""
        name = unquote(urlsplit(self.url).path.rsplit("/", 1)[-1])
        return name.replace("/", "_").replace("\\", "_").lstrip(".") or self.id


@dataclass(frozen=True, kw_only=True)
class JobOutput(Bound, OutputRecord):
    """One result, with the job that it belongs to. Pass it as a param that takes a file: nothing is copied."""

    job_id: str = ""
    number: int = 0

    def as_input(self) -> dict[str, Any]:
        """Return the reference by which a param takes this output."""
        return {"job": self.job_id, "output": self.number}


@dataclass(frozen=True, kw_only=True)
class Awaited(Record):
    """An object that one can wait for. Loop on `done`."""

    id: str = ""
    status: str = ""
    done: bool = False
    progress: float = 0.0
    poll_after_ms: int | None = None

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def succeeded(self) -> bool:
        """Return whether it is done and has its outputs."""
        return self.status == "succeeded"


@dataclass(frozen=True, kw_only=True)
class JobRecord(Awaited):
    """One generation as an immutable snapshot. Loop on `done`."""

    model: str = ""
    phase: str = ""
    queue_position: int | None = None
    eta_seconds: float | None = None
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
    tags: tuple[str, ...] = several()
    end_user: str | None = None
    session: str | None = None
    batch_id: str | None = None
    parents: tuple[str, ...] = several()
    pipeline_id: str | None = None
    step: str | None = None
    guardrails: tuple[Mapping[str, Any], ...] = several()
    request_id: str = ""

    __hash__ = Awaited.__hash__

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.model} {self.status} {self.progress:.0%}>"


OutputT = TypeVar("OutputT", bound=JobOutput)


def read_outputs(kind: type[OutputT], data: Any, client: Any) -> tuple[OutputT, ...]:
    """Return the outputs in a job's answer, bound to a client; none if the answer is no record."""
    record = cast("Mapping[str, Any]", data) if isinstance(data, Mapping) else dict[str, Any]()
    found: Any = record.get("outputs")
    listed = cast("list[Any]", found) if isinstance(found, list) else []
    job_id = str(record.get("id", ""))
    return tuple(
        read(kind, output, client=client, job_id=job_id, number=number) for number, output in enumerate(listed)
    )


def given_params(job: JobRecord, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the params that repeat this job. `changes` replace params, None removes one."""
    former = {name: _given_value(job.id, name, value) for name, value in job.input.items() if name not in changes}
    return {name: value for name, value in {**former, **changes}.items() if value is not None}


def _given_value(job_id: str, name: str, value: Any) -> Any:
    """Return a param with its files as a request gives them."""
    if isinstance(value, list):
        return [_given_value(job_id, name, each) for each in cast("list[Any]", value)]
    if isinstance(value, Mapping):
        data = cast("Mapping[str, Any]", value)
        is_file = name == "file" or "preview_url" in data or ({*SOURCES} & {*data} and {*data} <= _FIELDS)
        return _given_file(job_id, name, data) if is_file else data
    return value


_FIELDS = {*SOURCES, *BESIDE_SOURCE, "name"}


def _given_file(job_id: str, name: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a file param: the job's own copy of the file, or its source while there is no copy."""
    copy = data.get("copy_token")
    given = {"file_token": copy} if copy else {name: data[name] for name in SOURCES if name in data}
    if not given:
        raise BadInput(f"{job_id} has no copy of its input file: pass `{name}` again.")
    return given | {name: data[name] for name in BESIDE_SOURCE if name in data}


# -- pipelines


@dataclass(frozen=True, kw_only=True)
class StepRecord(Record):
    """One step of a pipeline. It has one job, or one for each element of `for_each`."""

    name: str = ""
    model: str = ""
    status: str = ""
    progress: float = 0.0
    needs: tuple[str, ...] = several()
    is_fan_out: bool = False
    is_reused: bool = False
    on_error: str = ""
    job_ids: tuple[str, ...] = several()
    jobs: tuple[JobRecord, ...] = many(JobRecord)


@dataclass(frozen=True, kw_only=True)
class PipelineError(Record):
    """Cause of a pipeline's failure: the steps and jobs that failed, with the code of the first."""

    message: str = ""
    code: str | None = None
    steps: tuple[str, ...] = several()
    job_ids: tuple[str, ...] = several()
    retryable: bool | None = None


@dataclass(frozen=True, kw_only=True)
class PipelineRecord(Awaited):
    """Jobs that were accepted together, as an immutable snapshot. `steps` are by name, in the order of their needs."""

    steps: Mapping[str, StepRecord] = field(default_factory=dict[str, StepRecord])
    params: Mapping[str, Any] = pairs()
    given: Mapping[str, Any] = pairs()
    on_error: str = ""
    template: str | None = None
    version: int | None = None
    retry_of: str | None = None
    created_at: datetime | None = moment()
    finished_at: datetime | None = moment()
    expires_at: datetime | None = moment()
    error: PipelineError | None = one(PipelineError)
    cost: Cost | None = one(Cost)
    client_ref: str | None = None
    metadata: Mapping[str, str] = pairs()
    request_id: str = ""

    __hash__ = Awaited.__hash__

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.status} {self.progress:.0%}>"


StepT = TypeVar("StepT", bound=StepRecord)


def read_steps(kind: type[StepT], data: Any, bind: Callable[[Any], JobRecord]) -> dict[str, StepT]:
    """Return the steps in a pipeline's answer by name, with their jobs made by `bind`; none if it is no record."""
    record = cast("Mapping[str, Any]", data) if isinstance(data, Mapping) else dict[str, Any]()
    found: Any = record.get("steps")
    steps = [
        read(kind, step, jobs=tuple(bind(job) for job in step.get("jobs") or ()))
        for step in (cast("list[Any]", found) if isinstance(found, list) else [])
    ]
    return {step.name: step for step in steps}


@dataclass(frozen=True, kw_only=True)
class StepQuote(Record):
    """Highest cost and typical duration of one step."""

    name: str = ""
    model: str = ""
    jobs: int = 0
    needs: tuple[str, ...] = several()
    cost: Cost | None = one(Cost)
    expected_seconds: TypicalSeconds | None = one(TypicalSeconds)


@dataclass(frozen=True, kw_only=True)
class PipelineQuote(Record):
    """Result of a dry run of a pipeline. `expected_seconds` is that of its slowest chain of steps."""

    valid: bool = False
    jobs: int = 0
    steps: tuple[StepQuote, ...] = many(StepQuote)
    cost: Cost | None = one(Cost)
    budget_left: Decimal | None = amount()
    expected_seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class Template(Record):
    """One version of a stored pipeline."""

    name: str = ""
    version: int = 0
    created_at: datetime | None = moment()
    description: str | None = None
    steps: tuple[Mapping[str, Any], ...] = several()
    on_error: str = ""
    params: Mapping[str, Any] = pairs()


@dataclass(frozen=True, kw_only=True)
class LineageLink(Record):
    """An output of `parent` that `child` took as `param`. `distance` counts the links from the job in question."""

    parent: str = ""
    child: str = ""
    param: str = ""
    output: str | None = None
    distance: int = 0


@dataclass(frozen=True, kw_only=True)
class LineageJob(Record):
    """A job of a lineage."""

    id: str = ""
    model: str = ""
    status: str = ""
    step: str | None = None
    pipeline_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Lineage(Record):
    """The jobs whose outputs led to a job, and those that were made from its outputs."""

    job: str = ""
    parents: tuple[LineageLink, ...] = many(LineageLink)
    children: tuple[LineageLink, ...] = many(LineageLink)
    jobs: tuple[LineageJob, ...] = many(LineageJob)
    truncated: bool = False


# -- besides jobs and pipelines


@dataclass(frozen=True, kw_only=True)
class Event(Record):
    """An event. `job` or `pipeline` is its record at that time; a budget's event has neither."""

    type: str = ""
    id: str = ""
    created_at: datetime | None = moment()
    sequence: int = 0
    data: Mapping[str, Any] = pairs()

    @property
    def job(self) -> JobRecord | None:
        """The job at the time of the event, or None."""
        return read(JobRecord, self.data) if self.data.get("object") == "generation.job" else None

    @property
    def pipeline(self) -> PipelineRecord | None:
        """The pipeline at the time of the event, without its jobs, or None."""
        if self.data.get("object") != "pipeline":
            return None
        return read(
            PipelineRecord, self.data, steps=read_steps(StepRecord, self.data, lambda job: read(JobRecord, job))
        )


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
class Verification(Record):
    """The origin of a file. `verdict` is signed_here, signed_elsewhere, unsigned or tampered."""

    verdict: str = ""
    is_trusted: bool = False
    sha256: str = ""
    size: int = count_of_bytes()
    signer: Mapping[str, Any] | None = None
    generator: str | None = None
    made_by_ai: bool | None = None
    generation: Mapping[str, Any] | None = None
    problems: tuple[Mapping[str, Any], ...] = ()
    parents: tuple[Mapping[str, Any], ...] = ()


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

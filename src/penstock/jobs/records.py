"""Job record: its definition and its builder. POST, GET, lists, events and webhooks answer this object.

The classes here are the only definition on the server. The OpenAPI document is made from them, and the type checker
holds `RecordBuilder` to them. A TypedDict is a plain dict, so building a record costs nothing more.
`tests/api/test_job_record.py` compares the Python client and the console with them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, GetPydanticSchema
from typing_extensions import TypedDict  # pydantic cannot read typing's own on Python 3.11

from penstock.catalog.file_input import file_at, with_file
from penstock.domain.attribution.labels import NOBODY
from penstock.domain.events import Event
from penstock.domain.files import MeshFacts, MeshFormat, StoredFile
from penstock.domain.ids import timestamp
from penstock.domain.jobs import Asset, Attempt, Job, Outcome, Phase, Provenance, State, poll_after_ms
from penstock.domain.money import format_usd
from penstock.domain.pipelines.records import OnError, Pipeline, PipelineState, PipelineStep
from penstock.domain.searching.words import input_name
from penstock.vendor_api.generation import Kind, Role

Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"})]


def _described_as(shape: Any) -> GetPydanticSchema:
    """Describe a field as `shape` in the OpenAPI document. The type checker sees what the builder writes."""
    return GetPydanticSchema(lambda _source, describe: describe(shape))


class DetailShape(TypedDict):
    """One thing wrong with one field."""

    loc: str
    message: str
    code: str


class ErrorBody(TypedDict):
    """The error, whether a retry can succeed, and what to do."""

    message: str
    type: str
    code: str | None
    param: str | None
    details: list[DetailShape]
    retryable: bool
    charged: bool | None
    suggestion: str | None
    request_id: str | None


class UpstreamShape(TypedDict):
    """The vendor's error, without addresses and secrets."""

    code: str | None
    message: str | None
    id: str | None


class JobErrorBody(ErrorBody):
    """The error of a failed job, with its stage and the vendor's error."""

    stage: str
    upstream: UpstreamShape | None


class ClipShape(TypedDict):
    """One animation of a model."""

    name: str
    seconds: float


class MeshShape(TypedDict):
    """Facts of a 3D model beside its faces and vertices. Null is unknown, as in a format that stays sealed."""

    format: Annotated[str, _described_as(MeshFormat)]
    size: Annotated[
        tuple[float, float, float] | None, Field(description="width, height and depth: the box along x, y and z")
    ]
    unit: Annotated[str | None, Field(description="unit of `size`: `meter`, or null in a format without one")]
    has_uv: Annotated[bool | None, Field(description="whether all of it has texture coordinates")]
    is_watertight: Annotated[bool | None, Field(description="whether each edge is shared by exactly two faces")]
    quads: int | None
    materials: int | None
    textures: int | None
    skins: int | None
    joints: Annotated[int | None, Field(description="joints of its skeletons")]
    clips: Annotated[list[ClipShape], Field(description="animations")]


class OutputShape(TypedDict):
    """One result; `url` is a signed link that needs no key until `url_expires_at`."""

    id: str
    kind: Annotated[str, _described_as(Kind)]
    role: Annotated[str, _described_as(Role)]
    content_type: str
    bytes: int
    sha256: str
    width: int | None
    height: int | None
    duration_seconds: float | None
    fps: float | None
    faces: int | None
    vertices: int | None
    mesh: MeshShape | None
    provenance: Annotated[
        str | None,
        _described_as(Provenance | None),
        Field(description="how it is signed: `c2pa` inside, or `sidecar` beside it at `sidecar_url`"),
    ]
    sidecar_url: str | None
    url: str
    url_expires_at: Moment


class AttemptShape(TypedDict):
    """One order placed at a vendor."""

    number: int
    vendor: str
    upstream_id: str | None
    started_at: Moment
    outcome: Annotated[str | None, _described_as(Outcome | None)]


class Cost(TypedDict):
    """Decimal strings of USD; null where the price is not known."""

    estimated: str | None
    final: str | None
    currency: Literal["USD"]


class JobUrls(TypedDict):
    """Links of a job."""

    self: str
    events: str
    cancel: str


class GuardrailShape(TypedDict):
    """The finding of one guardrail that inspected the request."""

    name: str
    verdict: Annotated[str, _described_as(Literal["allow", "unavailable"])]
    reason: str | None
    annotations: dict[str, Any]


class JobRecord(TypedDict):
    """One generation. Loop on `done`."""

    id: str
    object: Literal["generation.job"]
    model: str
    status: Annotated[str, _described_as(State)]
    done: bool
    phase: Annotated[str, Field(description="finer truth inside a status; an open set")]
    progress: Annotated[float, Field(ge=0, le=1)]
    queue_position: int | None
    eta_seconds: float | None
    poll_after_ms: int | None
    created_at: Moment
    started_at: Moment | None
    finished_at: Moment | None
    expires_at: Moment | None
    input: Annotated[dict[str, Any], Field(description="resolved params with defaults filled, and facts of the file")]
    seed: int | None
    vendor: str
    outputs: list[OutputShape]
    error: Annotated[Mapping[str, Any] | None, _described_as(JobErrorBody | None)]
    warnings: list[str]
    attempts: list[AttemptShape]
    cost: Cost
    charged: Annotated[bool | None, Field(description="null until the job is done")]
    client_ref: str | None
    metadata: Annotated[Mapping[str, str] | None, _described_as(dict[str, str] | None)]
    tags: Annotated[list[str], Field(description="tags by which its cost is counted")]
    end_user: Annotated[str | None, Field(description="the end user that its request named")]
    session: Annotated[str | None, Field(description="the session that its request named")]
    batch_id: str | None
    parents: Annotated[list[str], Field(description="ids of the jobs whose outputs it takes as inputs")]
    pipeline_id: Annotated[str | None, Field(description="the pipeline that it is part of, `pipe_…`")]
    step: Annotated[str | None, Field(description="the name of the pipeline's step that it carries out")]
    guardrails: Annotated[
        list[Mapping[str, Any]],
        _described_as(list[GuardrailShape]),
        Field(description="findings of the guardrails that inspected the request"),
    ]
    urls: JobUrls
    request_id: str


StepStatus = Literal["waiting", "queued", "running", "succeeded", "failed", "canceled"]


class StepRecord(TypedDict):
    """One step of a pipeline with its jobs: one, or one for each element of `for_each`."""

    name: str
    model: str
    status: Annotated[str, _described_as(StepStatus)]
    progress: Annotated[float, Field(ge=0, le=1)]
    needs: Annotated[list[str], Field(description="the steps whose outputs it takes")]
    is_fan_out: Annotated[bool, Field(description="whether it has `for_each`")]
    on_error: Annotated[str, _described_as(OnError)]
    is_reused: Annotated[bool, Field(description="whether its jobs are earlier ones, whose results are used again")]
    job_ids: list[str]
    jobs: Annotated[list[JobRecord] | None, Field(description="those not deleted; null in lists and events")]


class PipelineUrls(TypedDict):
    """Links of a pipeline."""

    self: str
    events: str
    cancel: str
    retry: str


class PipelineErrorBody(TypedDict):
    """The steps and jobs that failed, with the code of the first."""

    message: str
    code: str | None
    steps: list[str]
    job_ids: list[str]
    retryable: bool


class PipelineRecord(TypedDict):
    """Jobs that were accepted together and take each other's outputs. Loop on `done`."""

    id: str
    object: Literal["pipeline"]
    status: Annotated[str, _described_as(PipelineState)]
    done: bool
    progress: Annotated[float, Field(ge=0, le=1)]
    steps: Annotated[list[StepRecord], Field(description="each after those that it needs")]
    params: dict[str, Any]
    given: Annotated[dict[str, Any], Field(description="`steps` and `on_error` of the request or the template")]
    on_error: Annotated[str, _described_as(OnError)]
    template: str | None
    version: Annotated[int | None, Field(description="the version of the template")]
    retry_of: Annotated[str | None, Field(description="the pipeline that it repeats from a step on")]
    created_at: Moment
    finished_at: Moment | None
    expires_at: Moment | None
    error: Annotated[Mapping[str, Any] | None, _described_as(PipelineErrorBody | None)]
    cost: Cost
    client_ref: str | None
    metadata: Annotated[Mapping[str, str] | None, _described_as(dict[str, str] | None)]
    urls: PipelineUrls
    request_id: str


ENDED = frozenset(state.value for state in State if state.done)


@dataclass(frozen=True, slots=True)
class RecordBuilder:
    """Builds records for one client: with the base URL that it uses, and links signed for it."""

    base_url: str
    now: float
    link_seconds: float
    sign: Callable[[str, int], str]
    position: Callable[[str], int | None]

    def job(self, job: Job) -> JobRecord:
        """Return the record of a job."""
        position, attribution = self._position(job), job.attribution or NOBODY
        return {
            "id": job.id,
            "object": "generation.job",
            "model": job.model,
            "status": job.state.value,
            "done": job.done,
            "phase": _phase(job, position).value,
            "progress": round(job.progress, 4),
            "queue_position": position,
            "eta_seconds": self._eta(job, position),
            "poll_after_ms": poll_after_ms(job, self.now),
            "created_at": timestamp(job.created_at),
            "started_at": timestamp(job.started_at),
            "finished_at": timestamp(job.finished_at),
            "expires_at": timestamp(job.expires_at),
            "input": self._input(job),
            "seed": job.seed,
            "vendor": job.vendor,
            "outputs": [self._output(job, asset) for asset in job.outputs],
            "error": job.error,
            "warnings": list(job.warnings),
            "attempts": [_attempt(attempt) for attempt in job.attempts],
            "cost": {
                "estimated": None if job.estimated is None else format_usd(job.estimated),
                "final": None if job.final is None else format_usd(job.final),
                "currency": "USD",
            },
            "charged": job.charged,
            "client_ref": job.client_ref,
            "metadata": job.metadata,
            "tags": list(attribution.tags),
            "end_user": attribution.end_user or None,
            "session": attribution.session or None,
            "batch_id": job.batch_id,
            "parents": list(dict.fromkeys(parent.job_id for parent in job.parents)),
            "pipeline_id": job.pipeline_id,
            "step": job.step,
            "guardrails": list(job.guardrails),
            "urls": {
                "self": f"{self.base_url}/api/v1/jobs/{job.id}",
                "events": f"{self.base_url}/api/v1/jobs/{job.id}/events",
                "cancel": f"{self.base_url}/api/v1/jobs/{job.id}/cancel",
            },
            "request_id": job.request_id,
        }

    def event(self, event: Event) -> dict[str, Any]:
        """Return an event with the job, or the balance of the budget, at that time."""
        return {
            "type": event.type,
            "id": event.id,
            "created_at": timestamp(event.created_at),
            "sequence": event.sequence,
            "data": self._subject(event),
        }

    def _subject(self, event: Event) -> Mapping[str, Any] | None:
        if event.pipeline is not None:
            return self.pipeline(event.pipeline, event.pipeline.states)
        return event.budget if event.job is None else self.job(event.job)

    def pipeline(
        self, pipeline: Pipeline, states: Mapping[str, str], jobs: Mapping[str, Job] | None = None
    ) -> PipelineRecord:
        """Return the record of a pipeline, by the states of its jobs or, with them, by the jobs themselves."""
        known = (
            states
            if jobs is None
            else {**states, **{job.id: "waiting" if job.is_waiting else job.state.value for job in jobs.values()}}
        )
        progress = {job_id: float(state in ENDED) for job_id, state in known.items()}
        progress |= {} if jobs is None else {job.id: 1.0 if job.done else job.progress for job in jobs.values()}
        url = f"{self.base_url}/api/v1/pipelines/{pipeline.id}"
        return {
            "id": pipeline.id,
            "object": "pipeline",
            "status": _pipeline_status(pipeline, known).value,
            "done": pipeline.done,
            "progress": _mean(progress.get(job_id, 0.0) for job_id in pipeline.job_ids),
            "steps": [self._step(pipeline, step, known, progress, jobs) for step in pipeline.steps],
            "params": dict(pipeline.params),
            "given": dict(pipeline.given),
            "on_error": pipeline.on_error.value,
            "template": pipeline.template,
            "version": pipeline.version,
            "retry_of": pipeline.retry_of,
            "created_at": timestamp(pipeline.created_at),
            "finished_at": timestamp(pipeline.finished_at),
            "expires_at": timestamp(pipeline.expires_at),
            "error": pipeline.error,
            "cost": {
                "estimated": None if pipeline.estimated is None else format_usd(pipeline.estimated),
                "final": None if pipeline.final is None else format_usd(pipeline.final),
                "currency": "USD",
            },
            "client_ref": pipeline.client_ref,
            "metadata": pipeline.metadata,
            "urls": {"self": url, "events": f"{url}/events", "cancel": f"{url}/cancel", "retry": f"{url}/retry"},
            "request_id": pipeline.request_id,
        }

    def _step(
        self,
        pipeline: Pipeline,
        step: PipelineStep,
        states: Mapping[str, str],
        progress: Mapping[str, float],
        jobs: Mapping[str, Job] | None,
    ) -> StepRecord:
        return {
            "name": step.name,
            "model": step.model,
            "status": _step_status([states.get(job_id) for job_id in step.job_ids]),
            "progress": _mean(progress.get(job_id, 0.0) for job_id in step.job_ids),
            "needs": list(step.needs),
            "is_fan_out": step.is_fan_out,
            "on_error": step.on_error.value,
            "is_reused": set(step.job_ids) <= set(pipeline.reused),
            "job_ids": list(step.job_ids),
            "jobs": None if jobs is None else [self.job(jobs[name]) for name in step.job_ids if name in jobs],
        }

    def _eta(self, job: Job, position: int | None) -> float | None:
        """Return the seconds until the job ends. They are unknown while it waits in the queue."""
        if job.eta_at is None or job.is_waiting or (job.state is State.QUEUED and position is not None):
            return None
        return round(max(0.0, job.eta_at - self.now), 1)

    def _position(self, job: Job) -> int | None:
        if job.done or job.is_waiting:
            return None
        return self.position(job.id) if job.state is State.QUEUED else job.upstream_position

    def _input(self, job: Job) -> dict[str, Any]:
        """Return the resolved params, each file with its name, its facts and a link to its bytes."""
        params = dict(job.params)
        paths = [*(["file"] if "file" in params else []), *job.to_fetch, *(path for path in job.files)]
        for path in dict.fromkeys(paths):
            params = with_file(params, path, self._file(job, path))
        return params

    def _file(self, job: Job, path: str) -> dict[str, Any]:
        given, file = file_at(job.params, path), job.inputs.get(path)
        described: dict[str, Any] = {**given}
        if (name := input_name(given, file)) is not None:
            described["name"] = name
        if file is None:
            return described
        described |= {fact: getattr(file, fact) for fact in ("sha256", "bytes", "content_type")}
        described |= {"width": file.width, "height": file.height} if file.width else {}
        described |= {} if file.duration_seconds is None else {"duration_seconds": file.duration_seconds}
        if file.key is None:
            return described | {"copy_token": file.token, "preview_url": self._preview(job, file)}
        return described | {"preview_url": self._sign(f"assets/{file.token}/{file.name}", file.token, job)}

    def _preview(self, job: Job, file: StoredFile) -> str:
        return self._sign(f"files/{file.token}/content", file.token, job)

    def _sign(self, path: str, name: str, job: Job) -> str:
        """Return a link that stays equal for half of its life, so that browsers need not load the picture again."""
        half = self.link_seconds / 2
        expires = int((self.now // half + 2) * half)
        expires = expires if job.expires_at is None else min(expires, int(job.expires_at))
        return f"{self.base_url}/api/v1/{path}?expires={expires}&signature={self.sign(name, expires)}"

    def _output(self, job: Job, asset: Asset) -> OutputShape:
        expires = int(self.now + self.link_seconds)
        if job.expires_at is not None:
            expires = min(expires, int(job.expires_at))
        link = f"{self.base_url}/api/v1/assets/{asset.id}/{asset.filename}"
        proof = f"?expires={expires}&signature={self.sign(asset.id, expires)}"
        return {
            "id": asset.id,
            "kind": asset.kind,
            "role": asset.role,
            "content_type": asset.content_type,
            "bytes": asset.bytes,
            "sha256": asset.sha256,
            "width": asset.width,
            "height": asset.height,
            "duration_seconds": asset.duration_seconds,
            "fps": asset.fps,
            "faces": asset.faces,
            "vertices": asset.vertices,
            "mesh": None if asset.mesh is None else _mesh(asset.mesh),
            "provenance": asset.provenance,
            "sidecar_url": f"{link}.jws{proof}" if asset.provenance == "sidecar" else None,
            "url": link + proof,
            "url_expires_at": timestamp(expires),
        }


def _mesh(mesh: MeshFacts) -> MeshShape:
    return {
        "format": mesh.format,
        "size": mesh.size,
        "unit": mesh.unit,
        "has_uv": mesh.has_uv,
        "is_watertight": mesh.is_watertight,
        "quads": mesh.quads,
        "materials": mesh.materials,
        "textures": mesh.textures,
        "skins": mesh.skins,
        "joints": mesh.joints,
        "clips": [{"name": clip.name, "seconds": clip.seconds} for clip in mesh.clips],
    }


def _phase(job: Job, position: int | None) -> Phase:
    if job.is_waiting:
        return Phase.WAITING
    return Phase.THROTTLED if position is not None and job.state is State.QUEUED else job.phase


def _mean(values: Iterable[float]) -> float:
    every = list(values)
    return round(sum(every) / max(1, len(every)), 4)


def _pipeline_status(pipeline: Pipeline, states: Mapping[str, str]) -> PipelineState:
    """Return the status: a pipeline runs as soon as one of its own jobs does."""
    own = {state for job_id, state in states.items() if job_id not in pipeline.reused}
    has_begun = bool(own - {State.QUEUED.value, "waiting"})
    return PipelineState.RUNNING if has_begun and pipeline.state is PipelineState.QUEUED else pipeline.state


def _step_status(states: Sequence[str | None]) -> str:
    """Return the status of a step by those of its jobs. Removed jobs do not count."""
    found = {state for state in states if state is not None}
    if found <= ENDED:
        if found & {State.FAILED.value, State.EXPIRED.value}:
            return "failed"
        return "canceled" if State.CANCELED.value in found else "succeeded"
    if found == {"waiting"}:
        return "waiting"
    return "queued" if found <= {"waiting", "queued"} else "running"


def _attempt(attempt: Attempt) -> AttemptShape:
    return {
        "number": attempt.number,
        "vendor": attempt.vendor,
        "upstream_id": attempt.upstream_id,
        "started_at": timestamp(attempt.started_at),
        "outcome": None if attempt.outcome is None else attempt.outcome.value,
    }

"""Jobs: their data, states, and the table of transitions; no I/O and no clock."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, Literal

from penstock.domain.attribution.labels import Attribution
from penstock.domain.budgets import Payer
from penstock.domain.files import FileKind, MeshFacts, StoredFile
from penstock.domain.prices import Price

MARGIN_SECONDS: Final = 5.0
"""Tolerance for a vendor's clock that is known: `Date` has whole seconds, and the vendor's machines may differ."""


class State(StrEnum):
    """The state of a job. Clients need not know this list: they loop on `done`."""

    QUEUED = "queued"
    RUNNING = "running"
    CANCELING = "canceling"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"
    EXPIRED = "expired"

    @property
    def done(self) -> bool:
        """Return whether the state is terminal."""
        return not TRANSITIONS[self]


TRANSITIONS: Mapping[State, Mapping[State, str]] = {
    State.QUEUED: {
        State.RUNNING: "a runner takes it up",
        State.CANCELING: "the caller cancels",
        State.FAILED: "an output that it waits for will not be made",
        State.EXPIRED: "start_timeout passes",
    },
    State.RUNNING: {
        State.SUCCEEDED: "the outputs are stored and checked",
        State.FAILED: "it cannot be done",
        State.CANCELING: "the caller cancels",
        State.EXPIRED: "run_timeout passes",
    },
    State.CANCELING: {
        State.CANCELED: "the work is stopped",
        State.SUCCEEDED: "the vendor finished first",
        State.FAILED: "the vendor failed first",
    },
    State.SUCCEEDED: {},
    State.FAILED: {},
    State.CANCELED: {},
    State.EXPIRED: {},
}
"""All transitions, with their cause. docs/states.md is generated from this table."""


class Phase(StrEnum):
    """Finer truth inside a state; an open set that clients may show but should not branch on."""

    WAITING = "waiting"
    QUEUED = "queued"
    THROTTLED = "throttled"
    FETCHING = "fetching"
    DISPATCHING = "dispatching"
    GENERATING = "generating"
    STORING = "storing"
    RECONCILING = "reconciling"
    CANCELING = "canceling"
    DONE = "done"


RISKY = (Phase.FETCHING, Phase.DISPATCHING, Phase.STORING)
"""Phases in which a process opens, sends or collects a job's bytes, and may crash. In others it polls or waits."""


def has_advanced(before: Phase, after: Phase) -> bool:
    """Return whether a step was survived. A lookup of a lost order does not count, as the risky step follows it."""
    return before is not after and Phase.RECONCILING not in (before, after)


class Outcome(StrEnum):
    """The outcome of an attempt at a vendor."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    REFUSED = "refused"
    NOT_SENT = "not_sent"
    NEVER_ARRIVED = "never_arrived"
    UNKNOWN = "unknown"
    CANCELED = "canceled"
    ABANDONED = "abandoned"


class IllegalMove(Exception):
    """A transition that is not in the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One paid order at one vendor, recorded before the call."""

    number: int
    vendor: str
    model: str
    credential: str
    reference: str
    started_at: float
    upstream_id: str | None = None
    operation: Mapping[str, Any] | None = None
    outcome: Outcome | None = None
    result_id: str | None = None  # the vendor's id of the result, if it differs from that of the order

    @property
    def route(self) -> tuple[str, str]:
        """Return the route: the vendor, and its name for the model."""
        return self.vendor, self.model


Provenance = Literal["c2pa", "sidecar"]
"""How a result is signed: by a C2PA manifest inside, or by a file beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """One stored output, with the facts found by inspecting it."""

    id: str
    kind: str
    role: str
    filename: str
    content_type: str
    bytes: int
    sha256: str
    width: int | None = None
    height: int | None = None
    duration_seconds: float | None = None
    fps: float | None = None
    faces: int | None = None
    vertices: int | None = None
    mesh: MeshFacts | None = None
    """Further facts of a 3D model; None in other outputs, and in jobs that are older than these facts."""
    provenance: Provenance | None = None
    """How it is signed; None if it is not."""


@dataclass(frozen=True, slots=True)
class ResultMark:
    """Identity of a result: the digest of its route and input without the seed, and the seed if there is one."""

    digest: bytes
    seed: str | None


@dataclass(frozen=True, slots=True)
class Parent:
    """An output of an earlier job that this job takes as an input, and the path of that param."""

    path: str
    job_id: str
    asset_id: str
    """Empty while the earlier job is not done."""
    output: int | str = "primary"
    """The output's number or role."""
    declared: str | None = None
    """The type that the caller says it has. It is compared when the output is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One paid generation. Times are seconds since the epoch, amounts 10⁻⁹ USD."""

    id: str
    account_id: str
    key_id: str
    request_id: str
    model: str
    vendor: str
    upstream_model: str
    params: Mapping[str, Any]
    seed: int | None
    created_at: float
    start_by: float
    run_seconds: float
    retention: float | None
    lineage: str = ""
    """The key's lineage; empty in jobs that are older than lineages."""
    estimated: int | None = None
    """Upper bound of the cost, at any vendor."""
    prices: Mapping[str, Mapping[str, Any] | None] | None = None
    """Price formulas by vendor at acceptance, null if unknown; None in older jobs."""
    client_ref: str | None = None
    metadata: Mapping[str, str] | None = None
    batch_id: str | None = None
    webhook: Mapping[str, Any] | None = None
    file: StoredFile | None = None
    """The file of the param `file`."""
    files: Mapping[str, StoredFile] = field(default_factory=dict[str, StoredFile])
    """The files of all other params, by path: `mask`, `images.0`."""
    to_fetch: Mapping[str, tuple[FileKind, ...]] = field(default_factory=dict[str, tuple[FileKind, ...]])
    """The files that are fetched from their URLs before the job is ordered: their paths and allowed kinds."""
    parents: tuple[Parent, ...] = ()
    pipeline_id: str | None = None
    step: str | None = None
    """The name of the pipeline's step that it carries out."""
    awaits: Mapping[str, tuple[FileKind, ...]] = field(default_factory=dict[str, tuple[FileKind, ...]])
    """The files that other jobs of its pipeline have yet to make: their paths and allowed kinds."""
    guardrails: tuple[Mapping[str, Any], ...] = ()
    """The findings of guardrails at acceptance."""
    attribution: Attribution | None = None
    """Its tags, end user and session; None if its request named none."""
    trace: str | None = None
    """The `traceparent` of its request, continued by the runner. Not shown to callers."""

    state: State = State.QUEUED
    phase: Phase = Phase.QUEUED
    progress: float = 0.0
    eta_at: float | None = None
    upstream_position: int | None = None
    started_at: float | None = None
    finished_at: float | None = None
    expires_at: float | None = None
    cancel_requested_at: float | None = None
    attempts: tuple[Attempt, ...] = ()
    outputs: tuple[Asset, ...] = ()
    error: Mapping[str, Any] | None = None
    warnings: tuple[str, ...] = ()
    final: int | None = None
    charged: bool | None = None
    sequence: int = 0

    @property
    def inputs(self) -> Mapping[str, StoredFile]:
        """Return all files by path."""
        return self.files if self.file is None else {"file": self.file, **self.files}

    @property
    def is_waiting(self) -> bool:
        """Return whether it cannot start yet, as other jobs of its pipeline have to make its inputs."""
        return bool(self.awaits) and self.state is State.QUEUED

    @property
    def done(self) -> bool:
        """Return whether the job is finished; clients loop on this."""
        return self.state.done

    @property
    def payer(self) -> Payer:
        """Return the payer of the job."""
        tags = () if self.attribution is None else self.attribution.tags
        return Payer(self.account_id, self.key_id, self.lineage or self.key_id, tags)

    @property
    def attempt(self) -> Attempt | None:
        """Return the attempt in progress; None before the first, and between two."""
        last = self.attempts[-1] if self.attempts else None
        return last if last and last.outcome is None else None

    def is_past(self, now: float) -> bool:
        """Return whether its retention is over, so that it is removed soon."""
        return self.expires_at is not None and self.expires_at <= now

    @property
    def deadline(self) -> float:
        """Return the end of `start_timeout` or, once started, of `run_timeout`."""
        return self.start_by if self.started_at is None else self.started_at + self.run_seconds

    def seconds_left(self, now: float) -> float:
        """Return the seconds until the deadline: never more than the timeout, also if `now` is before its begin.

        A process whose clock was ahead may have accepted or started the job.
        """
        whole = self.start_by - self.created_at if self.started_at is None else self.run_seconds
        return min(whole, self.deadline - now)


def move(job: Job, to: State, **changes: Any) -> Job:
    """Return the job in another state; raise `IllegalMove` if the table does not allow it."""
    if to not in TRANSITIONS[job.state]:
        raise IllegalMove(f"{job.id} cannot go from {job.state} to {to}")
    return replace(job, state=to, **changes)


def start(job: Job, now: float) -> Job:
    """Start the job by the runner's clock, which may be behind that of the process that accepted it."""
    return move(job, State.RUNNING, started_at=max(now, job.created_at))


def order(job: Job, attempt: Attempt) -> Job:
    """Record the intent to pay a vendor before the call, unless the job was canceled meanwhile.

    Earlier attempts that this vendor never accepted are dropped, so that a long wait leaves no long list.
    """
    if job.state is not State.RUNNING:
        return job
    kept = tuple(
        past
        for past in job.attempts
        if past.outcome not in (Outcome.REFUSED, Outcome.NOT_SENT) or past.route != attempt.route
    )
    return replace(job, attempts=(*kept, attempt), phase=Phase.DISPATCHING)


def end_attempt(job: Job, outcome: Outcome, **changes: Any) -> Job:
    """Close the attempt in progress, if there is one."""
    if job.attempt is None:
        return replace(job, **changes)
    return replace(job, attempts=(*job.attempts[:-1], replace(job.attempt, outcome=outcome)), **changes)


def reroute(job: Job, attempt: Attempt, vendor: str, model: str) -> Job:
    """Switch to another vendor after an attempt that provably failed, unless the job was canceled meanwhile."""
    earlier = job.attempts[:-1] if job.attempt else job.attempts
    job = replace(job, attempts=(*earlier, attempt), phase=Phase.DISPATCHING)
    return replace(job, vendor=vendor, upstream_model=model) if job.state is State.RUNNING else job


def take_file(job: Job, path: str, file: StoredFile) -> Job:
    """Add an input file that has been stored."""
    return replace(job, file=file) if path == "file" else replace(job, files={**job.files, path: file})


def warn(job: Job, warnings: Iterable[str]) -> Job:
    """Add warnings to the job, each once."""
    return replace(job, warnings=tuple(dict.fromkeys((*job.warnings, *warnings))))


def request_cancel(job: Job, now: float) -> Job:
    """Record the caller's cancel; a second one changes nothing."""
    if job.done or job.state is State.CANCELING:
        return job
    return move(job, State.CANCELING, phase=Phase.CANCELING, cancel_requested_at=now)


def finish(job: Job, to: State, now: float, *, outcome: Outcome, **changes: Any) -> Job:
    """End a job in any terminal state, and fix its retention and its cost."""
    job = end_attempt(job, outcome)
    return move(
        job,
        to,
        phase=Phase.DONE,
        finished_at=max(now, job.started_at or job.created_at),
        expires_at=None if job.retention is None else now + job.retention,
        eta_at=None,
        upstream_position=None,
        **changes,
    )


def succeed(job: Job, now: float, outputs: tuple[Asset, ...], warnings: tuple[str, ...]) -> Job:
    """End a job whose outputs are stored and checked; its vendor's formula sets the price."""
    final = _settle(job, outputs)
    return finish(
        warn(job, warnings),
        State.SUCCEEDED,
        now,
        outcome=Outcome.SUCCEEDED,
        outputs=outputs,
        progress=1.0,
        final=final,
        charged=None if final is None else bool(final),
    )


def name_result(job: Job, result_id: str | None) -> Job:
    """Return the job with the vendor's id of its result in the open attempt, for jobs that continue it."""
    if result_id is None or job.attempt is None:
        return job
    return replace(job, attempts=(*job.attempts[:-1], replace(job.attempt, result_id=result_id)))


def _settle(job: Job, outputs: tuple[Asset, ...]) -> int | None:
    """Return the cost by the recorded formula; the estimate for a vendor without one."""
    if job.prices is None or job.vendor not in job.prices:
        return job.estimated
    formula = job.prices[job.vendor]
    final = None if formula is None else Price.model_validate(formula).final(job.params, outputs)
    return final if final is None or job.estimated is None else min(final, job.estimated)


def fail(job: Job, now: float, error: Mapping[str, Any], outcome: Outcome, to: State = State.FAILED) -> Job:
    """End a job without outputs and without a charge; the cost of an order of unknown fate is unknown."""
    unknown = outcome is Outcome.UNKNOWN
    final, charged = (None, None) if unknown else (0, False)
    return finish(job, to, now, outcome=outcome, error=error, final=final, charged=charged)


def stop(job: Job, now: float) -> Job:
    """End a job that the caller canceled."""
    return finish(job, State.CANCELED, now, outcome=Outcome.CANCELED, final=0, charged=False)


def poll_after_ms(job: Job, now: float) -> int | None:
    """Return the advised polling interval in milliseconds: shorter when the end is near."""
    if job.done:
        return None
    if job.eta_at is None:
        return 1000
    return int(min(5000.0, max(500.0, (job.eta_at - now) * 250)))


# -- jobs in the queue


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to work on a job until another process claims it: writes are fenced by its owner and epoch."""

    job_id: str
    owner: str
    epoch: int
    deaths: int = field(default=0, compare=False)
    """Processes that died in the job's current risky step; after the first, only deaths as the sole suspect count."""


@dataclass(frozen=True, slots=True)
class Headroom:
    """A limit on open jobs, and the number that may still be added."""

    limit: int
    remaining: int


# -- an order whose answer was lost


@dataclass(frozen=True, slots=True)
class Placing:
    """A similar order that another job is placing, and since when."""

    started_at: float


def choose_free(
    found: Iterable[str], held: Iterable[str], placing: Iterable[Placing], seen_at: Mapping[str, float] | None
) -> str | None:
    """Return the first order that no other job holds or may be about to hold; None if there is none.

    An order that is being placed may be any of those found, unless it began after they were first seen.
    """
    others, latest = set(held), list(placing)
    for name in found:
        if name in others:
            continue
        first_seen = None if seen_at is None else seen_at.get(name)
        if not any(first_seen is None or each.started_at <= first_seen + MARGIN_SECONDS for each in latest):
            return name
    return None

"""A job: its data, its states and the one table of moves between them; no I/O and no clock."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from penstock.domain.budgets import Payer
from penstock.domain.files import StoredFile
from penstock.domain.prices import Price

MARGIN_SECONDS: Final = 5.0
"""Tolerance for a vendor's clock that is known: `Date` has whole seconds, and the vendor's machines may differ."""


class State(StrEnum):
    """Where a job stands. Clients need not know this list: they loop on `done`."""

    QUEUED = "queued"
    RUNNING = "running"
    CANCELING = "canceling"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"
    EXPIRED = "expired"

    @property
    def done(self) -> bool:
        """Terminal states never change."""
        return not TRANSITIONS[self]


TRANSITIONS: Mapping[State, Mapping[State, str]] = {
    State.QUEUED: {
        State.RUNNING: "a runner takes it up",
        State.CANCELING: "the caller cancels",
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
"""Every move there is, and what makes it. docs/states.md is drawn from this table."""


class Phase(StrEnum):
    """Finer truth inside a state; an open set that clients may show but should not branch on."""

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
"""Phases in which a process opens, sends or collects a job's bytes, and may die of it. In others it asks or waits."""


def has_advanced(before: Phase, after: Phase) -> bool:
    """Tell whether a step was survived. Looking up a lost order is no step: the risky one comes after it."""
    return before is not after and Phase.RECONCILING not in (before, after)


class Outcome(StrEnum):
    """How an attempt at a vendor ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    REFUSED = "refused"
    NOT_SENT = "not_sent"
    NEVER_ARRIVED = "never_arrived"
    UNKNOWN = "unknown"
    CANCELED = "canceled"
    ABANDONED = "abandoned"


class IllegalMove(Exception):
    """A move that the table does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One paid order at one vendor: written before the call, never resolved anew."""

    number: int
    vendor: str
    model: str
    credential: str
    reference: str
    started_at: float
    upstream_id: str | None = None
    operation: Mapping[str, Any] | None = None
    outcome: Outcome | None = None

    @property
    def route(self) -> tuple[str, str]:
        """The way it went: the vendor, and its name of the model."""
        return self.vendor, self.model


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """One stored output and what opening it told."""

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
    """Of the key; empty in jobs that are older than lineages."""
    estimated: int | None = None
    """The most that it may cost, whoever runs it."""
    prices: Mapping[str, Mapping[str, Any] | None] | None = None
    """What each vendor asked when it was accepted, null where that was not known; None in jobs from before."""
    client_ref: str | None = None
    metadata: Mapping[str, str] | None = None
    batch_id: str | None = None
    webhook: Mapping[str, Any] | None = None
    file: StoredFile | None = None
    trace: str | None = None
    """The `traceparent` of its request: whoever runs it goes on with that trace. Not for callers."""

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
    def done(self) -> bool:
        """The one thing clients loop on."""
        return self.state.done

    @property
    def payer(self) -> Payer:
        """Whose money it costs."""
        return Payer(self.account_id, self.key_id, self.lineage or self.key_id)

    @property
    def attempt(self) -> Attempt | None:
        """The attempt under way; None before the first, and between two."""
        last = self.attempts[-1] if self.attempts else None
        return last if last and last.outcome is None else None

    def is_past(self, now: float) -> bool:
        """Whether its retention is over: what is left of it is removed soon."""
        return self.expires_at is not None and self.expires_at <= now

    @property
    def deadline(self) -> float:
        """When `start_timeout` passes or, once started, `run_timeout`."""
        return self.start_by if self.started_at is None else self.started_at + self.run_seconds


def move(job: Job, to: State, **changes: Any) -> Job:
    """The job in another state, if the table allows it."""
    if to not in TRANSITIONS[job.state]:
        raise IllegalMove(f"{job.id} cannot go from {job.state} to {to}")
    return replace(job, state=to, **changes)


def start(job: Job, now: float) -> Job:
    """A runner takes the job up; by its clock, which may be behind that of whoever accepted it."""
    return move(job, State.RUNNING, started_at=max(now, job.created_at))


def order(job: Job, attempt: Attempt) -> Job:
    """Write down the intent to pay a vendor before the call is made; not if the job was canceled meanwhile.

    Attempts that never reached this vendor's books are dropped, so that a long wait leaves no long list.
    """
    if job.state is not State.RUNNING:
        return job
    told = tuple(
        past
        for past in job.attempts
        if past.outcome not in (Outcome.REFUSED, Outcome.NOT_SENT) or past.route != attempt.route
    )
    return replace(job, attempts=(*told, attempt), phase=Phase.DISPATCHING)


def end_attempt(job: Job, outcome: Outcome, **changes: Any) -> Job:
    """Close the attempt under way, if there is one."""
    if job.attempt is None:
        return replace(job, **changes)
    return replace(job, attempts=(*job.attempts[:-1], replace(job.attempt, outcome=outcome)), **changes)


def reroute(job: Job, attempt: Attempt, vendor: str, model: str) -> Job:
    """The attempt provably came to nothing: another vendor is asked instead; not if the job was canceled meanwhile."""
    earlier = job.attempts[:-1] if job.attempt else job.attempts
    job = replace(job, attempts=(*earlier, attempt), phase=Phase.DISPATCHING)
    return replace(job, vendor=vendor, upstream_model=model) if job.state is State.RUNNING else job


def warn(job: Job, warnings: Iterable[str]) -> Job:
    """The job with these among its warnings, each once."""
    return replace(job, warnings=tuple(dict.fromkeys((*job.warnings, *warnings))))


def request_cancel(job: Job, now: float) -> Job:
    """The caller wants the job stopped; asking twice changes nothing."""
    if job.done or job.state is State.CANCELING:
        return job
    return move(job, State.CANCELING, phase=Phase.CANCELING, cancel_requested_at=now)


def finish(job: Job, to: State, now: float, *, outcome: Outcome, **changes: Any) -> Job:
    """The end of a job, whatever it is: what retention removes and money settles is fixed here."""
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
    """The outputs are ours and were opened: what the vendor that made them asks for them is the price."""
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


def _settle(job: Job, outputs: tuple[Asset, ...]) -> int | None:
    """By the formula that was written down; of a vendor that was not there yet, what was quoted."""
    if job.prices is None or job.vendor not in job.prices:
        return job.estimated
    formula = job.prices[job.vendor]
    final = None if formula is None else Price.model_validate(formula).final(job.params, outputs)
    return final if final is None or job.estimated is None else min(final, job.estimated)


def fail(job: Job, now: float, error: Mapping[str, Any], outcome: Outcome, to: State = State.FAILED) -> Job:
    """The job ends without outputs and without a charge; of an order of unknown fate nobody knows what it cost."""
    unknown = outcome is Outcome.UNKNOWN
    final, charged = (None, None) if unknown else (0, False)
    return finish(job, to, now, outcome=outcome, error=error, final=final, charged=charged)


def stop(job: Job, now: float) -> Job:
    """The caller's cancel is carried out."""
    return finish(job, State.CANCELED, now, outcome=Outcome.CANCELED, final=0, charged=False)


def poll_after_ms(job: Job, now: float) -> int | None:
    """How long a polling client should wait: short when the end is near, never a storm."""
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
    """An order like the lost one that another job has on its way, and since when."""

    started_at: float


def choose_free(
    found: Iterable[str], held: Iterable[str], placing: Iterable[Placing], seen_at: Mapping[str, float] | None
) -> str | None:
    """Return the first order found that no other job holds, or may be about to hold.

    An order on its way may be any of those found, unless it was begun after they were seen first.
    """
    others, latest = set(held), list(placing)
    for name in found:
        if name in others:
            continue
        first_seen = None if seen_at is None else seen_at.get(name)
        if not any(first_seen is None or each.started_at <= first_seen + MARGIN_SECONDS for each in latest):
            return name
    return None

"""Pipelines: their steps, states and templates."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class PipelineState(StrEnum):
    """The state of a pipeline. Clients loop on `done`."""

    QUEUED = "queued"
    RUNNING = "running"
    CANCELING = "canceling"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"


class OnError(StrEnum):
    """The effect of a failed job on the rest of its pipeline."""

    STOP = "stop"
    CONTINUE = "continue"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStep:
    """A named step with its jobs: one, or one for each element of its list."""

    name: str
    model: str
    job_ids: tuple[str, ...]
    is_fan_out: bool = False
    on_error: OnError = OnError.STOP
    needs: tuple[str, ...] = ()
    """The steps whose outputs it takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """Jobs accepted together. Steps are in an order in which each comes after those that it needs.

    Times are seconds since the epoch, amounts 10⁻⁹ USD.
    """

    id: str
    account_id: str
    key_id: str
    request_id: str
    created_at: float
    steps: tuple[PipelineStep, ...]
    given: Mapping[str, Any]
    """The fields `steps` and `on_error` as the caller gave them, to run it again."""
    params: Mapping[str, Any]
    on_error: OnError = OnError.STOP
    retention: float | None = None
    client_ref: str | None = None
    metadata: Mapping[str, str] | None = None
    webhook: Mapping[str, Any] | None = None
    terms: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The fields `start_timeout`, `run_timeout` and `webhook` as given, to repeat it."""
    template: str | None = None
    version: int | None = None
    retry_of: str | None = None
    reused: tuple[str, ...] = ()
    """Jobs of an earlier pipeline whose outputs are used again."""
    estimated: int | None = None

    state: PipelineState = PipelineState.QUEUED
    is_stopping: bool = False
    """True once nothing new is to be ordered: after a failure, or a cancel."""
    cancel_requested_at: float | None = None
    finished_at: float | None = None
    expires_at: float | None = None
    final: int | None = None
    error: Mapping[str, Any] | None = None
    states: Mapping[str, str] = field(default_factory=dict[str, str])
    """The final state of each job that has ended."""
    sequence: int = 0

    @property
    def done(self) -> bool:
        """Return whether all of its jobs have ended."""
        return self.finished_at is not None

    @property
    def job_ids(self) -> tuple[str, ...]:
        """Return all jobs, in the order of the steps."""
        return tuple(job_id for step in self.steps for job_id in step.job_ids)

    def is_past(self, now: float) -> bool:
        """Return whether its retention is over."""
        return self.expires_at is not None and self.expires_at <= now


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineTemplate:
    """One version of a stored pipeline."""

    account_id: str
    name: str
    version: int
    created_at: float
    body: Mapping[str, Any]

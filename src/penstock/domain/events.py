"""Events of jobs, pipelines and budgets, each with a snapshot of its subject."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from penstock.domain.ids import ALPHABET, encode
from penstock.domain.jobs import Job, State
from penstock.domain.pipelines.records import Pipeline

POSITION_LENGTH = 13  # 65 bits: any 64-bit position


class EventType(StrEnum):
    """The closed set of events of jobs; the last four end a job."""

    QUEUED = "job.queued"
    STARTED = "job.started"
    PROGRESS = "job.progress"
    SUCCEEDED = "job.succeeded"
    FAILED = "job.failed"
    CANCELED = "job.canceled"
    EXPIRED = "job.expired"


PIPELINE_PREFIX: Final = "pipeline."


class PipelineEventType(StrEnum):
    """The closed set of events of pipelines; the last three end one."""

    QUEUED = "pipeline.queued"
    SUCCEEDED = "pipeline.succeeded"
    FAILED = "pipeline.failed"
    CANCELED = "pipeline.canceled"


PIPELINE_ENDINGS: Final = tuple(list(PipelineEventType)[1:])

BUDGET_EVENT: Final = "budget.threshold"
"""The event of a budget: a share of it is used."""

ENDINGS = {
    State.SUCCEEDED: EventType.SUCCEEDED,
    State.FAILED: EventType.FAILED,
    State.CANCELED: EventType.CANCELED,
    State.EXPIRED: EventType.EXPIRED,
}


@dataclass(frozen=True, slots=True)
class Event:
    """One row of the event log. `position` orders all events, `sequence` those of one job, from 1 without a gap."""

    position: int
    type: str
    sequence: int
    created_at: float
    job: Job | None
    budget: Mapping[str, Any] | None = None
    """The balance of the budget, for a budget event."""
    pipeline: Pipeline | None = None

    @property
    def id(self) -> str:
        """Return the event's public id."""
        return event_id(self.position)


def event_id(position: int) -> str:
    """Return the public id of a position; ids sort like positions."""
    return "evt_" + encode(position, POSITION_LENGTH)


def parse_event_id(text: str) -> int | None:
    """Return the position of an event id; None if it is no event id."""
    digits = text.removeprefix("evt_").lower()
    if len(digits) != POSITION_LENGTH or any(digit not in ALPHABET for digit in digits):
        return None
    position = 0
    for digit in digits:
        position = position * 32 + ALPHABET.index(digit)
    return position if position < 1 << 63 else None


def type_of(before: Job | None, after: Job) -> EventType:
    """Return the type of event for a change of a job."""
    if before is None:
        return EventType.QUEUED
    if after.state is not before.state and after.done:
        return ENDINGS[after.state]
    if after.state is State.RUNNING and before.state is State.QUEUED:
        return EventType.STARTED
    return EventType.PROGRESS

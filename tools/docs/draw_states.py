"""Draws docs/states.md and its picture from the one table of moves.

python tools/docs/draw_states.py
"""

from enum import StrEnum
from pathlib import Path

from drawings import PICTURES, Arrow, Box
from drawings import draw as draw_boxes

from penstock.domain.events import ENDINGS, EventType
from penstock.domain.jobs import TRANSITIONS, Outcome, Phase, State

PAGE = Path(__file__).parents[2] / "docs" / "states.md"
PICTURE = PICTURES / "states.svg"

MEANINGS = {
    State.QUEUED: "accepted and stored; no vendor has been asked yet",
    State.RUNNING: "a runner works on it: it fetches the input, places the order, polls, collects",
    State.CANCELING: "the caller wants it stopped; the vendor is being asked",
    State.SUCCEEDED: "the outputs are in this gateway's store and were opened and checked",
    State.FAILED: "it cannot be done; `error` says why",
    State.CANCELED: "stopped as the caller asked",
    State.EXPIRED: "`start_timeout` or `run_timeout` passed; `error.code` says which",
}
PHASES = {
    Phase.QUEUED: "waits to be taken up",
    Phase.WAITING: "waits for outputs of other jobs of its [pipeline](pipelines.md)",
    Phase.THROTTLED: "waits for a seat at the vendor (`max_concurrent`), or the vendor said it is full",
    Phase.FETCHING: "the input's URL is being fetched",
    Phase.DISPATCHING: "the order is being placed; the intent is written before the call",
    Phase.GENERATING: "the vendor works",
    Phase.STORING: "the outputs are downloaded, opened and checked",
    Phase.RECONCILING: "the answer to an order was lost; the vendor is asked whether it has it",
    Phase.CANCELING: "the vendor is asked to stop",
    Phase.DONE: "nothing more happens",
}
OUTCOMES = {
    Outcome.SUCCEEDED: "it delivered",
    Outcome.FAILED: "the vendor refused or failed",
    Outcome.REFUSED: "the vendor was full; the job waits, or goes another way",
    Outcome.NOT_SENT: "the call provably never reached the vendor",
    Outcome.NEVER_ARRIVED: "the answer was lost, and the vendor has never seen the order",
    Outcome.UNKNOWN: "the answer was lost, and the vendor cannot be asked",
    Outcome.CANCELED: "stopped by a cancel",
    Outcome.ABANDONED: "a deadline passed while it was under way",
}
EVENTS = {
    EventType.QUEUED: "the job was accepted",
    EventType.STARTED: "a runner took it up",
    EventType.PROGRESS: "anything else changed: phase, progress, warnings, a cancel was asked for",
    **{event: f"it ended in `{state}`" for state, event in ENDINGS.items()},
}


BOXES = {
    State.QUEUED: Box(85, 190, "queued", width=120),
    State.RUNNING: Box(385, 190, "running", width=120),
    State.EXPIRED: Box(235, 50, "expired", kind="bad", width=120),
    State.CANCELING: Box(235, 360, "canceling", width=120),
    State.SUCCEEDED: Box(735, 100, "succeeded", kind="good", width=120),
    State.FAILED: Box(735, 235, "failed", kind="bad", width=120),
    State.CANCELED: Box(735, 360, "canceled", kind="bad", width=120),
}
PATHS: dict[tuple[State, State], tuple[tuple[tuple[int, int], ...], tuple[int, int] | None]] = {
    (State.QUEUED, State.RUNNING): (((145, 190), (325, 190)), None),
    (State.QUEUED, State.CANCELING): (((100, 214), (190, 334)), (120, 290)),
    (State.QUEUED, State.FAILED): (((130, 214), (675, 244)), (300, 240)),
    (State.QUEUED, State.EXPIRED): (((100, 166), (190, 76)), (134, 122)),
    (State.RUNNING, State.SUCCEEDED): (((445, 178), (675, 108)), (560, 136)),
    (State.RUNNING, State.FAILED): (((445, 196), (675, 228)), (540, 204)),
    (State.RUNNING, State.CANCELING): (((370, 214), (280, 334)), (350, 290)),
    (State.RUNNING, State.EXPIRED): (((370, 166), (280, 76)), (336, 122)),
    (State.CANCELING, State.CANCELED): (((295, 366), (675, 366)), (490, 386)),
    (State.CANCELING, State.SUCCEEDED): (((295, 346), (692, 126)), (470, 262)),
    (State.CANCELING, State.FAILED): (((295, 356), (675, 250)), (520, 322)),
}


def draw_picture() -> str:
    """Every state and every move; a move without a place here is a mistake."""
    arrows = [Arrow(((50, 112), (50, 166)), "accepted", (50, 104))]
    for start, ends in TRANSITIONS.items():
        for end, why in ends.items():
            path, at = PATHS[start, end]
            arrows.append(Arrow(path, why, at))
    return draw_boxes("The states of a job and the moves between them", 810, 410, list(BOXES.values()), arrows)


TEMPLATE = """# States of a job

This page is drawn from the table `TRANSITIONS` in `src/penstock/domain/jobs.py`; a test holds the two equal.

![The states of a job and the moves between them](pictures/states.svg)

The set of states is closed. A state in which `done` is true never changes. Clients loop on `done`.

| State | `done` | Meaning |
|---|---|---|
{states}

## Moves

| From | To | When |
|---|---|---|
{moves}

A cancel that comes too late changes nothing. A vendor that cannot stop a job goes on; what it delivers is kept, and
`warnings` says so. A job past its deadline while `canceling` ends as `canceled`.

## Phases

`phase` is finer truth inside a state. It is an open set: show it, do not branch on it.

| Phase | Meaning |
|---|---|
{phases}

## Outcomes of an attempt

Each of `attempts` is one order at one vendor; its `outcome` is null while it is under way.

| Outcome | Meaning |
|---|---|
{outcomes}

## Events

Every change of a job is one event, written in the same transaction. `sequence` counts a job's events from 1 without a
gap.

| Event | Meaning |
|---|---|
{events}
"""


def draw() -> str:
    """The whole page."""
    moves = [(start, end, why) for start, ends in TRANSITIONS.items() for end, why in ends.items()]
    return TEMPLATE.format(
        states="\n".join(f"| `{state}` | {str(state.done).lower()} | {MEANINGS[state]} |" for state in State),
        moves="\n".join(f"| `{start}` | `{end}` | {why} |" for start, end, why in moves),
        phases=_rows(PHASES, Phase),
        outcomes=_rows(OUTCOMES, Outcome),
        events=_rows(EVENTS, EventType),
    )


def _rows(meanings: dict, words: type[StrEnum]) -> str:
    return "\n".join(f"| `{word}` | {meanings[word]} |" for word in words)


if __name__ == "__main__":
    PAGE.write_text(draw())
    PICTURE.write_text(draw_picture())

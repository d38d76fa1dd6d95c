"""Draws docs/states.md and its picture from the one table of moves.

python tools/draw_states.py
"""

from enum import StrEnum
from pathlib import Path

from drawings import PICTURES, Arrow, Box
from drawings import draw as draw_boxes

from penstock.events import ENDINGS, EventType
from penstock.jobs import TRANSITIONS, Outcome, Phase, State

PAGE = Path(__file__).parents[1] / "docs" / "states.md"
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
    State.QUEUED: Box(100, 190, "queued"),
    State.RUNNING: Box(500, 190, "running"),
    State.EXPIRED: Box(300, 50, "expired", kind="bad"),
    State.CANCELING: Box(300, 360, "canceling"),
    State.SUCCEEDED: Box(900, 110, "succeeded", kind="good"),
    State.FAILED: Box(900, 240, "failed", kind="bad"),
    State.CANCELED: Box(900, 360, "canceled", kind="bad"),
}
PATHS: dict[tuple[State, State], tuple[tuple[tuple[int, int], ...], tuple[int, int] | None]] = {
    (State.QUEUED, State.RUNNING): (((175, 190), (425, 190)), None),
    (State.QUEUED, State.CANCELING): (((115, 214), (232, 334)), (150, 280)),
    (State.QUEUED, State.EXPIRED): (((115, 166), (232, 76)), (176, 126)),
    (State.RUNNING, State.SUCCEEDED): (((575, 180), (825, 120)), (700, 140)),
    (State.RUNNING, State.FAILED): (((575, 196), (825, 232)), (650, 196)),
    (State.RUNNING, State.CANCELING): (((480, 214), (368, 334)), (440, 280)),
    (State.RUNNING, State.EXPIRED): (((480, 166), (368, 76)), (428, 126)),
    (State.CANCELING, State.CANCELED): (((375, 366), (825, 366)), (600, 382)),
    (State.CANCELING, State.SUCCEEDED): (((375, 346), (845, 136)), (610, 256)),
    (State.CANCELING, State.FAILED): (((375, 356), (825, 256)), (640, 310)),
}


def draw_picture() -> str:
    """Every state and every move; a move without a place here is a mistake."""
    arrows = [Arrow(((50, 112), (50, 166)), "accepted", (50, 104))]
    for start, ends in TRANSITIONS.items():
        for end, why in ends.items():
            path, at = PATHS[start, end]
            arrows.append(Arrow(path, why, at))
    return draw_boxes("The states of a job and the moves between them", 1000, 410, list(BOXES.values()), arrows)


TEMPLATE = """# States of a job

This page is drawn from the table `TRANSITIONS` in `src/penstock/jobs.py`; a test holds the two equal.

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

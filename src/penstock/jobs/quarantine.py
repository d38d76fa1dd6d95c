"""Isolate jobs during whose risky step a process died, so that the next death shows which job caused it.

When a process dies, every job that it ran in a risky step (`jobs.RISKY`) becomes a suspect. From then on a suspect
takes that step in turn, as the only suspect of its process. It waits longer after its claim with each death. A process
that keeps restarting for another reason dies before that turn comes, so that no job is blamed.

A job that is not paid yet ends after `MAX_DEATHS`. A paid one is never ended by deaths, as it may be innocent:
processes may be killed from outside whenever its long download is under way. It is tried ever more rarely, until its
deadline.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from penstock.dispatch.vendor_seats import Seat, Seats

MAX_DEATHS: Final = 5
"""Process deaths in one step after which a job ends: one beside other jobs, the others as the only suspect."""
PAUSE_SECONDS: Final = (0.0, 3.0, 9.0, 27.0)
"""Seconds between the claim of a suspect and its step, by the number of deaths."""
MAX_PAUSE_SECONDS: Final = 900.0
"""The longest such pause. After the last one in the table, each is three times as long."""
TURN_SECONDS: Final = 5.0
"""Seconds after which the next suspect no longer waits for this turn. A death is then blamed on neither."""
TURNS_QUEUE: Final = "turns"


class RiskLevel(IntEnum):
    """Values of the column `at_risk`: the mark of a risky step."""

    NONE = 0
    SHARED = 1
    ALONE = 2


class Quarantine:
    """The turns of the suspects in one process, given to accounts in rotation."""

    def __init__(self, turn_seconds: float = TURN_SECONDS, steady: Callable[[], float] = time.monotonic) -> None:
        self._turn_seconds = turn_seconds
        self._steady = steady
        self._seats = Seats(lambda _: 1 + len(self._overdue))
        self._inside: dict[str, asyncio.TimerHandle] = {}
        self._overdue: set[str] = set()

    def enter(self, deaths: int) -> "Risk":
        """Return the risk of a job that this process has claimed."""
        return Risk(self, deaths, self._steady())

    def wait_left(self, risk: "Risk") -> float:
        """Return the seconds until a suspect may ask for its turn."""
        beyond = max(0, risk.deaths - len(PAUSE_SECONDS))
        pause = PAUSE_SECONDS[risk.deaths - beyond - 1] * 3.0 ** min(beyond, 10)
        pause = min(pause, MAX_PAUSE_SECONDS)
        return risk.claimed_at + pause - self._steady()

    def ask(self, account_id: str, job_id: str) -> Seat:
        """Queue for a turn."""
        return self._seats.ask(TURNS_QUEUE, account_id, job_id, at_once=False)

    def begin(self, turn: Seat) -> list[str]:
        """Begin a granted turn. Return the ids of the jobs whose turns are overdue and still run beside it."""
        others = list(self._inside)
        later = asyncio.get_running_loop().call_later(self._turn_seconds, self._overrun, turn.job_id)
        self._inside[turn.job_id] = later
        return others

    def end(self, turn: Seat) -> None:
        """End a turn, begun or not."""
        timer = self._inside.pop(turn.job_id, None)
        if timer is not None:
            timer.cancel()
        self._overdue.discard(turn.job_id)
        self._seats.give_back(turn)

    def _overrun(self, job_id: str) -> None:
        self._overdue.add(job_id)
        self._seats.refill()


@dataclass(slots=True)
class Risk:
    """Risk of one claimed job: the deaths so far, the mark in its row, and its turn."""

    quarantine: Quarantine
    deaths: int
    claimed_at: float
    level: RiskLevel = RiskLevel.NONE
    turn: Seat | None = None
    beside: list[str] = field(default_factory=list[str])
    has_begun: bool = False

    @property
    def lacks_turn(self) -> bool:
        """Return whether the job is a suspect and its turn has not begun."""
        return self.deaths > 0 and not self.has_begun

    @property
    def wanted(self) -> RiskLevel:
        """The mark of a risky step that begins now."""
        return RiskLevel.ALONE if self.has_begun and not self.beside else RiskLevel.SHARED

    def ask(self, account_id: str, job_id: str) -> Seat:
        """Queue for a turn, unless the job already does."""
        self.turn = self.turn or self.quarantine.ask(account_id, job_id)
        return self.turn

    def begin(self, turn: Seat) -> None:
        """Begin the turn."""
        self.beside, self.has_begun = self.quarantine.begin(turn), True

    def end_turn(self) -> None:
        """End the turn, if there is one, so that the next suspect can have it."""
        if self.turn is not None:
            self.quarantine.end(self.turn)
        self.turn, self.beside, self.has_begun = None, [], False

    def advance(self) -> None:
        """Clear the suspicion: the process survived the step."""
        self.deaths = 0
        self.end_turn()

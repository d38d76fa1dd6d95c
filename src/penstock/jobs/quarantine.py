"""Keeps jobs apart at whose risky step a process has died, so that further deaths are those of the guilty one.

A process that dies leaves all jobs as suspects that were in a risky step there (`jobs.RISKY`). From then on a suspect
takes its step in turn, as the only suspect of its process, and ever longer after it was claimed: a process that is
restarted again and again, for whatever reason, dies before that turn comes, and nobody is blamed for it.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from penstock.dispatch.vendor_seats import Seat, Seats

MAX_DEATHS: Final = 5
"""After so many deaths of processes in one step of a job it ends: the first beside others, the rest as the suspect."""
PAUSE_SECONDS: Final = (0.0, 3.0, 9.0, 27.0)
"""Seconds after its claim at which a suspect begins its step, by the number of deaths."""
TURN_SECONDS: Final = 5.0
"""After so long in its turn a suspect no longer keeps the next one waiting; a death is then neither's."""
TURNS: Final = "turns"


class RiskLevel(IntEnum):
    """Marks of a row's risky step, in `at_risk`."""

    NONE = 0
    SHARED = 1
    ALONE = 2


class Quarantine:
    """The turns of one process's suspects; accounts take them in rotation."""

    def __init__(self, turn_seconds: float = TURN_SECONDS, steady: Callable[[], float] = time.monotonic) -> None:
        self._turn_seconds = turn_seconds
        self._steady = steady
        self._seats = Seats(lambda _: 1 + len(self._watchdog))
        self._inside: dict[str, asyncio.TimerHandle] = {}
        self._watchdog: set[str] = set()

    def enter(self, deaths: int) -> "Risk":
        """Begin to watch over a job that this process has claimed."""
        return Risk(self, deaths, self._steady())

    def wait_left(self, risk: "Risk") -> float:
        """Return the seconds until a suspect may ask for its turn."""
        pause = PAUSE_SECONDS[min(risk.deaths, len(PAUSE_SECONDS)) - 1]
        return risk.claimed_at + pause - self._steady()

    def ask(self, account_id: str, job_id: str) -> Seat:
        """Queue for a turn."""
        return self._seats.ask(TURNS, account_id, job_id, at_once=False)

    def begin(self, turn: Seat) -> list[str]:
        """Begin a granted turn, and return the ids of the jobs whose turns have lasted too long to be waited for."""
        others = list(self._inside)
        later = asyncio.get_running_loop().call_later(self._turn_seconds, self._overrun, turn.job_id)
        self._inside[turn.job_id] = later
        return others

    def end(self, turn: Seat) -> None:
        """End a turn, begun or not."""
        timer = self._inside.pop(turn.job_id, None)
        if timer is not None:
            timer.cancel()
        self._watchdog.discard(turn.job_id)
        self._seats.give_back(turn)

    def _overrun(self, job_id: str) -> None:
        self._watchdog.add(job_id)
        self._seats.refill()


@dataclass(slots=True)
class Risk:
    """One claimed job's risk: the deaths so far, how its row is marked, and its turn."""

    quarantine: Quarantine
    deaths: int
    claimed_at: float
    level: RiskLevel = RiskLevel.NONE
    turn: Seat | None = None
    beside: list[str] = field(default_factory=list[str])
    has_begun: bool = False

    @property
    def lacks_turn(self) -> bool:
        """Tell whether the job is a suspect, and it is not its turn."""
        return self.deaths > 0 and not self.has_begun

    @property
    def wanted(self) -> RiskLevel:
        """The mark of a risky step that begins now."""
        return RiskLevel.ALONE if self.has_begun and not self.beside else RiskLevel.SHARED

    def ask(self, account_id: str, job_id: str) -> Seat:
        """Queue for a turn, once."""
        self.turn = self.turn or self.quarantine.ask(account_id, job_id)
        return self.turn

    def begin(self, turn: Seat) -> None:
        """Begin the turn."""
        self.beside, self.has_begun = self.quarantine.begin(turn), True

    def end_turn(self) -> None:
        """Let the next suspect have its turn."""
        if self.turn is not None:
            self.quarantine.end(self.turn)
        self.turn, self.beside, self.has_begun = None, [], False

    def advance(self) -> None:
        """Note that the step was survived: the job is no suspect any more."""
        self.deaths = 0
        self.end_turn()

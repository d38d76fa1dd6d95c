"""Rules of pace: in a calm world a job starts at once, and after all faults every job makes progress."""

from collections import Counter
from typing import Final

from simulation.world import World

from penstock.domain.jobs import Job, State

START_SECONDS: Final = 1.0
"""The longest wait of a job for a free seat. A lost bell takes the safety net of the dispatch, which is slower."""
FREE_SEATS: Final = 2
"""Seats of a vendor that must be free when a job is queued: others may be queued at the same moment."""
STALL_SECONDS: Final = 150.0
"""The longest time without any event after all faults.

The longest script takes 20 s, two backoffs 60 s, the last pause of a suspect 27 s, and a takeover 5 s.
A job that waits for a vendor's seat goes on whenever another job gets one. Each job can do so once at each vendor, so
the wait has an end.
"""


class PaceRules:
    """Watches how fast the jobs of one world go on."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.is_calm = False
        self.seats: dict[str, int] = {}
        self._running: dict[str, str] = {}
        self._states: dict[str, State] = {}
        self._moved_at: dict[str, float] = {}
        self._waiting: dict[str, str] = {}
        """The vendors of jobs that wait for a seat, by job id."""
        self._seated: set[tuple[str, str]] = set()
        """Jobs that had a seat, each with the vendor."""
        self._seated_at: dict[str, float] = {}
        self._healed_at = 0.0

    def observe(self, job: Job) -> None:
        """Note an event of a job."""
        if self.is_calm and job.state is State.QUEUED and job.id not in self._states and self._has_room(job.vendor):
            self._world.later(START_SECONDS, self._check_started, job.id)
        self._states[job.id] = job.state
        self._observe_seat(job)
        if job.done:
            self._running.pop(job.id, None)
            self._moved_at.pop(job.id, None)
        else:
            self._moved_at[job.id] = self._world.now
            self._running[job.id] = job.vendor

    def _observe_seat(self, job: Job) -> None:
        """Note whether a job waits for a seat. It has one once its order at the vendor is intended."""
        if any(attempt.vendor == job.vendor for attempt in job.attempts):
            self._waiting.pop(job.id, None)
            if (job.id, job.vendor) not in self._seated:
                self._seated.add((job.id, job.vendor))
                self._seated_at[job.vendor] = self._world.now
        elif job.state in (State.QUEUED, State.RUNNING):
            self._waiting[job.id] = job.vendor
        else:
            self._waiting.pop(job.id, None)

    @property
    def seated_at(self) -> float:
        """Return the time of the last fault, or that at which a job got a seat if it is later."""
        return max(self._healed_at, *self._seated_at.values(), 0.0)

    def watch(self) -> None:
        """Check from now on, every few seconds, that no job stalls."""
        self._healed_at = self._world.now
        self._world.later(10.0, self._check_stalls)

    def _check_stalls(self) -> None:
        for job_id, moved_at in self._moved_at.items():
            queue_moved_at = self._seated_at.get(self._waiting.get(job_id, ""), 0.0)
            if self._world.now - max(moved_at, queue_moved_at, self._healed_at) > STALL_SECONDS:
                what = f"{job_id} is {self._states[job_id]} since {moved_at:.1f}"
                self._world.violate("no job stalls after the faults", what)
        if self._moved_at and not self._world.is_over:
            self._world.later(10.0, self._check_stalls)

    def _has_room(self, vendor: str) -> bool:
        taken = Counter(self._running.values())[vendor]
        return taken + FREE_SEATS < self.seats.get(vendor, 0)

    def _check_started(self, job_id: str) -> None:
        if self._states[job_id] is State.QUEUED:
            self._world.violate("a job with a free seat starts at once", f"{job_id} waits for {START_SECONDS:g} s")

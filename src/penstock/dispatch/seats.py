"""A vendor's seats: how many jobs it takes at once, and who waits for one, first come first served."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(eq=False, slots=True)
class Seat:
    """One job's place at a vendor: waiting until `granted` is set."""

    vendor: str
    job_id: str
    granted: asyncio.Event = field(default_factory=asyncio.Event)


class Seats:
    """Counts by job, not by call: whoever was granted a seat keeps it until the job ends."""

    def __init__(self, limit: Callable[[str], int]) -> None:
        self._limit = limit
        self._taken: defaultdict[str, int] = defaultdict(int)
        self._waiting: defaultdict[str, dict[str, Seat]] = defaultdict(dict)  # in order of arrival

    def ask(self, vendor: str, job_id: str, *, at_once: bool) -> Seat:
        """A seat for this job; `at_once` for one that the vendor already works on, limit or not."""
        seat = Seat(vendor, job_id)
        if at_once:
            self._grant(seat)
        else:
            self._waiting[vendor][job_id] = seat
            self._fill(vendor)
        return seat

    def give_back(self, seat: Seat) -> None:
        """The job has ended, or no longer wants its seat."""
        if seat.granted.is_set():
            self._taken[seat.vendor] -= 1
        else:
            waiting = self._waiting[seat.vendor]
            if waiting.get(seat.job_id) is seat:
                del waiting[seat.job_id]
        self._fill(seat.vendor)

    def refill(self) -> None:
        """The limits may have changed: grant what they allow now."""
        for vendor in list(self._waiting):
            self._fill(vendor)

    def position(self, job_id: str) -> int | None:
        """How many wait before this job; None if it does not wait."""
        for queue in self._waiting.values():
            if job_id in queue:
                return list(queue).index(job_id)
        return None

    def _grant(self, seat: Seat) -> None:
        self._taken[seat.vendor] += 1
        seat.granted.set()

    def _fill(self, vendor: str) -> None:
        queue = self._waiting[vendor]
        while queue and self._taken[vendor] < self._limit(vendor):
            self._grant(queue.pop(next(iter(queue))))

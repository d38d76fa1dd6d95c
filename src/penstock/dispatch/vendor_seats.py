"""A vendor's seats: how many jobs it takes at once, and who waits for one, the accounts in turn."""

import asyncio
from bisect import bisect_left
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from operator import attrgetter


@dataclass(eq=False, slots=True)
class Seat:
    """One job's place at a vendor: waiting until `granted` is set."""

    vendor: str
    account_id: str
    job_id: str
    number: int = 0
    """In order of arrival."""
    granted: asyncio.Event = field(default_factory=asyncio.Event)


class _Line:
    """The seats that one account waits for at one vendor, first come first served."""

    __slots__ = ("_first", "_seats", "length")

    def __init__(self) -> None:
        self._seats: list[Seat] = []
        self._first = 0  # what stands before it was taken: moving all others up each time would cost too much
        self.length = 0

    def join(self, seat: Seat) -> None:
        self._seats.append(seat)
        self.length += 1

    def take_first(self) -> Seat:
        seat = self._seats[self._first]
        self._first += 1
        self.length -= 1
        if self._first > self.length:
            del self._seats[: self._first]
            self._first = 0
        return seat

    def place_of(self, seat: Seat) -> int:
        return bisect_left(self._seats, seat.number, self._first, key=attrgetter("number")) - self._first

    def leave(self, seat: Seat) -> None:
        del self._seats[self._first + self.place_of(seat)]
        self.length -= 1


class _Ring:
    """The lines of the accounts that wait at one vendor: whose turn it is stands first, and none is empty."""

    __slots__ = ("_lines", "_longer")

    def __init__(self) -> None:
        self._lines: OrderedDict[str, _Line] = OrderedDict()
        self._longer: list[int] = []  # how many lines are longer than 0, 1, 2 …

    def __bool__(self) -> bool:
        return bool(self._lines)

    def join(self, seat: Seat) -> None:
        line = self._lines.setdefault(seat.account_id, _Line())
        if line.length == len(self._longer):
            self._longer.append(0)
        self._longer[line.length] += 1
        line.join(seat)

    def take_next(self) -> Seat:
        account_id, line = next(iter(self._lines.items()))
        seat = line.take_first()
        self._lines.move_to_end(account_id)
        self._shorten(account_id, line)
        return seat

    def leave(self, seat: Seat) -> None:
        line = self._lines[seat.account_id]
        line.leave(seat)
        self._shorten(seat.account_id, line)

    def _shorten(self, account_id: str, line: _Line) -> None:
        self._longer[line.length] -= 1
        if not self._longer[-1]:
            self._longer.pop()
        if not line.length:
            del self._lines[account_id]

    def position_of(self, seat: Seat) -> int:
        """As many rounds as it has own jobs before it, and in its own round those whose turn is earlier."""
        own = self._lines[seat.account_id].place_of(seat)
        before = sum(self._longer[:own])
        for account_id, line in self._lines.items():
            if account_id == seat.account_id:
                break
            before += line.length > own
        return before


class Seats:
    """Counts by job, not by call: whoever was granted a seat keeps it until the job ends.

    Accounts that wait for the same vendor are granted one seat each in turn, so that nobody waits for more than one
    job of each other account before their next one, however many jobs those have waiting.
    """

    def __init__(self, limit: Callable[[str], int]) -> None:
        self._limit = limit
        self._taken: defaultdict[str, int] = defaultdict(int)
        self._rings: defaultdict[str, _Ring] = defaultdict(_Ring)
        self._waiting: dict[str, Seat] = {}
        """By job; of one that asked twice, the later seat."""
        self._numbers = count()

    def ask(self, vendor: str, account_id: str, job_id: str, *, at_once: bool) -> Seat:
        """A seat for this job; `at_once` for one that the vendor already works on, limit or not."""
        seat = Seat(vendor, account_id, job_id, next(self._numbers))
        if at_once:
            self._grant(seat)
        else:
            self._rings[vendor].join(seat)
            self._waiting[job_id] = seat
            self._fill(vendor)
        return seat

    def give_back(self, seat: Seat) -> None:
        """The job has ended, or no longer wants its seat."""
        if seat.granted.is_set():
            self._taken[seat.vendor] -= 1
        else:
            self._rings[seat.vendor].leave(seat)
            self._forget(seat)
        self._fill(seat.vendor)

    def refill(self) -> None:
        """The limits may have changed: grant what they allow now."""
        for vendor in list(self._rings):
            self._fill(vendor)

    def position(self, job_id: str) -> int | None:
        """How many will be seated before this job if nobody else comes; None if it does not wait."""
        seat = self._waiting.get(job_id)
        return None if seat is None else self._rings[seat.vendor].position_of(seat)

    def _grant(self, seat: Seat) -> None:
        self._taken[seat.vendor] += 1
        seat.granted.set()

    def _fill(self, vendor: str) -> None:
        ring = self._rings[vendor]
        while ring and self._taken[vendor] < self._limit(vendor):
            seat = ring.take_next()
            self._forget(seat)
            self._grant(seat)

    def _forget(self, seat: Seat) -> None:
        if self._waiting.get(seat.job_id) is seat:
            del self._waiting[seat.job_id]

"""Seats at vendors: a limit of jobs at once, granted to waiting accounts in turn."""

import asyncio
from bisect import bisect_left
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from operator import attrgetter


@dataclass(eq=False, slots=True)
class Seat:
    """One job's seat at a vendor. The job waits until `granted` is set."""

    vendor: str
    account_id: str
    job_id: str
    number: int = 0
    """Ascending in order of arrival."""
    granted: asyncio.Event = field(default_factory=asyncio.Event)


class _AccountQueue:
    """The queue of one account at one vendor, first come first served."""

    __slots__ = ("_first", "_seats", "length")

    def __init__(self) -> None:
        self._seats: list[Seat] = []
        self._first = 0  # earlier items are taken: shifting the list each time would cost too much
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

    def index_of(self, seat: Seat) -> int:
        return bisect_left(self._seats, seat.number, self._first, key=attrgetter("number")) - self._first

    def leave(self, seat: Seat) -> None:
        del self._seats[self._first + self.index_of(seat)]
        self.length -= 1


class _VendorQueue:
    """The queues of all accounts that wait at one vendor, in the order of their turns. None is empty."""

    __slots__ = ("_longer", "_queues")

    def __init__(self) -> None:
        self._queues: OrderedDict[str, _AccountQueue] = OrderedDict()
        self._longer: list[int] = []  # the number of queues longer than 0, 1, 2 …

    def __bool__(self) -> bool:
        return bool(self._queues)

    def join(self, seat: Seat) -> None:
        queue = self._queues.setdefault(seat.account_id, _AccountQueue())
        if queue.length == len(self._longer):
            self._longer.append(0)
        self._longer[queue.length] += 1
        queue.join(seat)

    def take_next(self) -> Seat:
        account_id, queue = next(iter(self._queues.items()))
        seat = queue.take_first()
        self._queues.move_to_end(account_id)
        self._shorten(account_id, queue)
        return seat

    def leave(self, seat: Seat) -> None:
        queue = self._queues[seat.account_id]
        queue.leave(seat)
        self._shorten(seat.account_id, queue)

    def _shorten(self, account_id: str, queue: _AccountQueue) -> None:
        self._longer[queue.length] -= 1
        if not self._longer[-1]:
            self._longer.pop()
        if not queue.length:
            del self._queues[account_id]

    def position_of(self, seat: Seat) -> int:
        """Count the seats granted before this one: one per account and round, up to its turn in its own round."""
        own = self._queues[seat.account_id].index_of(seat)
        before = sum(self._longer[:own])
        for account_id, queue in self._queues.items():
            if account_id == seat.account_id:
                break
            before += queue.length > own
        return before


class Seats:
    """The seats of all vendors. A job keeps its seat until it ends.

    Accounts that wait for a vendor are granted one seat each in turn. Between two jobs of an account, at most one job
    of each other account is seated, however many jobs wait.
    """

    def __init__(self, limit: Callable[[str], int]) -> None:
        self._limit = limit
        self._taken: defaultdict[str, int] = defaultdict(int)
        self._by_vendor: defaultdict[str, _VendorQueue] = defaultdict(_VendorQueue)
        self._waiting: dict[str, Seat] = {}
        """By job id. If a job asked twice, the later seat."""
        self._numbers = count()

    def ask(self, vendor: str, account_id: str, job_id: str, *, at_once: bool) -> Seat:
        """Request a seat for a job. `at_once` ignores the limit, for a job that the vendor already works on."""
        seat = Seat(vendor, account_id, job_id, next(self._numbers))
        if at_once:
            self._grant(seat)
        else:
            self._by_vendor[vendor].join(seat)
            self._waiting[job_id] = seat
            self._fill(vendor)
        return seat

    def give_back(self, seat: Seat) -> None:
        """Free the seat of a job that has ended, or cancel its request."""
        if seat.granted.is_set():
            self._taken[seat.vendor] -= 1
        else:
            self._by_vendor[seat.vendor].leave(seat)
            self._forget(seat)
        self._fill(seat.vendor)

    def refill(self) -> None:
        """Grant the seats that the limits allow now, after they may have changed."""
        for vendor in list(self._by_vendor):
            self._fill(vendor)

    def position(self, job_id: str) -> int | None:
        """Return the number of jobs to be seated before this one, or None if it does not wait."""
        seat = self._waiting.get(job_id)
        return None if seat is None else self._by_vendor[seat.vendor].position_of(seat)

    def _grant(self, seat: Seat) -> None:
        self._taken[seat.vendor] += 1
        seat.granted.set()

    def _fill(self, vendor: str) -> None:
        waiting = self._by_vendor[vendor]
        while waiting and self._taken[vendor] < self._limit(vendor):
            seat = waiting.take_next()
            self._forget(seat)
            self._grant(seat)

    def _forget(self, seat: Seat) -> None:
        if self._waiting.get(seat.job_id) is seat:
            del self._waiting[seat.job_id]

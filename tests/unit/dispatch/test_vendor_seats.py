"""Seats: never more than the limit except for what already runs, the accounts in turn, none lost."""

from collections.abc import Iterable
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as some
from work import count_lines

from penstock.dispatch.vendor_seats import Seat, Seats


def ask(seats: Seats, *job_ids: str, vendor: str = "sim", account: str = "one") -> list[Seat]:
    return [seats.ask(vendor, account, job_id, at_once=False) for job_id in job_ids]


def granted(*given_seats: Seat) -> list[bool]:
    return [seat.granted.is_set() for seat in given_seats]


def seat_next(seats: Seats, sitting: Seat, waiting: Iterable[Seat]) -> Seat:
    """Give a vendor's only seat back; who gets it."""
    seats.give_back(sitting)
    (found,) = (seat for seat in waiting if seat.granted.is_set() and seat is not sitting)
    return found


def test_within_an_account_first_come_first_served():
    seats = Seats(lambda _: 2)
    one, two, three, four = ask(seats, "1", "2", "3", "4")
    assert granted(one, two, three, four) == [True, True, False, False]
    assert [seats.position(job_id) for job_id in "1234"] == [None, None, 0, 1]
    seats.give_back(two)
    assert granted(three, four) == [True, False]
    assert seats.position("4") == 0


def test_who_leaves_the_queue_frees_no_seat_and_moves_the_others_up():
    seats = Seats(lambda _: 1)
    one, two, three = ask(seats, "1", "2", "3")
    seats.give_back(two)
    assert granted(one, two, three) == [True, False, False]
    assert seats.position("2") is None
    assert seats.position("3") == 0
    seats.give_back(one)
    assert granted(three) == [True]


def test_what_the_vendor_already_works_on_sits_at_once_and_counts():
    seats = Seats(lambda _: 1)
    (waiting,) = ask(seats, "new")
    running = [seats.ask("sim", "one", f"old{number}", at_once=True) for number in range(3)]
    assert all(granted(*running))
    seats.give_back(waiting)
    (late,) = ask(seats, "late")
    for seat in running[:-1]:
        seats.give_back(seat)
        assert granted(late) == [False]
    seats.give_back(running[-1])
    assert granted(late) == [True]


def test_vendors_do_not_wait_for_each_other():
    seats = Seats(lambda vendor: {"slow": 1, "fast": 1}[vendor])
    ask(seats, "1", "2", vendor="slow")
    assert granted(*ask(seats, "3", vendor="fast")) == [True]


def test_a_raised_limit_counts_from_the_next_change():
    limit = 1
    seats = Seats(lambda _: limit)
    one, two, three = ask(seats, "1", "2", "3")
    limit = 3
    seats.give_back(one)
    assert granted(two, three) == [True, True]


def test_an_unknown_job_waits_for_nothing():
    assert Seats(lambda _: 1).position("job_nowhere") is None


# -- between accounts


def test_accounts_are_seated_in_turn_however_many_jobs_they_have():
    seats = Seats(lambda _: 1)
    (sitting,) = ask(seats, "sitting", account="big")
    big = ask(seats, *(f"big {number}" for number in range(10_000)), account="big")
    (small,) = ask(seats, "small", account="small")
    late, later = ask(seats, "late", "later", account="late")
    order = [big[0], small, late, big[1], later, big[2]]
    assert [seats.position(seat.job_id) for seat in order] == list(range(6))
    assert seats.position("big 9999") == 9999 + 3
    waiting = list(order)
    for expected in order:
        sitting = seat_next(seats, sitting, waiting)
        waiting.remove(sitting)
        assert sitting is expected


def test_who_always_has_one_job_waiting_gets_every_second_seat():
    seats = Seats(lambda _: 1)
    (sitting,) = ask(seats, "sitting", account="big")
    waiting = ask(seats, *(str(number) for number in range(50)), account="big")
    turns: list[str] = []
    for number in range(10):
        waiting += ask(seats, f"single {number}", account="small")
        for _ in range(2):
            sitting = seat_next(seats, sitting, waiting)
            waiting.remove(sitting)
            turns.append(sitting.account_id)
    assert turns == ["big", "small"] * 10


def test_looking_at_many_waiting_jobs_is_cheap():
    seats = Seats(lambda _: 0)
    for number in range(10_000):
        ask(seats, f"job {number}", account=f"account {number % 20}")
    positions: list[int | None] = []
    lines = count_lines(lambda: positions.extend(seats.position(f"job {number}") for number in range(10_000)))
    assert sorted(position or 0 for position in positions) == list(range(10_000))
    assert lines < 10_000 * 5 * 20  # a few for each account: none for each job that waits


class Ring:
    """The same rules without any thought of speed: who waits, in the order in which seats will be granted."""

    def __init__(self) -> None:
        self.lines: dict[str, list[Seat]] = {}

    def join(self, seat: Seat) -> None:
        self.lines.setdefault(seat.account_id, []).append(seat)

    def leave(self, seat: Seat) -> None:
        self.lines[seat.account_id].remove(seat)
        self.lines = {account: line for account, line in self.lines.items() if line}

    def order(self) -> list[Seat]:
        lines = {account: list(line) for account, line in self.lines.items()}
        found: list[Seat] = []
        while lines:
            found += [line.pop(0) for line in lines.values()]
            lines = {account: line for account, line in lines.items() if line}
        return found

    def turn(self) -> Seat:
        """Whoever is next, who goes to the end of the ring."""
        account, line = next(iter(self.lines.items()))
        seat = line.pop(0)
        del self.lines[account]
        if line:
            self.lines[account] = line
        return seat


DEEDS = some.lists(
    some.tuples(some.sampled_from(["ask", "ask", "at once", "give back"]), some.integers(0, 3)), max_size=60
)


@given(some.integers(0, 4), DEEDS, some.data())
def test_any_history_keeps_the_limit_and_the_turns(limit: int, deeds: list[tuple[str, int]], data: some.DataObject):
    seats, ring = Seats(lambda _: limit), Ring()
    there: list[Seat] = []
    taken = 0
    for number, (deed, account) in enumerate(deeds):
        if deed != "give back":
            seat = seats.ask("sim", f"account {account}", str(number), at_once=deed == "at once")
            there.append(seat)
            if deed == "at once":
                taken += 1
            else:
                ring.join(seat)
        elif there:
            seat = there.pop(data.draw(some.integers(0, len(there) - 1)))
            if seat in ring.order():
                ring.leave(seat)
            else:
                taken -= 1
            seats.give_back(seat)
        while ring.lines and taken < limit:
            assert ring.turn().granted.is_set()
            taken += 1
        waiting = ring.order()
        assert sum(granted(*there)) == taken, "a seat was lost, or given beyond the limit"
        assert not any(granted(*waiting))
        assert [seats.position(seat.job_id) for seat in waiting] == list(range(len(waiting)))


@given(some.lists(some.integers(1, 9), min_size=2, max_size=5))
def test_between_two_jobs_of_one_account_everyone_who_waits_gets_one(numbers: list[int]):
    seats = Seats(lambda _: 1)
    (sitting,) = ask(seats, "sitting", account="nobody")
    waiting = [
        seat for account, many in enumerate(numbers) for seat in ask(seats, *"123456789"[:many], account=str(account))
    ]
    left = list(waiting)
    turns: list[str] = []
    while left:
        sitting = seat_next(seats, sitting, left)
        left.remove(sitting)
        turns.append(sitting.account_id)
    for account, many in enumerate(numbers):
        mine = [place for place, turn in enumerate(turns) if turn == str(account)]
        for (here, there), round_ in zip(pairwise(mine), range(1, many), strict=True):
            others = {str(other) for other, have in enumerate(numbers) if have > round_ and other != account}
            assert others <= set(turns[here:there])


# -- journeys


def test_a_job_that_goes_to_another_vendor_is_counted_there_and_no_longer_here():
    seats = Seats(lambda _: 1)
    (here,) = ask(seats, "job", vendor="first")
    (sitting,) = ask(seats, "other", vendor="second")
    (there,) = ask(seats, "job", vendor="second")  # asked for before the first seat is given back
    assert granted(here, sitting, there) == [True, True, False]
    assert seats.position("job") == 0
    seats.give_back(here)
    assert granted(*ask(seats, "next", vendor="first")) == [True]
    seats.give_back(sitting)
    assert granted(there) == [True]
    assert seats.position("job") is None


def test_a_job_that_comes_again_to_the_same_vendor_waits_for_its_own_old_seat():
    seats = Seats(lambda _: 1)
    (old,) = ask(seats, "job")
    (new,) = ask(seats, "job")
    assert granted(old, new) == [True, False]
    seats.give_back(old)
    assert granted(new) == [True]
    seats.give_back(new)
    assert granted(*ask(seats, "next")) == [True]


@given(some.lists(some.tuples(some.integers(0, 3), some.sampled_from(["first", "second"])), max_size=50))
def test_no_journey_between_vendors_loses_a_seat_or_makes_one(moves: list[tuple[int, str]]):
    seats = Seats(lambda _: 1)
    held: dict[int, Seat] = {}
    for job, vendor in moves:
        if job in held and not held[job].granted.is_set():
            continue  # who has not been seated was not refused either
        new = seats.ask(vendor, f"account {job % 2}", str(job), at_once=False)
        if job in held:
            seats.give_back(held[job])
        held[job] = new
        for name in ("first", "second"):
            there = [seat for seat in held.values() if seat.vendor == name]
            assert sum(seat.granted.is_set() for seat in there) == min(1, len(there))
    for seat in held.values():
        seats.give_back(seat)
    assert all(granted(*ask(seats, "last", vendor=name)) == [True] for name in ("first", "second"))

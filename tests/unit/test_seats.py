"""Seats: never more than the limit except for what already runs, first come first served, none lost."""

import random

from hypothesis import given
from hypothesis import strategies as some

from penstock.dispatch.seats import Seat, Seats


def ask(seats: Seats, *job_ids: str, vendor: str = "sim") -> list[Seat]:
    return [seats.ask(vendor, job_id, at_once=False) for job_id in job_ids]


def granted(*given_seats: Seat) -> list[bool]:
    return [seat.granted.is_set() for seat in given_seats]


def test_first_come_first_served():
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
    running = [seats.ask("sim", f"old{number}", at_once=True) for number in range(3)]
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


@given(some.integers(1, 4), some.lists(some.sampled_from(["ask", "at_once", "give_back"]), max_size=60), some.randoms())
def test_any_history_keeps_the_limit_and_the_order(limit: int, history: list[str], chance: random.Random):
    seats = Seats(lambda _: limit)
    open_seats: list[Seat] = []  # in order of arrival
    privileged: set[Seat] = set()
    seated: set[Seat] = set()
    for number, deed in enumerate(history):
        if deed == "give_back":
            if open_seats:
                seats.give_back(open_seats.pop(chance.randrange(len(open_seats))))
        else:
            seat = seats.ask("sim", str(number), at_once=deed == "at_once")
            open_seats.append(seat)
            if deed == "at_once":
                privileged.add(seat)
        taken = [seat for seat in open_seats if seat.granted.is_set()]
        waiting = [seat for seat in open_seats if not seat.granted.is_set()]
        if set(taken) - seated - privileged:
            assert len(taken) <= limit, "a new job was let in beyond the limit"
        seated = set(taken)
        assert not (waiting and len(taken) < limit), "a seat stands empty while someone waits"
        assert [seats.position(seat.job_id) for seat in waiting] == list(range(len(waiting)))
        plain = [seat.granted.is_set() for seat in open_seats if seat not in privileged]
        assert plain == sorted(plain, reverse=True), "someone was passed over"


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
        new = seats.ask(vendor, str(job), at_once=False)
        if job in held:
            seats.give_back(held[job])
        held[job] = new
        for name in ("first", "second"):
            there = [seat for seat in held.values() if seat.vendor == name]
            assert sum(seat.granted.is_set() for seat in there) == min(1, len(there))
    for seat in held.values():
        seats.give_back(seat)
    assert all(granted(*ask(seats, "last", vendor=name)) == [True] for name in ("first", "second"))

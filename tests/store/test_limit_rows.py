"""Buckets never give more than they hold and what fills them, waits that follow are true; slots never leak."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from sqlalchemy import Connection
from store.trials import set_store_clock, undone

from penstock.store.queries.billing import limit_rows
from penstock.store.queries.billing.limit_rows import SLOT_SECONDS, BucketLevel, Owed

EPSILON = 1e-6
NOW = 1_700_000_000.0
limits = some.integers(1, 100_000)
pauses = some.floats(0, 120)
calmly = settings(max_examples=25)


# -- buckets


class Bucket:
    """One bucket in a store."""

    def __init__(self, connection: Connection, limit: int) -> None:
        self.connection = connection
        self.limit = limit

    def take(self, now: float, least: float, want: float | None = None, owed: float = 0.0) -> BucketLevel:
        want = least if want is None else want
        return limit_rows.take(self.connection, "key", "tokens", self.limit, now, least=least, want=want, owed=owed)

    def owe(self, now: float, owed: float) -> None:
        limit_rows.owe(self.connection, [Owed("key", "tokens", self.limit, owed)], now)

    def level(self, now: float) -> float:
        """What is in it now; looking changes nothing."""
        self.connection.exec_driver_sql("SAVEPOINT look")
        found = self.take(now, float("inf"))
        self.connection.exec_driver_sql("ROLLBACK TO look")
        self.connection.exec_driver_sql("RELEASE look")
        return found.left


def check_windows(taken: list[tuple[float, float]], limit: int, apart: float = 0.0) -> None:
    """In no window more than a full bucket and what flows in, by clocks that are so far apart."""
    for start, (began, _) in enumerate(taken):
        total = 0.0
        for at, amount in taken[start:]:
            total += amount
            assert total <= (limit + (at - began + apart) * limit / 60) * (1 + EPSILON) + EPSILON


@calmly
@given(limits, some.lists(some.tuples(pauses, some.floats(0, 1), some.floats(0, 2)), min_size=1, max_size=30))
def test_in_no_window_is_more_taken_than_the_limit_and_what_flows_in(trial, limit, asks):
    with undone(trial) as connection:
        bucket, now, taken = Bucket(connection, limit), NOW, list[tuple[float, float]]()
        for pause, least, want in asks:
            now += pause
            got = bucket.take(now, least * limit, want * limit)
            assert got.taken == 0 or got.taken >= least * limit
            assert got.taken <= max(least, want) * limit + EPSILON
            taken.append((now, got.taken))
        check_windows(taken, limit)


@calmly
@given(some.integers(60, 6000), some.lists(some.tuples(some.floats(0, 0.5), some.floats(0, 0.4)), max_size=30))
def test_clocks_that_differ_a_little_do_not_fill_a_bucket_twice(trial, limit, asks):
    """Several processes look at the clock, then wait for their turn: they come in another order than they looked."""
    with undone(trial) as connection:
        bucket, now, taken = Bucket(connection, limit), NOW, list[tuple[float, float]]()
        for pause, late in asks:
            now += pause
            taken.append((now, bucket.take(now - late, 1, limit).taken))
        check_windows(taken, limit, apart=0.4)


def test_a_clock_that_goes_back_gives_nothing(trial):
    with undone(trial) as connection:
        bucket = Bucket(connection, 60)
        assert bucket.take(NOW, 60).taken == 60
        assert bucket.level(NOW - 50) == 0
        assert bucket.take(NOW - 50, 1).taken == 0
        assert bucket.level(NOW + 1) == pytest.approx(1)


def test_a_clock_that_was_set_back_by_hours_stops_nobody_for_hours(trial):
    with undone(trial) as connection:
        bucket = Bucket(connection, 60)
        bucket.take(NOW, 60)
        assert bucket.take(NOW - 7200, 1).taken == 0
        assert bucket.take(NOW - 7200 + 2, 2).taken == 2


@calmly
@given(limits, some.lists(some.tuples(pauses, some.floats(-2, 3)), max_size=20), some.floats(0.001, 2))
def test_a_wait_is_true_and_not_too_long(trial, limit, moves, share):
    with undone(trial) as connection:
        bucket, now = Bucket(connection, limit), NOW
        for pause, part in moves:
            now += pause
            bucket.owe(now, part * limit)
            assert bucket.level(now) <= limit
        amount = share * limit
        wait = max(0.0, (min(amount, limit) - bucket.level(now)) * 60 / limit)
        if wait > 0.01:
            assert bucket.take(now + wait - 0.005, amount).taken == 0
        assert bucket.take(now + wait + 0.001, amount).taken >= amount


def test_what_is_larger_than_the_bucket_needs_a_full_one_and_is_owed(trial):
    with undone(trial) as connection:
        bucket = Bucket(connection, 600)
        bucket.take(NOW, 1)
        assert bucket.take(NOW, 9000).taken == 0
        assert bucket.take(NOW + 0.1, 9000) == BucketLevel(9000, pytest.approx(-8400))
        assert bucket.take(NOW + 840, 1).taken == 0
        assert bucket.take(NOW + 840.2, 1).taken == 1


@calmly
@given(some.integers(0, 300), some.integers(0, 300))
def test_what_was_used_beyond_or_not_at_all_is_settled_either_way(trial, guess, used):
    with undone(trial) as connection:
        bucket = Bucket(connection, 200)
        taken = bucket.take(NOW, guess).taken
        bucket.owe(NOW, used - taken)
        assert bucket.level(NOW) == pytest.approx(200 - used)


def test_a_changed_limit_counts_at_once(trial):
    with undone(trial) as connection:
        assert Bucket(connection, 100).take(NOW, 60).taken == 60
        assert Bucket(connection, 10).take(NOW, 10).taken == 10
        assert Bucket(connection, 10).take(NOW, 1).taken == 0
        assert Bucket(connection, 1000).take(NOW + 6, 100).taken == 100


# -- slots

deeds = some.tuples(
    some.sampled_from(("lease", "give back", "renew", "end", "wait")),
    some.sampled_from(("one", "two", "three")),
    some.integers(1, 6),
)


@calmly
@given(some.integers(1, 12), some.lists(deeds, max_size=40))
def test_slots_are_never_more_than_the_limit_and_none_is_lost(trial, limit, asks):
    with undone(trial) as connection:
        now, given = NOW, dict[str, tuple[int, float]]()  # by process: how many, and until when
        for deed, process, number in asks:
            amount, until = given.get(process, (0, 0.0))
            set_store_clock(connection, now)
            match deed:
                case "lease":
                    given = {name: (held, ends) for name, (held, ends) in given.items() if ends > now}
                    amount, _ = given.get(process, (0, 0.0))
                    room = limit - sum(held for held, _ in given.values())
                    got = limit_rows.lease_slots(connection, "key", process, limit, number, now)
                    assert got == max(0, min(number, room))
                    if got:
                        given[process] = amount + got, now + SLOT_SECONDS
                case "give back":
                    limit_rows.give_back_slots(connection, process, {"key": min(number, amount)})
                    given[process] = max(0, amount - number), until
                case "renew":
                    limit_rows.renew_slots(connection, process, now)
                    given[process] = amount, now + SLOT_SECONDS
                case "end":
                    limit_rows.end_slots(connection, process)
                    given.pop(process, None)
                case _:
                    now += number * 15
            rows = connection.exec_driver_sql("SELECT process, amount FROM slots")
            assert {tuple(row) for row in rows} == {(name, held) for name, (held, _) in given.items() if held}


def test_slots_of_a_process_whose_clock_is_slow_are_its_own(connection):
    set_store_clock(connection, NOW)
    slow = NOW if connection.dialect.name == "sqlite" else NOW - 10 * SLOT_SECONDS  # one machine has one clock
    assert limit_rows.lease_slots(connection, "key", "slow", 1, 1, slow) == 1
    assert limit_rows.lease_slots(connection, "key", "other", 1, 1, NOW) == 0
    assert limit_rows.renew_slots(connection, "slow", slow) == {"key"}
    assert limit_rows.lease_slots(connection, "key", "other", 1, 1, NOW + 1) == 0

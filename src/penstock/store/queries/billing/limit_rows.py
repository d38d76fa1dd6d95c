"""Limits that processes share: buckets that fill up evenly over a minute, and slots for what is open at once."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, and_, bindparam, delete, func, insert, select, update

from penstock.store import clock, locks
from penstock.store.tables import buckets, slots

MINUTE: Final = 60.0
HAIR: Final = 1e-6
"""So much less than what is asked for is as good: who waits as long as told gets it."""
SLOT_SECONDS: Final = 90.0
"""How long a process may be silent before its slots are given to others."""


class BucketLevel(NamedTuple):
    """What was taken from a bucket, and what is left in it now."""

    taken: float
    left: float


class Owed(NamedTuple):
    """What was used of a limit beyond what was taken of it."""

    owner: str
    kind: str
    limit: int
    amount: float


_HERE = and_(buckets.c.owner == bindparam("its_owner"), buckets.c.kind == bindparam("its_kind"))
_GET = select(buckets.c.level, buckets.c.at).where(_HERE).with_for_update()
_SET = update(buckets).where(_HERE).values(level=bindparam("now_level"), at=bindparam("now_at"))


def take(
    connection: Connection, owner: str, kind: str, limit: int, now: float, *, least: float, want: float, owed: float
) -> BucketLevel:
    """Take up to `want`, or nothing if there is less than `least`; what is `owed` is paid first.

    What is more than the bucket holds needs a full one, and leaves less than nothing in it.
    """
    place = {"its_owner": owner, "its_kind": kind}
    row = connection.execute(_GET, place).one_or_none()
    before = float(limit) if row is None else row.level + max(0.0, now - row.at) * limit / MINUTE
    if row is not None and now < row.at <= now + MINUTE:
        now = row.at  # one who looked at the clock earlier comes later: no second of it fills the bucket twice
    level = min(float(limit), min(float(limit), before) - owed)
    taken = 0.0
    if least < math.inf and level + HAIR >= min(least, limit):
        taken = max(least, min(want, level))
        level -= taken
    if row is None:
        connection.execute(insert(buckets), {"owner": owner, "kind": kind, "level": level, "at": now})
    else:
        connection.execute(_SET, place | {"now_level": level, "now_at": now})
    return BucketLevel(taken, level)


def owe(connection: Connection, owed: Sequence[Owed], now: float) -> None:
    """Only pay what is owed, or give back what is less than nothing."""
    for each in sorted(owed):
        take(connection, each.owner, each.kind, each.limit, now, least=math.inf, want=0, owed=each.amount)


# -- slots


def lease_slots(
    connection: Connection, owner: str, process: str, limit: int, want: int, now: float, *, may_expire: bool = True
) -> int:
    """Give a process up to so many of an owner's slots. Return the number given.

    `may_expire` first takes back those of processes that have not renewed theirs.
    """
    locks.hold(connection, "slots", owner)
    if may_expire:
        silent = clock.has_passed(connection, slots.c.expires_at, now)
        connection.execute(delete(slots).where(slots.c.owner == owner, silent))
    query = select(func.sum(slots.c.amount)).where(slots.c.owner == owner)
    given = min(want, limit - int(connection.execute(query).scalar() or 0))
    if given <= 0:
        return 0
    mine = and_(slots.c.owner == owner, slots.c.process == process)
    grown = update(slots).where(mine).values(amount=slots.c.amount + given, expires_at=now + SLOT_SECONDS)
    if not connection.execute(grown).rowcount:
        values = {"owner": owner, "process": process, "amount": given, "expires_at": now + SLOT_SECONDS}
        connection.execute(insert(slots), values)
    return given


def give_back_slots(connection: Connection, process: str, amounts: Mapping[str, int]) -> None:
    """A process does not need so many of its slots."""
    for owner, amount in amounts.items():
        mine = and_(slots.c.owner == owner, slots.c.process == process)
        connection.execute(update(slots).where(mine).values(amount=slots.c.amount - amount))
        connection.execute(delete(slots).where(mine, slots.c.amount <= 0))


def renew_slots(connection: Connection, process: str, now: float) -> set[str]:
    """Keep a living process's slots. Return the owners of whom it has some."""
    renewed = update(slots).where(slots.c.process == process).values(expires_at=now + SLOT_SECONDS)
    return set(connection.execute(renewed.returning(slots.c.owner)).scalars())


def end_slots(connection: Connection, process: str, only: Collection[Any] | None = None) -> None:
    """Free the slots of a process that is gone, or only those of these owners."""
    mine = slots.c.process == process
    if only is not None:
        mine = and_(mine, slots.c.owner.in_([each for each in only if type(each) is str]))
    connection.execute(delete(slots).where(mine))

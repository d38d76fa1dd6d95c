"""Limits shared by processes: token buckets for rates per minute, and slots for open streams."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, and_, bindparam, delete, func, insert, select, update

from penstock.store import clock, locks
from penstock.store.tables import buckets, slots

MINUTE: Final = 60.0
TOLERANCE: Final = 1e-6
"""Tolerance for rounding: a caller that waits for the time it was given succeeds."""
SLOT_SECONDS: Final = 90.0
"""Seconds without renewal after which a process's slots go to others."""


class BucketLevel(NamedTuple):
    """The amount taken from a bucket, and the level after it."""

    taken: float
    left: float


class Owed(NamedTuple):
    """Usage of a limit beyond the amount that was taken."""

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
    """Take up to `want` from a bucket, or nothing if it has less than `least`. `owed` is deducted first.

    An amount above the bucket's size needs a full bucket, and makes its level negative.
    """
    where = {"its_owner": owner, "its_kind": kind}
    row = connection.execute(_GET, where).one_or_none()
    before = float(limit) if row is None else row.level + max(0.0, now - row.at) * limit / MINUTE
    if row is not None and now < row.at <= now + MINUTE:
        now = row.at  # an older clock reading may come later: no second fills the bucket twice
    level = min(float(limit), min(float(limit), before) - owed)
    taken = 0.0
    if least < math.inf and level + TOLERANCE >= min(least, limit):
        taken = max(least, min(want, level))
        level -= taken
    if row is None:
        connection.execute(insert(buckets), {"owner": owner, "kind": kind, "level": level, "at": now})
    else:
        connection.execute(_SET, where | {"now_level": level, "now_at": now})
    return BucketLevel(taken, level)


def owe(connection: Connection, owed: Sequence[Owed], now: float) -> None:
    """Deduct what is owed. A negative amount is returned to the bucket."""
    for each in sorted(owed):
        take(connection, each.owner, each.kind, each.limit, now, least=math.inf, want=0, owed=each.amount)


# -- slots


def lease_slots(
    connection: Connection, owner: str, process: str, limit: int, want: int, now: float, *, may_expire: bool = True
) -> int:
    """Lease a process up to so many of an owner's slots. Return the number leased.

    `may_expire` first ends slots that other processes have not renewed.
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
    expires_at = clock.read(connection, now) + SLOT_SECONDS
    grown = update(slots).where(mine).values(amount=slots.c.amount + given, expires_at=expires_at)
    if not connection.execute(grown).rowcount:
        values = {"owner": owner, "process": process, "amount": given, "expires_at": expires_at}
        connection.execute(insert(slots), values)
    return given


def give_back_slots(connection: Connection, process: str, amounts: Mapping[str, int]) -> None:
    """Return slots that a process does not need."""
    for owner, amount in amounts.items():
        mine = and_(slots.c.owner == owner, slots.c.process == process)
        connection.execute(update(slots).where(mine).values(amount=slots.c.amount - amount))
        connection.execute(delete(slots).where(mine, slots.c.amount <= 0))


def renew_slots(connection: Connection, process: str, now: float) -> set[str]:
    """Renew a process's slots. Return their owners."""
    expires_at = clock.read(connection, now) + SLOT_SECONDS
    renewed = update(slots).where(slots.c.process == process).values(expires_at=expires_at)
    return set(connection.execute(renewed.returning(slots.c.owner)).scalars())


def end_slots(connection: Connection, process: str, only: Collection[Any] | None = None) -> None:
    """End the slots of a process that is gone, or only those of these owners."""
    mine = slots.c.process == process
    if only is not None:
        mine = and_(mine, slots.c.owner.in_([each for each in only if type(each) is str]))
    connection.execute(delete(slots).where(mine))

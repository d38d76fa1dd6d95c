"""What a process holds of budgets and limits, as a whole: kept while it lives, freed when it is gone."""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import Connection

from penstock.domain.budgets import BalanceKey
from penstock.store import locks
from penstock.store.queries.billing import balance_rows, ledger_rows, limit_rows


class Renewed(NamedTuple):
    """Leases that a process still has."""

    balances: dict[BalanceKey, bool]
    """Of which purses, and whether others need what it does not use."""
    slots: set[str]
    """Of whose streams."""


def renew(connection: Connection, process: str, now: float) -> Renewed:
    """Keep what a living process holds. Return what that is."""
    slots = limit_rows.renew_slots(connection, process, now)
    return Renewed(balance_rows.renew(connection, process, now), slots)


def end(connection: Connection, process: str, only: Collection[BalanceKey | str] | None = None) -> None:
    """Free what a process held that has stopped or is dead; or only these purses, and slots of these owners."""
    balance_rows.end_leases(connection, process, only)
    limit_rows.end_slots(connection, process, only)


def expire(connection: Connection, now: float, *, leases: bool = True) -> int:
    """Free the holds of jobs, and the `leases` of processes, whose time is over. Return the number freed."""
    locks.join_ledger(connection)
    ended = balance_rows.expire_leases(connection, now) if leases else 0
    return ended + ledger_rows.let_go(connection, now)

"""The leases of a process on budgets and limits: renewed while it lives, ended when it is gone."""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import Connection

from penstock.domain.budgets import BalanceKey
from penstock.store import locks
from penstock.store.queries.billing import balance_rows, ledger_rows, limit_rows


class Renewed(NamedTuple):
    """Leases that a process still has."""

    balances: dict[BalanceKey, bool]
    """The balances, each with whether other processes need its unused lease."""
    slots: set[str]
    """The owners of leased streams."""


def renew(connection: Connection, process: str, now: float) -> Renewed:
    """Renew all leases of a process, and return them."""
    slots = limit_rows.renew_slots(connection, process, now)
    return Renewed(balance_rows.renew(connection, process, now), slots)


def end(connection: Connection, process: str, only: Collection[BalanceKey | str] | None = None) -> None:
    """End the leases of a process that has stopped or died, or only those on these balances and owners."""
    balance_rows.end_leases(connection, process, only)
    limit_rows.end_slots(connection, process, only)


def expire(connection: Connection, now: float, *, leases: bool = True) -> int:
    """End expired holds of jobs and, with `leases`, expired leases of processes. Return their number."""
    locks.join_ledger(connection)
    ended = balance_rows.expire_leases(connection, now) if leases else 0
    return ended + ledger_rows.release_expired(connection, now)

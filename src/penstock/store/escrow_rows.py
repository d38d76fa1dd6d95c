"""What a process holds of budgets and limits, as a whole: kept while it lives, freed when it is gone."""

from sqlalchemy import Connection

from penstock.store import ledger_rows, limit_rows, locks, purse_rows
from penstock.store.purse_rows import Place


def renew(connection: Connection, process: str, now: float) -> dict[Place, bool]:
    """The process lives: of which purses it holds something, and whether others need what it does not use."""
    limit_rows.renew_slots(connection, process, now)
    return purse_rows.renew(connection, process, now)


def end(connection: Connection, process: str) -> None:
    """The process has stopped, or is dead: whatever it held is free again."""
    purse_rows.end_leases(connection, process)
    limit_rows.end_slots(connection, process)


def expire(connection: Connection, now: float) -> int:
    """Free what was held by whoever has been silent for too long; how much it was."""
    locks.join_ledger(connection)
    return purse_rows.expire_leases(connection, now) + ledger_rows.let_go(connection, now)

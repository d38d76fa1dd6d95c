"""Locks for what no row stands for. SQLite has one writer at a time: there is nothing to lock."""

from typing import Final

from sqlalchemy import Connection

_HOLD: Final = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
_SHARE: Final = "SELECT pg_advisory_xact_lock_shared(hashtextextended(%s, 0))"


def hold(connection: Connection, what: str, *whose: str, shared: bool = False) -> None:
    """Until the transaction ends, nobody else holds the same; those who share it hold it together.

    Who holds several takes them in the order of their names.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(_SHARE if shared else _HOLD, ("\n".join(("penstock", what, *whose)),))


def join_ledger(connection: Connection) -> None:
    """Until the transaction ends, no budget is set or taken away: before budgets are read, to move money by them.

    Whoever has written to the ledger, or locked an entry, has joined already.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("LOCK TABLE ledger IN ROW EXCLUSIVE MODE")


def hold_ledger(connection: Connection) -> None:
    """Until the transaction ends, nobody else moves money; who waits longer than a second lets others pass."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET LOCAL lock_timeout = '1s'")
        connection.exec_driver_sql("LOCK TABLE ledger IN EXCLUSIVE MODE")

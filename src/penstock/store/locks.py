"""Locks for what no row stands for. SQLite has one writer at a time: there is nothing to lock."""

from sqlalchemy import Connection, text

_HOLD = text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")
_SHARE = text("SELECT pg_advisory_xact_lock_shared(hashtextextended(:name, 0))")
_JOIN = text("LOCK TABLE ledger IN ROW EXCLUSIVE MODE")
_BRIEFLY = text("SET LOCAL lock_timeout = '1s'")
_ALONE = text("LOCK TABLE ledger IN EXCLUSIVE MODE")


def hold(connection: Connection, what: str, *whose: str, shared: bool = False) -> None:
    """Until the transaction ends, nobody else holds the same; those who share it hold it together.

    Who holds several takes them in the order of their names.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(_SHARE if shared else _HOLD, {"name": "\n".join(("penstock", what, *whose))})


def join_ledger(connection: Connection) -> None:
    """Until the transaction ends, no budget is set or taken away: before budgets are read, to move money by them.

    Whoever has written to the ledger, or locked an entry, has joined already.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(_JOIN)


def hold_ledger(connection: Connection) -> None:
    """Until the transaction ends, nobody else moves money; who waits longer than a second lets others pass."""
    if connection.dialect.name == "postgresql":
        connection.execute(_BRIEFLY)
        connection.execute(_ALONE)

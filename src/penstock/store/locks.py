"""Locks for what no row stands for. SQLite has one writer at a time: there is nothing to lock."""

from sqlalchemy import Connection, text

_HOLD = text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")
_SHARE = text("SELECT pg_advisory_xact_lock_shared(hashtextextended(:name, 0))")


def hold(connection: Connection, what: str, *whose: str, shared: bool = False) -> None:
    """Until the transaction ends, nobody else holds the same; those who share it hold it together.

    Who holds several takes them in the order of their names.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(_SHARE if shared else _HOLD, {"name": "\n".join(("penstock", what, *whose))})

"""Locks for what no row stands for. SQLite has one writer at a time: there is nothing to lock."""

from sqlalchemy import Connection, text

_HOLD = text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")


def hold(connection: Connection, what: str, *whose: str) -> None:
    """Until the transaction ends, nobody else holds the same. Of several, hold them in the order of their names."""
    if connection.dialect.name == "postgresql":
        connection.execute(_HOLD, {"name": "\n".join(("penstock", what, *whose))})

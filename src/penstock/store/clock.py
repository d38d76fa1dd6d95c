"""The store's time: PostgreSQL's clock where machines share a store, as their own clocks differ."""

from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Float, func, literal_column

from penstock.store import sql

NOW_TEXT: Final = "extract(epoch FROM clock_timestamp())::double precision"
NOW: Final = literal_column(NOW_TEXT, Float)
"""The current time of PostgreSQL."""


def not_after(connection: Connection, moment: Any) -> Any:
    """Return the earlier of a moment and the database's current time, as an SQL expression."""
    return moment if connection.dialect.name == "sqlite" else func.least(moment, NOW)


def has_passed(connection: Connection, moment: ColumnElement[Any], now: float) -> ColumnElement[bool]:
    """Return a condition: the moment has passed by this machine's clock and by the database's.

    A machine whose clock is fast ends no other's lease.
    """
    return moment <= not_after(connection, now)


def read(connection: Connection, now: float) -> float:
    """Return the time from which a lease counts: that of the store. A file has the machine's own.

    A machine whose clock is slow would otherwise write leases that others see as ended.
    """
    return now if connection.dialect.name == "sqlite" else sql.run(connection, f"SELECT {NOW_TEXT}")[0][0]

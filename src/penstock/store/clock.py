"""What time it is: by PostgreSQL's clock where machines share a store, as theirs differ."""

from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Float, func, literal, literal_column

NOW: Final = literal_column("extract(epoch FROM clock_timestamp())::double precision", Float)


def not_after(connection: Connection, moment: Any) -> Any:
    """This moment, as a statement has it, or now by the database's clock if that is earlier."""
    return moment if connection.dialect.name == "sqlite" else func.least(moment, NOW)


def has_passed(connection: Connection, moment: ColumnElement[Any], now: float) -> ColumnElement[bool]:
    """By this machine's clock and by the database's: a machine that is ahead of time ends nobody's lease."""
    return moment <= not_after(connection, now)


def current(connection: Connection, now: float) -> ColumnElement[Any]:
    """Now by the clock of the store; that of a file is the machine's own."""
    return literal(now, Float) if connection.dialect.name == "sqlite" else NOW

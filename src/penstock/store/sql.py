"""Hot statements in the driver's own words: SQLAlchemy would take longer over them than the database itself."""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table

LOCKING = " FOR UPDATE"


def mark(connection: Connection) -> str:
    """What stands for a value where SQLAlchemy says a statement."""
    return "?" if connection.dialect.name == "sqlite" else "%s"


@cache
def _speak(said: str, *, to_sqlite: bool) -> str:
    """In PostgreSQL's own words values are numbered: the driver has nothing to look for in them."""
    if to_sqlite:
        return said.removesuffix(LOCKING)
    first, *rest = said.split("?")
    return first + "".join(f"${number}{piece}" for number, piece in enumerate(rest, 1))


def run(connection: Connection, said: str, *values: Any) -> Sequence[tuple[Any, ...]]:
    """A statement with a `?` for each value, and the rows that it finds; FOR UPDATE, at its end, is for PostgreSQL."""
    dialect, driver = connection.dialect, connection.connection
    to_sqlite = dialect.name == "sqlite"
    said = _speak(said, to_sqlite=to_sqlite)
    if not connection.in_transaction():
        connection.begin()  # SQLAlchemy does not see what is done here
    cursor: Any = driver.cursor() if to_sqlite else dialect.loaded_dbapi.RawCursor(driver.driver_connection)
    try:
        cursor.execute(said, values if to_sqlite else _without_nul(values))
        return cursor.fetchall() if cursor.description else []
    except dialect.loaded_dbapi.Error as error:
        # The one door to what SQLAlchemy does with errors: it tells lost connections, and lets go of them.
        connection._handle_dbapi_exception(error, said, values, cursor, None)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    finally:
        cursor.close()


def _without_nul(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """PostgreSQL knows no NUL in texts, so nothing is found by one; what is to be stored is checked before."""
    for value in values:
        if type(value) is str and "\0" in value:
            return tuple(value.replace("\0", "\ufffd") if type(value) is str else value for value in values)
    return values


def among(said: str, values: Sequence[Any]) -> tuple[Any, ...]:
    """A statement that ends in `IN`, and its values: a power of two of them, so that the server knows it again."""
    padded = [*values, *[values[-1]] * ((1 << (len(values) - 1).bit_length()) - len(values))]
    return (f"{said} ({', '.join('?' * len(padded))})", *padded)


def run_many(connection: Connection, said: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """The same statement with the values of each row."""
    connection.exec_driver_sql(said.replace("?", mark(connection)), list(rows))


class Statement(NamedTuple):
    """A statement that changes something, with its values."""

    said: str
    values: tuple[Any, ...]


@cache
def _join(said: tuple[str, ...]) -> str:
    """One statement for all; PostgreSQL does them in this order."""
    others = ", ".join(f"deed_{number} AS ({each})" for number, each in enumerate(said[1:]))
    return f"WITH {others} {said[0]}" if others else said[0]


def do_all(connection: Connection, *deeds: Statement) -> None:
    """Changes of different tables: one way to the server and back for all of them."""
    if connection.dialect.name == "postgresql":
        values = [value for deed in (*deeds[1:], deeds[0]) for value in deed.values]
        run(connection, _join(tuple(deed.said for deed in deeds)), *values)
        return
    for deed in deeds:
        run(connection, deed.said, *deed.values)


@cache
def _insert(table: Table, names: tuple[str, ...], rows: int) -> str:
    marks = f"({', '.join('?' * len(names))})"
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES {', '.join([marks] * rows)}"  # noqa: S608


def insertion(table: Table, rows: Sequence[Mapping[str, Any]]) -> Statement:
    """A few rows that all have the same columns."""
    values = tuple(chain.from_iterable([row.values() for row in rows]))
    return Statement(_insert(table, tuple(rows[0]), len(rows)), values)


def insert_all(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """Write any number of rows, each in the order of the table's columns."""
    if rows:
        run_many(connection, _insert(table, tuple(table.columns.keys()), 1), rows)

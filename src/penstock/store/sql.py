"""Hot statements in the driver's own SQL: SQLAlchemy would take longer than the database itself."""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any, NamedTuple, cast

from sqlalchemy import Connection, Table

LOCKING = " FOR UPDATE"
SKIPPING = " FOR UPDATE SKIP LOCKED"
"""For PostgreSQL only: locks rows, except those that another transaction has locked."""


def mark(connection: Connection) -> str:
    """Return the driver's placeholder for a value in statements that SQLAlchemy runs."""
    return "?" if connection.dialect.name == "sqlite" else "%s"


@cache
def _translate(statement: str, *, to_sqlite: bool) -> str:
    """Return the statement in the dialect's form. Numbered placeholders spare PostgreSQL's driver the parsing."""
    if to_sqlite:
        return statement.removesuffix(LOCKING)
    first, *rest = statement.split("?")
    return first + "".join(f"${number}{piece}" for number, piece in enumerate(rest, 1))


def run(connection: Connection, statement: str, *values: Any) -> Sequence[tuple[Any, ...]]:
    """Run a statement with a `?` for each value and return its rows. A final FOR UPDATE is for PostgreSQL only."""
    dialect, driver = connection.dialect, cast("Any", connection.connection.driver_connection)
    to_sqlite = dialect.name == "sqlite"
    statement = _translate(statement, to_sqlite=to_sqlite)
    if not connection.in_transaction():
        connection.begin()  # SQLAlchemy does not see the driver's statements
    cursor: Any = None
    try:
        if to_sqlite:
            return driver.execute(statement, values).fetchall()
        cursor = dialect.loaded_dbapi.RawCursor(driver)
        cursor.execute(statement, _without_nul(values))
        return cursor.fetchall() if cursor.description else []
    except dialect.loaded_dbapi.Error as error:
        # The only way to SQLAlchemy's error handling, which detects and drops lost connections.
        connection._handle_dbapi_exception(error, statement, values, cursor, None)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    finally:
        if cursor is not None:
            cursor.close()


def _without_nul(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Replace NUL characters, by which PostgreSQL can find nothing. Texts to be stored are checked before."""
    for value in values:
        if type(value) is str and "\0" in value:
            return tuple(value.replace("\0", "\ufffd") if type(value) is str else value for value in values)
    return values


def among(statement: str, values: Sequence[Any]) -> tuple[Any, ...]:
    """Complete a statement that ends in `IN`. Return it with its values, padded to a power of two for the cache."""
    padded = [*values, *[values[-1]] * ((1 << (len(values) - 1).bit_length()) - len(values))]
    return (f"{statement} ({', '.join('?' * len(padded))})", *padded)


def run_many(connection: Connection, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Run a statement once for the values of each row."""
    connection.exec_driver_sql(statement.replace("?", mark(connection)), list(rows))


class Statement(NamedTuple):
    """A statement that changes rows, with its values."""

    text: str
    values: tuple[Any, ...]


@cache
def _join(statements: tuple[str, ...]) -> str:
    """Join statements into one. PostgreSQL runs them in this order."""
    others = ", ".join(f"statement_{number} AS ({each})" for number, each in enumerate(statements[1:]))
    return f"WITH {others} {statements[0]}" if others else statements[0]


def do_all(connection: Connection, *statements: Statement) -> None:
    """Run changes of several tables in one round trip to the server."""
    if connection.dialect.name == "postgresql":
        values = [value for each in (*statements[1:], statements[0]) for value in each.values]
        run(connection, _join(tuple(each.text for each in statements)), *values)
        return
    for each in statements:
        run(connection, each.text, *each.values)


@cache
def _insert(table: Table, names: tuple[str, ...], rows: int) -> str:
    marks = f"({', '.join('?' * len(names))})"
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES {', '.join([marks] * rows)}"  # noqa: S608


def insertion(table: Table, rows: Sequence[Mapping[str, Any]]) -> Statement:
    """Return a statement that inserts a few rows, all with equal columns."""
    values = tuple(chain.from_iterable([row.values() for row in rows]))
    return Statement(_insert(table, tuple(rows[0]), len(rows)), values)


def insert_all(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert any number of rows, each in the order of the table's columns."""
    if rows:
        run_many(connection, _insert(table, tuple(table.columns.keys()), 1), rows)


def add_missing(connection: Connection, table: Table, rows: Sequence[tuple[str, ...]]) -> None:
    """Insert any number of rows of texts, in the order of the table's columns. Rows with a known key are left out."""
    if not rows:
        return
    names = tuple(table.columns.keys())
    if connection.dialect.name == "sqlite":
        run_many(connection, _insert(table, names, 1).replace("INSERT", "INSERT OR IGNORE", 1), rows)
        return
    columns = ", ".join(["CAST(? AS TEXT[])"] * len(names))
    statement = f"INSERT INTO {table.name} ({', '.join(names)}) SELECT * FROM unnest({columns}) ON CONFLICT DO NOTHING"  # noqa: S608
    run(connection, statement, *map(list, zip(*rows, strict=True)))

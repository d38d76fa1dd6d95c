"""Rows in the driver's own words: SQLAlchemy would take longer to prepare a row than the database takes to write it."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Table


def mark(connection: Connection) -> str:
    """What stands for a value in a statement."""
    return "?" if connection.dialect.paramstyle == "qmark" else "%s"


@cache
def _insert(table: Table, sign: str) -> str:
    names = [column.name for column in table.columns]
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({', '.join([sign] * len(names))})"  # noqa: S608


def insert_all(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """Write these rows, each in the order of the table's columns."""
    if rows:
        connection.exec_driver_sql(_insert(table, mark(connection)), list(rows))

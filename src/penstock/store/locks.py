"""Locks for what no row stands for. SQLite has one writer at a time: there is nothing to lock."""

from collections.abc import Sequence
from functools import cache
from typing import Final

from sqlalchemy import Connection

from penstock.store import sql

JOIN: Final = "pg_advisory_xact_lock_shared(hashtextextended('penstock ledger', 0))"
"""Whoever moves money shares this; whoever sets or removes budgets has it alone."""
_HOLD: Final = "SELECT pg_advisory_xact_lock(hashtextextended(?, 0))"
_TRY: Final = "SELECT pg_try_advisory_xact_lock(hashtextextended(?, 0))"
_SHARE: Final = "SELECT pg_advisory_xact_lock_shared(hashtextextended(?, 0))"
_JOINED: Final = "joined"
"""Which transaction has joined, in `connection.info`."""


def hold(connection: Connection, what: str, *whose: str, shared: bool = False, join: bool = False) -> None:
    """Until the transaction ends, nobody else holds the same; those who share it hold it together.

    Who holds several takes them in the order of their names. `join` is `join_ledger` on the same way to the server.
    """
    if connection.dialect.name == "postgresql":
        said = _SHARE if shared else _HOLD
        sql.run(connection, f"{said}, {JOIN}" if join else said, "\n".join(("penstock", what, *whose)))
        if join:
            connection.info[_JOINED] = connection.get_transaction()


def try_hold(connection: Connection, what: str) -> bool:
    """The same without waiting: whether it was to be had."""
    if connection.dialect.name != "postgresql":
        return True
    return sql.run(connection, _TRY, f"penstock\n{what}")[0][0]


def try_all(connection: Connection, wanted: Sequence[tuple[tuple[str, ...], bool]]) -> list[bool]:
    """Take many, each shared or not, and join the ledger, waiting for none of them: which were to be had."""
    if connection.dialect.name != "postgresql":
        return [True] * len(wanted)
    values = [value for whose, shared in wanted for value in ("\n".join(("penstock", *whose)), int(shared))]
    found = sql.run(connection, _try(len(wanted)), *values)
    connection.info[_JOINED] = connection.get_transaction()
    return [row[0] for row in found]


@cache
def _try(count: int) -> str:
    """The rows come in this order: nothing sorts or joins them."""
    taken = "pg_try_advisory_xact_lock{}(hashtextextended(name, 0))"
    either = f"CASE shared WHEN 1 THEN {taken.format('_shared')} ELSE {taken.format('')} END"
    rows = ", ".join(["(CAST(? AS TEXT), CAST(? AS INTEGER))"] * count)
    return f"SELECT {either}, {JOIN} FROM (VALUES {rows}) AS wanted (name, shared)"  # noqa: S608  words of our own


def join_ledger(connection: Connection) -> None:
    """Until the transaction ends, no budget is set or taken away: before budgets are read, to move money by them."""
    if connection.dialect.name == "postgresql":
        joined = connection.info.get(_JOINED)
        if joined is None or joined is not connection.get_transaction():
            sql.run(connection, f"SELECT {JOIN}")
            connection.info[_JOINED] = connection.get_transaction()


def hold_ledger(connection: Connection) -> None:
    """Until the transaction ends, nobody else moves money; who waits longer than a second lets others pass."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET LOCAL lock_timeout = '1s'")
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtextextended('penstock ledger', 0))")

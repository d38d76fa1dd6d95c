"""Advisory locks, for what has no row. SQLite has one writer at a time and needs none."""

from collections.abc import Sequence
from functools import cache
from typing import Final

from sqlalchemy import Connection

from penstock.store import sql

JOIN: Final = "pg_advisory_xact_lock_shared(hashtextextended('penstock ledger', 0))"
"""The ledger lock: shared by transactions that move money, exclusive for those that change budgets."""
_HOLD: Final = "SELECT pg_advisory_xact_lock(hashtextextended(?, 0))"
_TRY: Final = "SELECT pg_try_advisory_xact_lock(hashtextextended(?, 0))"
_SHARE: Final = "SELECT pg_advisory_xact_lock_shared(hashtextextended(?, 0))"
_JOINED: Final = "joined"
"""The key in `connection.info` of the transaction that holds the ledger lock."""


def hold(connection: Connection, what: str, *whose: str, shared: bool = False, join: bool = False) -> None:
    """Hold a lock until the transaction ends. Shared holders hold it together.

    Take several locks in the order of their names. `join` also joins the ledger in this round trip.
    """
    if connection.dialect.name == "postgresql":
        statement = _SHARE if shared else _HOLD
        sql.run(connection, f"{statement}, {JOIN}" if join else statement, "\n".join(("penstock", what, *whose)))
        if join:
            connection.info[_JOINED] = connection.get_transaction()


def try_hold(connection: Connection, what: str) -> bool:
    """Like `hold`, but do not wait. Return whether the lock was taken."""
    if connection.dialect.name != "postgresql":
        return True
    return sql.run(connection, _TRY, f"penstock\n{what}")[0][0]


def try_all(connection: Connection, wanted: Sequence[tuple[tuple[str, ...], bool]]) -> list[bool]:
    """Take many locks, each shared or not, and join the ledger, without waiting. Return which were taken."""
    if connection.dialect.name != "postgresql":
        return [True] * len(wanted)
    values = [value for whose, shared in wanted for value in ("\n".join(("penstock", *whose)), int(shared))]
    found = sql.run(connection, _try(len(wanted)), *values)
    connection.info[_JOINED] = connection.get_transaction()
    return [row[0] for row in found]


@cache
def _try(count: int) -> str:
    """Return the statement for this number of locks. Its rows keep their order, as nothing sorts or joins them."""
    taken = "pg_try_advisory_xact_lock{}(hashtextextended(name, 0))"
    either = f"CASE shared WHEN 1 THEN {taken.format('_shared')} ELSE {taken.format('')} END"
    rows = ", ".join(["(CAST(? AS TEXT), CAST(? AS INTEGER))"] * count)
    return f"SELECT {either}, {JOIN} FROM (VALUES {rows}) AS wanted (name, shared)"  # noqa: S608  words of our own


def join_ledger(connection: Connection) -> None:
    """Prevent changes of budgets until the transaction ends. Call it before budgets are read to move money."""
    if connection.dialect.name == "postgresql":
        joined = connection.info.get(_JOINED)
        if joined is None or joined is not connection.get_transaction():
            sql.run(connection, f"SELECT {JOIN}")
            connection.info[_JOINED] = connection.get_transaction()


def hold_ledger(connection: Connection) -> None:
    """Prevent all other money movements until the transaction ends. Give up after a second of waiting."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET LOCAL lock_timeout = '1s'")
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtextextended('penstock ledger', 0))")

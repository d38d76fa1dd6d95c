"""Data keys: they seal secrets, and are themselves sealed by a master key that the store does not hold."""

from dataclasses import dataclass, field

from sqlalchemy import Connection, insert, select, update

from penstock.store import locks
from penstock.store.tables import data_keys


@dataclass(frozen=True, slots=True)
class DataKeyRow:
    """A sealed data key, and the id of the master key that opens it."""

    id: str
    master: str
    sealed: bytes = field(repr=False)
    created_at: float


def hold(connection: Connection) -> None:
    """Hold the lock of all changes to data keys until the transaction ends."""
    locks.hold(connection, "data keys")


def list_all(connection: Connection) -> list[DataKeyRow]:
    """Return every data key, oldest first."""
    query = select(data_keys).order_by(data_keys.c.created_at, data_keys.c.id)
    return [DataKeyRow(**row) for row in connection.execute(query).mappings()]


def add(connection: Connection, row: DataKeyRow) -> None:
    """Store a new data key."""
    values = {"id": row.id, "master": row.master, "sealed": row.sealed, "created_at": row.created_at}
    connection.execute(insert(data_keys), values)


def reseal(connection: Connection, key_id: str, master: str, sealed: bytes) -> None:
    """Replace the sealed form of a data key."""
    connection.execute(update(data_keys).where(data_keys.c.id == key_id).values(master=master, sealed=sealed))

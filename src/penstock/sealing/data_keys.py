"""Data keys in the store: opened, made at first use, and sealed again by a new master key."""

import os
from dataclasses import dataclass

from penstock.errors import SecretsUnavailable
from penstock.sealing.master_keys import FILE, NEXT_FILE, MasterKey, MasterKeys
from penstock.sealing.sealer import KEY_BYTES, KEY_ID_BYTES, Sealer, SealingKey, open_with, seal_with
from penstock.store.database import Connection
from penstock.store.queries.settings import data_key_rows
from penstock.store.queries.settings.data_key_rows import DataKeyRow

PURPOSE = "data key"
SET_ONE = (
    "Make one with `openssl rand -hex 32`, and set `sealing.master_key` (or PENSTOCK_SEALING_MASTER_KEY) to it for "
    "every server and worker of this store."
)


@dataclass(frozen=True, slots=True)
class SealingStatus:
    """The state of a store's secrets, without any of them."""

    data_keys: int
    masters: tuple[str, ...]
    """The ids of the master keys that seal them."""
    known: tuple[tuple[str, str], ...]
    """Id and origin of each master key that this process knows."""


def open_sealer(connection: Connection, masters: MasterKeys) -> Sealer | None:
    """Return the sealer of this store; None if nothing was ever sealed. Raise if a master key is missing."""
    rows = data_key_rows.list_all(connection)
    if not rows:
        return None
    known = masters.read_all()
    keys = [_open(row, known) for row in rows]
    return Sealer({key.id: key for key in keys}, keys[-1])


def ensure_sealer(connection: Connection, masters: MasterKeys, now: float) -> Sealer:
    """Return the sealer of this store. Make the first data key, and on one machine the master key, if there is none."""
    data_key_rows.hold(connection)
    if found := open_sealer(connection, masters):
        return found
    master = masters.set_key
    if master is None and connection.dialect.name != "sqlite":
        message = "Storing a secret on PostgreSQL needs a master key in the settings."
        raise SecretsUnavailable(message, suggestion=SET_ONE)
    master = master or masters.make_file()
    key = SealingKey(os.urandom(KEY_ID_BYTES), os.urandom(KEY_BYTES))
    data_key_rows.add(connection, DataKeyRow(key.id.hex(), master.id, _seal(key, master), now))
    return Sealer({key.id: key}, key)


def rotate(connection: Connection, masters: MasterKeys) -> tuple[MasterKey, int] | None:
    """Seal every data key by a new master key. Return it and the number of keys sealed again, or None without any.

    Call `finish_rotation` in a transaction of its own after the commit. Any step may be interrupted and repeated.
    """
    data_key_rows.hold(connection)
    rows, known = data_key_rows.list_all(connection), masters.read_all()
    if not rows:
        return None
    keys = [_open(row, known) for row in rows]
    target = masters.set_key
    if target is None:
        target = _finish_earlier(masters, rows) or masters.make_file(NEXT_FILE)
    changed = 0
    for row, key in zip(rows, keys, strict=True):
        if row.master != target.id:
            data_key_rows.reseal(connection, row.id, target.id, _seal(key, target))
            changed += 1
    return target, changed


def finish_rotation(connection: Connection, masters: MasterKeys) -> None:
    """Put the new key in the place of the old file, once no data key needs the old one."""
    data_key_rows.hold(connection)
    if masters.set_key is None and _finish_earlier(masters, data_key_rows.list_all(connection)):
        masters.promote_next()


def describe(connection: Connection, masters: MasterKeys) -> SealingStatus:
    """Return the state of the store's secrets."""
    rows = data_key_rows.list_all(connection)
    used = tuple(sorted({row.master for row in rows}))
    return SealingStatus(len(rows), used, tuple((key.id, key.origin) for key in masters.read_all().values()))


def _finish_earlier(masters: MasterKeys, rows: list[DataKeyRow]) -> MasterKey | None:
    """Return the key in the next file if it seals every data key: then only the renaming is left of a rotation."""
    begun = masters.read_file(NEXT_FILE)
    return begun if begun is not None and all(row.master == begun.id for row in rows) else None


def _seal(key: SealingKey, master: MasterKey) -> bytes:
    return seal_with(_sealing_key(master), PURPOSE, key.id.hex(), key.secret)


def _sealing_key(master: MasterKey) -> SealingKey:
    return SealingKey(bytes.fromhex(master.id).ljust(KEY_ID_BYTES, b"\0"), master.secret)


def _open(row: DataKeyRow, known: dict[str, MasterKey]) -> SealingKey:
    master = known.get(row.master)
    if master is None:
        names = ", ".join(f"{key.id} ({key.origin})" for key in known.values()) or "none"
        raise SecretsUnavailable(
            f"The store's secrets are sealed by the master key {row.master}. This process knows: {names}.",
            suggestion="Give it the `sealing.master_key` of the other servers and workers, "
            f"or restore the file {FILE} in the data folder.",
        )
    secret = open_with(_sealing_key(master), PURPOSE, row.id, row.sealed)
    if secret is None:
        raise SecretsUnavailable(
            f"The data key {row.id} was damaged in the store.", suggestion="Restore the store from a backup."
        )
    return SealingKey(bytes.fromhex(row.id), secret)

"""Storage usage of accounts: the bytes of their files and assets, updated with every change."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection, func, insert, select, update

from penstock.errors import StorageQuotaExceeded
from penstock.store import sql
from penstock.store.tables import assets, files, storage

_ADD: Final = (
    "INSERT INTO storage (account_id, files, assets) VALUES (?, ?, ?) ON CONFLICT (account_id) "
    "DO UPDATE SET files = storage.files + excluded.files, assets = storage.assets + excluded.assets"
)


class Stored(NamedTuple):
    """The bytes that an account keeps, and its own quota, if it has one."""

    files: int = 0
    assets: int = 0
    quota: int | None = None

    @property
    def bytes(self) -> int:
        """The sum of both."""
        return self.files + self.assets


def get(connection: Connection, account_id: str) -> Stored:
    """Return the bytes that an account keeps."""
    query = select(storage.c.files, storage.c.assets, storage.c.quota).where(storage.c.account_id == account_id)
    row = connection.execute(query).one_or_none()
    return Stored() if row is None else Stored(*row)


def set_quota(connection: Connection, account_id: str, quota: int | None) -> None:
    """Set an account's own quota in bytes. None: the one of the settings applies."""
    change(connection, account_id)
    connection.execute(update(storage).where(storage.c.account_id == account_id).values(quota=quota))


def change(connection: Connection, account_id: str, *, files: int = 0, assets: int = 0) -> None:
    """Count bytes that were added or, below zero, removed.

    This locks the account's row. A transaction takes its other locks before.
    """
    sql.run(connection, _ADD, account_id, files, assets)


def reserve(connection: Connection, account_id: str, size: int, usual: int | None) -> None:
    """Count the bytes of a file. Raise if they exceed the quota. `usual` is the quota of the settings."""
    change(connection, account_id, files=size)
    stored = get(connection, account_id)
    quota = usual if stored.quota is None else stored.quota
    if quota is not None and stored.bytes > quota:
        raise refuse(stored.bytes - size, quota)


def refuse_full(connection: Connection, account_id: str, usual: int | None) -> None:
    """Raise if nothing is left of an account's quota."""
    find_room(connection, account_id, usual)


def find_room(connection: Connection, account_id: str, usual: int | None) -> int | None:
    """Return the bytes that are left of an account's quota, if it has one. Raise if there are none."""
    stored = get(connection, account_id)
    quota = usual if stored.quota is None else stored.quota
    if quota is None:
        return None
    if stored.bytes >= quota:
        raise refuse(stored.bytes, quota)
    return quota - stored.bytes


def refuse(used: int, quota: int) -> StorageQuotaExceeded:
    """Return the error of an account whose quota is used up."""
    return StorageQuotaExceeded(f"The account keeps {used} bytes of files and results, and may keep {quota}.")


# -- against drift: processes of an earlier version do not count bytes


def find_drift(connection: Connection) -> Sequence[str]:
    """Return the accounts whose sums differ from their rows."""
    recorded = {row.account_id: (row.files, row.assets) for row in connection.execute(select(storage))}
    contents = select(files.c.account_id, func.max(files.c.bytes).label("bytes"))
    contents = contents.group_by(files.c.account_id, files.c.sha256).subquery()
    of_files = select(contents.c.account_id, func.sum(contents.c.bytes)).group_by(contents.c.account_id)
    of_assets = select(assets.c.account_id, func.sum(assets.c.bytes)).where(assets.c.swept == 0)
    in_files = {account: int(total) for account, total in connection.execute(of_files)}
    in_assets = {account: int(total) for account, total in connection.execute(of_assets.group_by(assets.c.account_id))}
    everyone = recorded.keys() | in_files.keys() | in_assets.keys()
    found = {account: (in_files.get(account, 0), in_assets.get(account, 0)) for account in everyone}
    return [account for account in sorted(everyone) if found[account] != recorded.get(account, (0, 0))]


def recount(connection: Connection, account_id: str) -> None:
    """Recompute an account's sums. Its row is locked first, so that concurrent changes come before or after."""
    mine = storage.c.account_id == account_id
    if connection.execute(select(storage.c.files).where(mine).with_for_update()).one_or_none() is None:
        connection.execute(insert(storage), {"account_id": account_id, "files": 0, "assets": 0})
    contents = select(func.max(files.c.bytes).label("bytes")).where(files.c.account_id == account_id)
    contents = contents.group_by(files.c.sha256).subquery()
    in_files = connection.execute(select(func.sum(contents.c.bytes))).scalar() or 0
    kept = select(func.sum(assets.c.bytes)).where(assets.c.account_id == account_id, assets.c.swept == 0)
    in_assets = connection.execute(kept).scalar() or 0
    connection.execute(update(storage).where(mine).values(files=int(in_files), assets=int(in_assets)))

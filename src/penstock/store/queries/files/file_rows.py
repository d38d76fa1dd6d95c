"""Callers' files. The bytes are stored once per account and content."""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, or_, select, update

from penstock.domain.files import StoredFile
from penstock.errors import FileNotFound
from penstock.store import locks, sql
from penstock.store.queries.files import storage_rows
from penstock.store.tables import files, jobs

_SAME = "SELECT COUNT(*) FROM files WHERE account_id = ? AND sha256 = ?"


def _file(row: Any) -> StoredFile:
    return StoredFile(**row._asdict())


def _row(file: StoredFile) -> dict[str, Any]:
    return {column.name: getattr(file, column.name) for column in files.c}


def add(connection: Connection, file: StoredFile, quota: int | None = None) -> None:
    """Write a file's row. It comes before the bytes, so that a clean-up never removes bytes still wanted.

    Content that is new to the account counts towards its quota, and raises if it exceeds it. `quota` applies to
    accounts without one of their own.
    """
    locks.hold(connection, "file", file.account_id, file.sha256)
    is_new = _count_same(connection, file) == 0
    sql.do_all(connection, sql.insertion(files, [_row(file)]))
    if is_new:
        storage_rows.reserve(connection, file.account_id, file.bytes, quota)


class AlreadyStored(Exception):
    """Another request has stored a file under this token."""


def add_promised(connection: Connection, file: StoredFile, quota: int | None = None) -> None:
    """Like `add`, for a token that was given out before its bytes came. Raise `AlreadyStored` if they have come."""
    locks.hold(connection, "a promised file", file.token)
    if connection.execute(select(files.c.token).where(files.c.token == file.token)).first() is not None:
        raise AlreadyStored
    add(connection, file, quota)


def add_fetched(connection: Connection, file: StoredFile) -> None:
    """Like `add`, for a job that is accepted already: the bytes count, but are not refused."""
    locks.hold(connection, "file", file.account_id, file.sha256)
    is_new = _count_same(connection, file) == 0
    sql.do_all(connection, sql.insertion(files, [_row(file)]))
    if is_new:
        storage_rows.change(connection, file.account_id, files=file.bytes)


def _count_same(connection: Connection, file: StoredFile) -> int:
    return sql.run(connection, _SAME, file.account_id, file.sha256)[0][0]


def get(connection: Connection, account_id: str, token: str, now: float) -> StoredFile:
    """Return an account's upload that has not expired."""
    return _find(connection, account_id, token, now, files.c.job_id.is_(None))


def page(connection: Connection, account_id: str, before: str | None, limit: int, now: float) -> list[StoredFile]:
    """Return a page of an account's uploads, newest first."""
    is_kept = or_(files.c.expires_at.is_(None), files.c.expires_at > now)
    query = select(files).where(files.c.account_id == account_id, files.c.job_id.is_(None), is_kept)
    if before is not None:
        query = query.where(files.c.token < before)
    return [_file(row) for row in connection.execute(query.order_by(files.c.token.desc()).limit(limit))]


def get_usable(connection: Connection, account_id: str, token: str, now: float) -> StoredFile:
    """Return a file that a generation may use: an account's upload, or the copy kept by one of its jobs."""
    kept = select(jobs.c.id).where(jobs.c.id == files.c.job_id, jobs.c.removed.is_(None)).exists()
    return _find(connection, account_id, token, now, or_(files.c.job_id.is_(None), kept))


def get_shown(connection: Connection, account_id: str | None, token: str, now: float) -> StoredFile:
    """Return a file to be shown to its account, or to the holder of a signed link (`account_id` None)."""
    is_kept = jobs.c.removed.is_(None) & or_(jobs.c.expires_at.is_(None), jobs.c.expires_at > now)
    kept = select(jobs.c.id).where(jobs.c.id == files.c.job_id, is_kept).exists()
    query = select(files).where(files.c.token == token, or_(files.c.job_id.is_(None), kept))
    row = connection.execute(query).one_or_none()
    if (
        row is None
        or account_id not in (None, row.account_id)
        or (row.expires_at is not None and row.expires_at <= now)
    ):
        raise FileNotFound
    return _file(row)


def _find(connection: Connection, account_id: str, token: str, now: float, where: ColumnElement[bool]) -> StoredFile:
    query = select(files).where(files.c.token == token, files.c.account_id == account_id, where)
    row = connection.execute(query).one_or_none()
    if row is None or (row.expires_at is not None and row.expires_at <= now):
        raise FileNotFound
    return _file(row)


def expire(connection: Connection, file: StoredFile, now: float) -> None:
    """Expire a file whose bytes may never have arrived. It is hidden, and removed by the next sweep."""
    connection.execute(update(files).where(files.c.token == file.token).values(expires_at=now))


def of_job(connection: Connection, job_id: str) -> Sequence[StoredFile]:
    """Return a job's copies of its input files."""
    return [_file(row) for row in connection.execute(select(files).where(files.c.job_id == job_id))]


def expired(connection: Connection, now: float, limit: int) -> Sequence[StoredFile]:
    """Return expired uploads."""
    query = select(files).where(files.c.expires_at <= now).order_by(files.c.expires_at).limit(limit)
    return [_file(row) for row in connection.execute(query)]


def orphans(connection: Connection, before: float, limit: int) -> Sequence[StoredFile]:
    """Return copies whose job was never written or is removed: the process died between the two steps."""
    kept = select(jobs.c.id).where(jobs.c.id == files.c.job_id, jobs.c.removed.is_(None)).exists()
    query = select(files).where(files.c.job_id.is_not(None), ~kept, files.c.created_at < before)
    return [_file(row) for row in connection.execute(query.limit(limit))]


def remove(connection: Connection, file: StoredFile, remove_bytes: Callable[[StoredFile], None]) -> None:
    """Remove a file's row, and its bytes if no other row of the account has this content.

    Both happen in one transaction: a new row for these bytes comes before or after it.
    """
    locks.hold(connection, "file", file.account_id, file.sha256)
    was_there = connection.execute(delete(files).where(files.c.token == file.token)).rowcount
    if _count_same(connection, file) == 0:
        remove_bytes(file)
        if was_there:
            storage_rows.change(connection, file.account_id, files=-file.bytes)

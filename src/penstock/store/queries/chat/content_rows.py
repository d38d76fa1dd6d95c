"""Records of the content log: added within the account's quota, listed, read and removed in small steps."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, delete, insert, or_, select, true, update

from penstock.domain.content.records import ContentFacts, SealedContent
from penstock.store.locks import hold
from penstock.store.queries.chat.content_tables import content_sums, contents
from penstock.store.tables import accounts, jobs

ROOM_STEP: Final = 200
"""Records that are looked at together when older ones make room."""
_FACTS: Final = tuple(field.name for field in fields(ContentFacts))
_COLUMNS: Final = [contents.c[name] for name in _FACTS]


class ContentFilter(NamedTuple):
    """The records that a list is about."""

    key_id: str | None = None
    model: str | None = None
    job_id: str | None = None
    since: float | None = None
    until: float | None = None


def add_all(connection: Connection, records: Sequence[SealedContent], quota_bytes: int) -> int:
    """Add records. Older ones of their accounts make room. Return the number of records that were not added.

    A record of a job that is removed already, or one that is larger than the quota, is not added.
    """
    gone = _removed_jobs(connection, [record.facts.job_id for record in records if record.facts.job_id])
    wanted = [record for record in records if record.facts.job_id not in gone and record.size <= quota_bytes]
    by_account: dict[str, list[SealedContent]] = {}
    for record in wanted:
        by_account.setdefault(record.facts.account_id, []).append(record)
    for account_id, theirs in sorted(by_account.items()):
        hold(connection, "content", account_id)
        known = set(_known(connection, [record.facts.id for record in theirs]))  # of a write that is repeated
        new = [record for record in theirs if record.facts.id not in known]
        if new:
            connection.execute(insert(contents), [_row(record) for record in new])
            _make_room(connection, account_id, sum(record.size for record in new), quota_bytes)
    return len(records) - len(wanted)


def _row(record: SealedContent) -> dict[str, Any]:
    facts = asdict(record.facts)
    changed = {"streamed": int(record.facts.streamed), "bytes": record.size, "sealed": record.sealed}
    return {**facts, **changed, "expires_at": record.expires_at}


def _removed_jobs(connection: Connection, ids: Sequence[str]) -> set[str]:
    if not ids:
        return set()
    query = select(jobs.c.id).where(jobs.c.id.in_(set(ids)), jobs.c.removed.is_(None)).order_by(jobs.c.id)
    # Locked, so that none is removed before its record is committed.
    return set(ids) - set(connection.execute(query.with_for_update(read=True)).scalars())


def _known(connection: Connection, ids: Sequence[str]) -> Sequence[str]:
    return connection.execute(select(contents.c.id).where(contents.c.id.in_(ids))).scalars().all()


def _make_room(connection: Connection, account_id: str, more: int, quota_bytes: int) -> None:
    """Count the new bytes, and remove the account's oldest records until all fit."""
    mine = content_sums.c.account_id == account_id
    before = connection.execute(select(content_sums.c.bytes).where(mine)).scalar()
    total = more + (before or 0)
    oldest = select(contents.c.id, contents.c.bytes).where(contents.c.account_id == account_id)
    oldest = oldest.order_by(contents.c.id).limit(ROOM_STEP)
    while total > quota_bytes:
        removed: list[str] = []
        for row in connection.execute(oldest):
            if total <= quota_bytes:
                break
            removed.append(row.id)
            total -= row.bytes
        if not removed:
            break
        connection.execute(delete(contents).where(contents.c.id.in_(removed)))
    if before is None:
        connection.execute(insert(content_sums), {"account_id": account_id, "bytes": total})
    else:
        connection.execute(update(content_sums).where(mine).values(bytes=total))


# -- reading


def page(
    connection: Connection, account_id: str, wanted: ContentFilter, before: str | None, limit: int, now: float
) -> list[tuple[ContentFacts, int]]:
    """Return the facts of records and their sizes, newest first, older than the one with this id."""
    query = select(*_COLUMNS, contents.c.bytes).where(_is_kept(account_id, now), _matches(wanted))
    if before is not None:
        query = query.where(contents.c.id < before)
    rows = connection.execute(query.order_by(contents.c.id.desc()).limit(limit)).mappings()
    return [(_facts(row), row["bytes"]) for row in rows]


def get(connection: Connection, account_id: str, content_id: str, now: float) -> tuple[ContentFacts, int, bytes] | None:
    """Return a record of the account with its sealed document, or None."""
    query = select(*_COLUMNS, contents.c.bytes, contents.c.sealed)
    query = query.where(_is_kept(account_id, now), contents.c.id == content_id)
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else (_facts(row), row["bytes"], row["sealed"])


def _is_kept(account_id: str, now: float) -> ColumnElement[bool]:
    return and_(contents.c.account_id == account_id, contents.c.expires_at > now)


def _matches(wanted: ContentFilter) -> ColumnElement[bool]:
    conditions: list[ColumnElement[bool]] = [true()]
    for column, value in (
        (contents.c.key_id, wanted.key_id),
        (contents.c.model, wanted.model),
        (contents.c.job_id, wanted.job_id),
    ):
        if value is not None:
            conditions.append(column == value)
    if wanted.since is not None:
        conditions.append(contents.c.created_at >= wanted.since)
    if wanted.until is not None:
        conditions.append(contents.c.created_at < wanted.until)
    return and_(*conditions)


def _facts(row: Mapping[Any, Any]) -> ContentFacts:
    values: dict[str, Any] = {name: row[name] for name in _FACTS}
    values["streamed"] = bool(values["streamed"])
    return ContentFacts(**values)


# -- removing


def remove(connection: Connection, account_id: str, content_id: str) -> bool:
    """Remove one record of an account. Return False if there is none."""
    return _remove(connection, and_(contents.c.account_id == account_id, contents.c.id == content_id), 1) > 0


def remove_some(
    connection: Connection, account_id: str, wanted: ContentFilter, until_id: str | None, limit: int
) -> int:
    """Remove records of an account, at most `limit` and none after `until_id`. Return their number."""
    is_early = true() if until_id is None else contents.c.id <= until_id
    return _remove(connection, and_(contents.c.account_id == account_id, _matches(wanted), is_early), limit)


def remove_of_job(connection: Connection, job_id: str) -> None:
    """Remove the records of a job."""
    _remove(connection, contents.c.job_id == job_id, ROOM_STEP)


def remove_old(connection: Connection, now: float, retention_seconds: float, limit: int) -> int:
    """Remove records past their retention, at most `limit`. A retention that became shorter holds for all."""
    is_old = contents.c.expires_at <= now
    if retention_seconds:
        is_old = or_(is_old, contents.c.created_at <= now - retention_seconds)
    return _remove(connection, is_old, limit)


def remove_of_closed(connection: Connection, limit: int) -> int:
    """Remove records of closed accounts, at most `limit`. Return their number."""
    closed = select(content_sums.c.account_id).join(accounts, accounts.c.id == content_sums.c.account_id)
    closed = closed.where(accounts.c.closed_at.is_not(None), content_sums.c.bytes > 0).limit(1)
    account_id = connection.execute(closed).scalar()
    if account_id is None:
        return 0
    return _remove(connection, contents.c.account_id == account_id, limit)


def _remove(connection: Connection, which: ColumnElement[bool], limit: int) -> int:
    rows = connection.execute(select(contents.c.id, contents.c.account_id).where(which).limit(limit)).all()
    by_account: dict[str, list[str]] = {}
    for row in rows:
        by_account.setdefault(row.account_id, []).append(row.id)
    count = 0
    for account_id, ids in sorted(by_account.items()):
        hold(connection, "content", account_id)
        gone = connection.execute(delete(contents).where(contents.c.id.in_(ids)).returning(contents.c.bytes)).all()
        count += len(gone)
        less = content_sums.c.bytes - sum(row.bytes for row in gone)
        connection.execute(update(content_sums).where(content_sums.c.account_id == account_id).values(bytes=less))
    return count

"""The audit log: one entry for every administrative change, in the transaction that makes it."""

from typing import Any

import msgspec
from sqlalchemy import Connection, insert, select

from penstock.domain.accounts import AuditEntry
from penstock.store import sql
from penstock.store.tables import audit

_LAST = "SELECT coalesce(max(position), 0) FROM audit"
_COUNT = "SELECT count(*), coalesce(max(position), 0) FROM audit WHERE position > ?"


def append(connection: Connection, entry: AuditEntry) -> None:
    """Add an entry. The store assigns its position."""
    connection.execute(
        insert(audit),
        {
            "created_at": entry.created_at,
            "actor": entry.actor,
            "action": str(entry.action),
            "subject": entry.subject,
            "account_id": entry.account_id,
            "detail": msgspec.json.encode(entry.detail),
        },
    )


def page(
    connection: Connection, account_id: str | None, action: str | None, before: int | None, limit: int
) -> list[AuditEntry]:
    """Return entries, newest first, older than this position."""
    query = select(audit).order_by(audit.c.position.desc()).limit(limit)
    for column, value in ((audit.c.account_id, account_id), (audit.c.action, action)):
        if value is not None:
            query = query.where(column == value)
    if before is not None:
        query = query.where(audit.c.position < before)
    return [_entry(dict(row)) for row in connection.execute(query).mappings()]


def last_position(connection: Connection) -> int:
    """Return the position of the last entry, or 0."""
    return int(sql.run(connection, _LAST)[0][0])


def count_after(connection: Connection, position: int) -> tuple[int, int]:
    """Return the number of entries after this position, and the position of the last one, or 0."""
    number, last = sql.run(connection, _COUNT, position)[0]
    return int(number), int(last)


def accounts_after(connection: Connection, position: int) -> dict[int, str | None]:
    """Return the account of each entry after this position."""
    query = select(audit.c.position, audit.c.account_id).where(audit.c.position > position)
    return {row.position: row.account_id for row in connection.execute(query)}


def _entry(fields: dict[Any, Any]) -> AuditEntry:
    fields["detail"] = msgspec.json.decode(fields["detail"])
    return AuditEntry(**fields)

"""The audit log: one row for every change that someone made, in the transaction that makes it."""

from typing import Any

import msgspec
from sqlalchemy import Connection, insert, select

from penstock.accounts import Action, AuditEntry
from penstock.store.tables import audit


def append(connection: Connection, entry: AuditEntry) -> None:
    """Add an entry; its position is the store's to give."""
    connection.execute(
        insert(audit),
        {
            "created_at": entry.created_at,
            "actor": entry.actor,
            "action": entry.action.value,
            "subject": entry.subject,
            "account_id": entry.account_id,
            "detail": msgspec.json.encode(entry.detail),
        },
    )


def page(
    connection: Connection, account_id: str | None, action: str | None, before: int | None, limit: int
) -> list[AuditEntry]:
    """Entries, newest first, older than this position."""
    query = select(audit).order_by(audit.c.position.desc()).limit(limit)
    for column, value in ((audit.c.account_id, account_id), (audit.c.action, action)):
        if value is not None:
            query = query.where(column == value)
    if before is not None:
        query = query.where(audit.c.position < before)
    return [_entry(dict(row)) for row in connection.execute(query).mappings()]


def _entry(fields: dict[Any, Any]) -> AuditEntry:
    fields["action"] = Action(fields["action"])
    fields["detail"] = msgspec.json.decode(fields["detail"])
    return AuditEntry(**fields)

"""Removal of old entries of the audit log, which is an entry itself."""

from sqlalchemy import Connection, delete, select

from penstock.domain.accounts import Action, Actor, AuditEntry
from penstock.domain.ids import timestamp
from penstock.store.queries.accounts import audit_rows
from penstock.store.tables import audit


def remove(connection: Connection, cut: float, now: float, limit: int) -> int:
    """Remove up to `limit` entries of before the cut, oldest first, and note it. Return the number removed."""
    query = select(audit.c.position, audit.c.created_at).order_by(audit.c.position).limit(limit)
    old = [row.position for row in connection.execute(query) if row.created_at < cut]
    if not old:
        return 0
    connection.execute(delete(audit).where(audit.c.position.in_(old)))
    detail = {"entries": len(old), "until": timestamp(cut)}
    audit_rows.append(
        connection,
        AuditEntry(
            created_at=now,
            actor=Actor.SERVER,
            action=Action.AUDIT_TRIMMED,
            subject="audit",
            account_id=None,
            detail=detail,
        ),
    )
    return len(old)

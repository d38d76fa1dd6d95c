"""Reading and deleting records of the content log. Every look at a record is noted in the audit log first."""

from typing import Any, Final

from penstock.domain.accounts import Action, AuditEntry
from penstock.domain.content.records import PURPOSE, ContentFacts, place_of, unpack
from penstock.domain.ids import timestamp
from penstock.domain.money import format_usd
from penstock.errors import ContentNotFound
from penstock.sealing.sealer import Sealer
from penstock.store.database import Connection
from penstock.store.queries.accounts import audit_rows
from penstock.store.queries.chat import content_rows
from penstock.store.queries.chat.content_rows import ContentFilter

DELETED_AT_ONCE: Final = 500
"""Records that are deleted in one transaction."""


def read_record(
    connection: Connection, sealer: Sealer, actor: str, account_id: str, content_id: str, now: float
) -> dict[str, Any]:
    """Return a record with its content, and note in the audit log who has looked at it."""
    found = content_rows.get(connection, account_id, content_id, now)
    if found is None:
        raise ContentNotFound
    facts, size, sealed = found
    document = unpack(sealer.open(PURPOSE, place_of(account_id, content_id), sealed))
    _note(connection, actor, Action.CONTENT_READ, content_id, account_id, now, {"key": facts.key_id})
    return {**describe(facts, size), **document}


def list_records(
    connection: Connection, account_id: str, wanted: ContentFilter, before: str | None, limit: int, now: float
) -> list[dict[str, Any]]:
    """Return the facts of records, newest first, without their content."""
    return [describe(*each) for each in content_rows.page(connection, account_id, wanted, before, limit, now)]


def delete_record(connection: Connection, actor: str, account_id: str, content_id: str, now: float) -> None:
    """Delete one record."""
    if not content_rows.remove(connection, account_id, content_id):
        raise ContentNotFound
    _note(connection, actor, Action.CONTENT_DELETED, content_id, account_id, now, {"records": 1})


def delete_some(
    connection: Connection, actor: str, account_id: str, wanted: ContentFilter, until_id: str, now: float
) -> int:
    """Delete some of the records that a filter names, none after `until_id`. Return their number."""
    count = content_rows.remove_some(connection, account_id, wanted, until_id, DELETED_AT_ONCE)
    if count:
        named = {name: value for name, value in wanted._asdict().items() if value is not None}
        _note(connection, actor, Action.CONTENT_DELETED, account_id, account_id, now, {"records": count, **named})
    return count


def describe(facts: ContentFacts, size: int) -> dict[str, Any]:
    """Return the facts of a record."""
    return {
        "object": "content",
        "id": facts.id,
        "created_at": timestamp(facts.created_at),
        "kind": facts.kind,
        "endpoint": facts.endpoint,
        "model": facts.model,
        "vendor": facts.vendor,
        "key_id": facts.key_id,
        "request_id": facts.request_id,
        "job_id": facts.job_id,
        "status": facts.status,
        "error": facts.error,
        "streamed": facts.streamed,
        "seconds": facts.seconds,
        "prompt_tokens": facts.prompt_tokens,
        "completion_tokens": facts.completion_tokens,
        "cost": None if facts.cost is None else format_usd(facts.cost),
        "bytes": size,
    }


def _note(
    connection: Connection,
    actor: str,
    action: Action,
    subject: str,
    account_id: str,
    now: float,
    detail: dict[str, Any],
) -> None:
    entry = AuditEntry(
        created_at=now, actor=actor, action=action, subject=subject, account_id=account_id, detail=detail
    )
    audit_rows.append(connection, entry)

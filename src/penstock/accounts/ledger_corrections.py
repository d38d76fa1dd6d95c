"""Corrections of the ledger by administrators: each adds an entry, and one to the audit log."""

from penstock.domain.accounts import Action, AuditEntry
from penstock.domain.ledger import EntryKind, LedgerEntry
from penstock.domain.money import format_usd
from penstock.store.database import Connection
from penstock.store.queries.accounts import audit_rows
from penstock.store.queries.billing import completion_rows, ledger_rows, usage_rows
from penstock.store.queries.billing.ledger_rows import LedgerRefused
from penstock.store.queries.jobs import job_rows


def refund(connection: Connection, actor: str, subject: str, reason: str, now: float) -> int:
    """Refund the charge of a job or a chat request. A second request refunds nothing more."""
    entries = ledger_rows.of_subject(connection, subject)
    if EntryKind.REFUND in entries:
        return entries[EntryKind.REFUND].amount
    amount = ledger_rows.refund(connection, subject, now, reason)
    _count(connection, subject, -amount)
    _note(connection, actor, Action.LEDGER_REFUNDED, entries[EntryKind.SETTLE], amount, reason, now)
    return amount


def settle(connection: Connection, actor: str, subject: str, reason: str, now: float) -> int:
    """Charge the held amount for a job of unknown outcome: the vendor delivered, and it is to be paid."""
    held = _of_unknown_outcome(connection, subject)
    amount = ledger_rows.settle(connection, subject, held.amount, now, reason)
    _count(connection, subject, amount)
    _note(connection, actor, Action.LEDGER_SETTLED, held, amount, reason, now)
    return amount


def release(connection: Connection, actor: str, subject: str, reason: str, now: float) -> int:
    """Release the hold of a job of unknown outcome before it expires: it is not to be paid."""
    held = _of_unknown_outcome(connection, subject)
    ledger_rows.release(connection, subject, now, reason)
    _note(connection, actor, Action.LEDGER_RELEASED, held, held.amount, reason, now)
    return held.amount


def _of_unknown_outcome(connection: Connection, subject: str) -> LedgerEntry:
    entries = ledger_rows.of_subject(connection, subject)
    if EntryKind.HOLD not in entries:
        raise LedgerRefused(f"Nothing was held for {subject}.")
    if EntryKind.SETTLE in entries:
        raise LedgerRefused(f"{subject} is settled already.")
    job = job_rows.find(connection, subject)
    if job is None or not job.done or job.charged is not None:
        raise LedgerRefused(f"{subject} is no finished job of unknown outcome: it settles itself.")
    return entries[EntryKind.HOLD]


def _count(connection: Connection, subject: str, amount: int) -> None:
    """Adjust the usage sums by the amount."""
    found = job_rows.find(connection, subject) or completion_rows.find(connection, subject)
    if found is not None:
        usage_rows.add(connection, usage_rows.refund(found, -amount))


def _note(
    connection: Connection, actor: str, action: Action, entry: LedgerEntry, amount: int, reason: str, now: float
) -> None:
    detail = {"amount": format_usd(amount), "reason": reason}
    audit_rows.append(
        connection,
        AuditEntry(
            created_at=now,
            actor=actor,
            action=action,
            subject=entry.subject,
            account_id=entry.payer.account_id,
            detail=detail,
        ),
    )

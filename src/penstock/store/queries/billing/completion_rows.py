"""Usage records of chat requests: written in batches, read by account."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, select

from penstock.domain.attribution.labels import Attribution
from penstock.domain.budgets import Payer
from penstock.domain.chat import Usage
from penstock.domain.ledger import Charge
from penstock.domain.usage import ChatOutcome, Completion
from penstock.store import sql
from penstock.store.queries.billing import ledger_rows, usage_rows
from penstock.store.queries.retention import roll_up_rows
from penstock.store.tables import completions

ESTIMATED = "estimated"
"""The note of a charge whose tokens were estimated, as the vendor did not report them."""


def add_all(
    connection: Connection, process: str, records: Sequence[Completion], now: float, *, again: bool = False
) -> list[Completion]:
    """Write usage records, charge their costs and add them to the usage sums, each once.

    `again`: some may have been written before, and are skipped. Return those skipped because a roll-up removed
    all records of their time: nothing proves that they were not charged.
    """
    doubtful: list[Completion] = []
    if again:
        records, doubtful = _skip_written(connection, records)
    if not records:
        return doubtful
    sql.insert_all(connection, completions, [_row(record) for record in records])
    charges = [
        Charge(
            record.id,
            _payer(record),
            record.cost,
            record.created_at,
            ESTIMATED if record.usage.estimated else "",
        )
        for record in records
        if record.cost
    ]
    charged = ledger_rows.charge_all(connection, process, charges, now) if charges else {}
    usage_rows.add(connection, usage_rows.of_completions(records, charged))
    return doubtful


def _payer(record: Completion) -> Payer:
    tags = () if record.attribution is None else record.attribution.tags
    return Payer(record.account_id, record.key_id, record.lineage or record.key_id, tags)


def _skip_written(
    connection: Connection, records: Sequence[Completion]
) -> tuple[Sequence[Completion], list[Completion]]:
    """Return the records that were not written before, and those of which nobody knows any more."""
    known = select(completions.c.id).where(completions.c.id.in_([record.id for record in records]))
    written = set(connection.execute(known).scalars())
    cuts = roll_up_rows.cuts_of(connection, {record.account_id for record in records})
    new: list[Completion] = []
    doubtful: list[Completion] = []
    for record in records:
        if record.id not in written:
            (doubtful if record.created_at < cuts.get(record.account_id, 0.0) else new).append(record)
    return new, doubtful


def of_account(connection: Connection, account_id: str, limit: int = 100) -> list[Completion]:
    """Return the latest records of an account, newest first."""
    query = (
        select(completions).where(completions.c.account_id == account_id).order_by(completions.c.id.desc()).limit(limit)
    )
    return [_record(dict(row)) for row in connection.execute(query).mappings()]


def find(connection: Connection, record_id: str) -> Completion | None:
    """Return a record of any account, for corrections of the ledger."""
    row = connection.execute(select(completions).where(completions.c.id == record_id)).mappings().one_or_none()
    return None if row is None else _record(dict(row))


def _row(record: Completion) -> tuple[Any, ...]:
    """Return the values in the order of the columns."""
    usage = record.usage
    return (
        record.id,
        record.request_id,
        record.account_id,
        record.key_id,
        record.model,
        record.vendor,
        record.upstream_model,
        int(record.streamed),
        record.outcome.value,
        record.code,
        usage.prompt,
        usage.completion,
        usage.cached,
        usage.cache_writes,
        usage.cache_writes_1h,
        usage.reasoning,
        int(usage.estimated),
        record.cost,
        record.created_at,
        record.seconds,
        record.first_byte_seconds,
        record.guardrails,
        *((None, None, None) if record.attribution is None else _describe(record.attribution)),
    )


def _describe(attribution: Attribution) -> tuple[str | None, str | None, str | None]:
    return ledger_rows.join_tags(attribution.tags), attribution.end_user or None, attribution.session or None


def _record(row: Any) -> Completion:
    row["usage"] = Usage(
        prompt=row.pop("prompt_tokens"),
        completion=row.pop("completion_tokens"),
        cached=row.pop("cached_tokens"),
        cache_writes=row.pop("cache_write_tokens"),
        cache_writes_1h=row.pop("cache_write_1h_tokens"),
        reasoning=row.pop("reasoning_tokens"),
        estimated=bool(row.pop("estimated")),
    )
    row["outcome"] = ChatOutcome(row["outcome"])
    row["streamed"] = bool(row["streamed"])
    tags, end_user, session = row.pop("tags"), row.pop("end_user"), row.pop("session")
    if tags or end_user or session:
        row["attribution"] = Attribution(ledger_rows.split_tags(tags), end_user or "", session or "")
    return Completion(**row)

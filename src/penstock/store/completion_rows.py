"""Usage records of chat requests: written in batches, read by account."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, insert, select

from penstock.chat import Usage
from penstock.store.tables import completions
from penstock.usage_records import Completion, Outcome

INSERT = insert(completions).prefix_with("OR IGNORE", dialect="sqlite")  # a batch may be written again


def add_all(connection: Connection, records: Sequence[Completion]) -> None:
    """Write these records; those that are there already stay as they are."""
    connection.execute(INSERT, [_row(record) for record in records])


def of_account(connection: Connection, account_id: str, limit: int = 100) -> list[Completion]:
    """The latest records of an account, newest first."""
    query = (
        select(completions).where(completions.c.account_id == account_id).order_by(completions.c.id.desc()).limit(limit)
    )
    return [_record(dict(row)) for row in connection.execute(query).mappings()]


def _row(record: Completion) -> dict[str, Any]:
    usage = record.usage
    return {
        "id": record.id,
        "request_id": record.request_id,
        "account_id": record.account_id,
        "key_id": record.key_id,
        "model": record.model,
        "vendor": record.vendor,
        "upstream_model": record.upstream_model,
        "streamed": int(record.streamed),
        "outcome": record.outcome.value,
        "code": record.code,
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "cached_tokens": usage.cached,
        "reasoning_tokens": usage.reasoning,
        "estimated": int(usage.estimated),
        "cost": record.cost,
        "created_at": record.created_at,
        "seconds": record.seconds,
        "first_byte_seconds": record.first_byte_seconds,
    }


def _record(row: Any) -> Completion:
    counts = (row.pop(f"{name}_tokens") for name in ("prompt", "completion", "cached", "reasoning"))
    row["usage"] = Usage(*counts, estimated=bool(row.pop("estimated")))
    row["outcome"] = Outcome(row["outcome"])
    row["streamed"] = bool(row["streamed"])
    return Completion(**row)

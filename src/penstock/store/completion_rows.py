"""Usage records of chat requests: written in batches, read by account."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, select

from penstock.chat import Usage
from penstock.store.tables import completions
from penstock.usage_records import Completion, Outcome

COLUMNS = tuple(column.name for column in completions.columns)
# In the driver's own words: SQLAlchemy would take longer to prepare a row than SQLite takes to write it.
# OR IGNORE, as a batch may be written again.
INSERT = f"INSERT OR IGNORE INTO completions ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608


def add_all(connection: Connection, records: Sequence[Completion]) -> None:
    """Write these records; those that are there already stay as they are."""
    connection.exec_driver_sql(INSERT, [_row(record) for record in records])


def of_account(connection: Connection, account_id: str, limit: int = 100) -> list[Completion]:
    """The latest records of an account, newest first."""
    query = (
        select(completions).where(completions.c.account_id == account_id).order_by(completions.c.id.desc()).limit(limit)
    )
    return [_record(dict(row)) for row in connection.execute(query).mappings()]


def _row(record: Completion) -> tuple[Any, ...]:
    """In the order of the columns."""
    usage = record.usage
    return (
        record.id,
        record.request_id,
        record.account_id,
        record.key_id,
        record.model,
        record.vendor,
        record.upstream_model,
        record.streamed,
        record.outcome.value,
        record.code,
        usage.prompt,
        usage.completion,
        usage.cached,
        usage.reasoning,
        usage.estimated,
        record.cost,
        record.created_at,
        record.seconds,
        record.first_byte_seconds,
    )


def _record(row: Any) -> Completion:
    counts = (row.pop(f"{name}_tokens") for name in ("prompt", "completion", "cached", "reasoning"))
    row["usage"] = Usage(*counts, estimated=bool(row.pop("estimated")))
    row["outcome"] = Outcome(row["outcome"])
    row["streamed"] = bool(row["streamed"])
    return Completion(**row)

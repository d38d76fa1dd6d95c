"""The ledger of an account, page by page."""

from dataclasses import dataclass

from sqlalchemy import Connection, select, tuple_

from penstock.store.queries.billing.ledger_rows import LedgerEntry, read
from penstock.store.tables import ledger


@dataclass(frozen=True, slots=True)
class EntryPlace:
    """Where an entry stands in its account's ledger."""

    at: float
    subject: str
    kind: str


def page(connection: Connection, account_id: str, before: EntryPlace | None, limit: int) -> list[LedgerEntry]:
    """An account's entries, those of what was accepted last first. There is an index for it."""
    place = (ledger.c.at, ledger.c.subject, ledger.c.kind)
    query = select(ledger).where(ledger.c.account_id == account_id)
    if before is not None:
        query = query.where(tuple_(*place) < tuple_(before.at, before.subject, before.kind))
    rows = connection.execute(query.order_by(*(column.desc() for column in place)).limit(limit))
    return [read(row) for row in rows]

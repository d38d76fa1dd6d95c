"""Changes of prices by administrators: one transaction each, with an audit log entry for every price."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from penstock.accounts.administration import ADMINISTRATION_LOCK
from penstock.domain.accounts import Action, AuditEntry
from penstock.domain.ids import timestamp
from penstock.domain.prices import DatedPrice, PriceRow, write_price
from penstock.errors import PriceNotFound, PricesChanged, TooManyPrices
from penstock.store import locks
from penstock.store.database import Connection
from penstock.store.queries.accounts import audit_rows
from penstock.store.queries.billing import price_rows

MAX_PRICE_ROWS: Final = 20_000
"""Rows of the store, ended ones included: every process holds them."""


def add_prices(connection: Connection, actor: str, entries: Sequence[DatedPrice], seen_version: int, now: float) -> int:
    """Write prices that were shown as a diff of `seen_version`. Return the new version.

    Raise if the prices have changed since: the diff may be wrong. No price begins in the past.
    """
    locks.hold(connection, ADMINISTRATION_LOCK)
    if price_rows.read_version(connection) != seen_version:
        raise PricesChanged
    if price_rows.count(connection) + len(entries) > MAX_PRICE_ROWS:
        raise TooManyPrices(f"The store keeps at most {MAX_PRICE_ROWS:,} prices, ended ones included.")
    entries = [replace(entry, since=max(entry.since, now)) for entry in entries]
    price_rows.add(connection, entries, actor, now)
    for entry in entries:
        _note(connection, actor, Action.PRICE_SET, entry, now, {"source": entry.source})
    return price_rows.read_version(connection)


def remove_price(connection: Connection, actor: str, row_id: int, now: float) -> PriceRow:
    """End a price now. Earlier requests and accepted jobs keep it. Ending it again changes nothing."""
    locks.hold(connection, ADMINISTRATION_LOCK)
    row = next((each for each in price_rows.read(connection) if each.id == row_id), None)
    if row is None:
        raise PriceNotFound(f"There is no price {row_id}.", param="price_id")
    if row.ended_at is None:
        price_rows.end(connection, row, actor, now)
        _note(connection, actor, Action.PRICE_REMOVED, row, now, {"id": row.id})
    return next(each for each in price_rows.read(connection) if each.id == row_id)


def describe_row(row: PriceRow, now: float) -> dict[str, Any]:
    """Return a row as administrators see it."""
    is_past = row.until is not None and row.until <= now
    return {
        "object": "price_row",
        "id": row.id,
        "model": row.model,
        "vendor": row.vendor,
        "from": timestamp(row.since),
        "until": timestamp(row.until),
        "status": "ended" if is_past or row.is_void() else "coming" if row.since > now else "in_force",
        "price": write_price(row.price),
        "source": row.source,
        "actor": row.actor,
        "created_at": timestamp(row.created_at),
    }


def _note(
    connection: Connection, actor: str, action: Action, price: DatedPrice, now: float, more: dict[str, Any]
) -> None:
    detail = {
        "vendor": price.vendor,
        "price": write_price(price.price),
        "from": timestamp(price.since),
        "until": timestamp(price.until),
    }
    entry = AuditEntry(
        created_at=now, actor=actor, action=action, subject=price.model, account_id=None, detail=detail | more
    )
    audit_rows.append(connection, entry)

"""Dated prices: rows that are only added, so that the greatest id is the version of all of them."""

import logging
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Connection, func, insert, select

from penstock.domain.prices import DatedPrice, Price, PriceRow, TokenPrice, write_price
from penstock.settings.prices import AnyPrice
from penstock.store import sql
from penstock.store.tables import prices

_VERSION: Final = "SELECT coalesce(max(position), 0) FROM prices"
_FORM: Final[TypeAdapter[Price | TokenPrice]] = TypeAdapter(AnyPrice)

log = logging.getLogger(__name__)


def read_version(connection: Connection) -> int:
    """Return the version of all prices, which every change raises; 0 without any."""
    return int(sql.run(connection, _VERSION)[0][0])


def count(connection: Connection) -> int:
    """Return the number of rows, those included that end others."""
    return int(connection.execute(select(func.count()).select_from(prices)).scalar_one())


def read(connection: Connection) -> list[PriceRow]:
    """Return all prices, also those that have ended, the oldest first."""
    found = [dict(row) for row in connection.execute(select(prices).order_by(prices.c.position)).mappings()]
    ends: dict[int, float] = {}
    for row in found:
        if row["ends"] is not None:
            ends[row["ends"]] = min(row["since"], ends.get(row["ends"], row["since"]))
    rows = (_make_row(row, ends.get(row["position"])) for row in found if row["ends"] is None)
    return [row for row in rows if row is not None]


def add(connection: Connection, entries: Iterable[DatedPrice], actor: str, now: float) -> None:
    """Add prices."""
    for entry in entries:
        shared = {"model": entry.model, "vendor": entry.vendor, "since": entry.since, "until": entry.until}
        document = msgspec.json.encode(write_price(entry.price))
        connection.execute(
            insert(prices), shared | {"price": document, "source": entry.source, "actor": actor, "created_at": now}
        )


def end(connection: Connection, row: PriceRow, actor: str, now: float) -> None:
    """End a price now; one that has not begun will never begin."""
    fields: dict[str, Any] = {"model": row.model, "vendor": row.vendor, "since": now, "ends": row.id, "source": ""}
    connection.execute(insert(prices), fields | {"actor": actor, "created_at": now})


def _make_row(fields: dict[Any, Any], ended_at: float | None) -> PriceRow | None:
    """Return a row; None, with a line in the log, if another version wrote a price that this one cannot read."""
    try:
        price = _FORM.validate_python(msgspec.json.decode(fields["price"]))
    except (ValidationError, msgspec.DecodeError):
        log.warning(
            "a price of the store is not readable; it does not count", extra={"fields": {"id": fields["position"]}}
        )
        return None
    until = fields["until"]
    if ended_at is not None:
        until = ended_at if until is None else min(until, ended_at)
    return PriceRow(
        id=fields["position"],
        model=fields["model"],
        vendor=fields["vendor"],
        since=fields["since"],
        until=until,
        price=price,
        source=fields["source"],
        actor=fields["actor"],
        created_at=fields["created_at"],
        ended_at=ended_at,
    )

"""Accepted requests: a retried request finds the jobs that it already made."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete

from penstock.store import locks, sql
from penstock.store.sql import Statement
from penstock.store.tables import requests

RETRY_SHIELD_SECONDS = 600
KNOWN = "SELECT account_id, idempotency_key FROM requests WHERE account_id IN"
FORGET = "DELETE FROM requests WHERE account_id = ? AND idempotency_key = ?"


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedRequest:
    """A request and the jobs it made. `id` is the id of the batch or of the only job."""

    id: str
    account_id: str
    key_id: str
    idempotency_key: str | None
    fingerprint: bytes
    job_ids: tuple[str, ...]
    created_at: float


_FIELDS = AcceptedRequest.__slots__
_GET = f"SELECT {', '.join(_FIELDS)} FROM requests WHERE "  # noqa: S608  names of our own
BY_KEY = f"{_GET} account_id = ? AND idempotency_key = ?"
BY_BODY = f"{_GET} key_id = ? AND fingerprint = ? AND created_at >= ? ORDER BY created_at DESC LIMIT 1"


def _first(rows: Sequence[tuple[Any, ...]]) -> AcceptedRequest | None:
    if not rows:
        return None
    fields = dict(zip(_FIELDS, rows[0], strict=True))
    fields["job_ids"] = tuple(fields["job_ids"].split())
    return AcceptedRequest(**fields)


def wait_for_same(connection: Connection, whose: str, mark: str | bytes, *, is_retry: bool) -> None:
    """Wait for a request that this one repeats, also if another server is accepting it.

    Requests are matched by Idempotency-Key or body. Of requests with equal bodies, only a retry waits.
    """
    shared = isinstance(mark, bytes) and not is_retry
    locks.hold(connection, *_name(whose, mark), shared=shared, join=True)


def _name(whose: str, mark: str | bytes) -> tuple[str, str, str]:
    return ("request", whose, mark) if isinstance(mark, str) else ("body", whose, mark.hex())


def take_new(connection: Connection, slots: Sequence[tuple[str, str | bytes]]) -> list[bool]:
    """Like `wait_for_same`, for many requests and without waiting. Return which are new."""
    held = locks.try_all(connection, [(_name(*slot), isinstance(slot[1], bytes)) for slot in slots])
    known = _known(connection, [(whose, mark) for whose, mark in slots if isinstance(mark, str)])
    return [is_held and slot not in known for is_held, slot in zip(held, slots, strict=True)]


def _known(connection: Connection, keys: Sequence[tuple[str, str]]) -> set[tuple[Any, ...]]:
    """Return the used Idempotency-Keys with their accounts. There may be others among them."""
    if not keys:
        return set()
    statement, *accounts = sql.among(KNOWN, sorted({whose for whose, _ in keys}))
    statement, *marks = sql.among(f"{statement} AND idempotency_key IN", [mark for _, mark in keys])
    return set(sql.run(connection, statement, *accounts, *marks))


def forget_key(connection: Connection, account_id: str, idempotency_key: str) -> None:
    """Free an Idempotency-Key whose jobs are gone."""
    sql.run(connection, FORGET, account_id, idempotency_key)


def addition(accepted: Sequence[AcceptedRequest]) -> Statement:
    """Return the statement that records accepted requests, to be run with those that write their jobs."""
    return sql.insertion(requests, [_row(request) for request in accepted])


def _row(request: AcceptedRequest) -> dict[str, Any]:
    values = {name: getattr(request, name) for name in _FIELDS}
    return values | {"job_ids": " ".join(request.job_ids)}


def by_idempotency_key(connection: Connection, account_id: str, key: str) -> AcceptedRequest | None:
    """Return the request that was accepted under this Idempotency-Key."""
    return _first(sql.run(connection, BY_KEY, account_id, key))


def by_body(connection: Connection, key_id: str, fingerprint: bytes, since: float) -> AcceptedRequest | None:
    """Return the newest request with this body and API key that was accepted since then."""
    return _first(sql.run(connection, BY_BODY, key_id, fingerprint, since))


def remove(connection: Connection, ids: Sequence[str]) -> None:
    """Remove requests, together with their jobs."""
    connection.execute(delete(requests).where(requests.c.id.in_(ids)))

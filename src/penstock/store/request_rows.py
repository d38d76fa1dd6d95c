"""Accepted requests: what makes a retried request find the jobs it already made."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, and_, delete, select

from penstock.store import locks, words
from penstock.store.tables import requests
from penstock.store.words import Deed

RETRY_SHIELD_SECONDS = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedRequest:
    """A request and the jobs it made. `id` is the batch's id, or the only job's."""

    id: str
    account_id: str
    key_id: str
    idempotency_key: str | None
    fingerprint: bytes
    job_ids: tuple[str, ...]
    created_at: float


def _first(connection: Connection, query: Select[Any]) -> AcceptedRequest | None:
    row: Any = connection.execute(query).first()
    if row is None:
        return None
    fields: dict[str, Any] = row._asdict()
    fields["job_ids"] = tuple(fields["job_ids"].split())
    return AcceptedRequest(**fields)


def wait_for_same(connection: Connection, whose: str, mark: str | bytes, *, is_retry: bool) -> None:
    """A request waits for the one that it repeats, at whichever gateway that is being accepted.

    What marks it is its Idempotency-Key, or its body: of equal bodies only a retry waits.
    """
    if isinstance(mark, str):
        locks.hold(connection, "request", whose, mark, join=True)
    else:
        locks.hold(connection, "body", whose, mark.hex(), shared=not is_retry, join=True)


def add(connection: Connection, request: AcceptedRequest) -> Deed:
    """What remembers an accepted request, to be done with what writes its jobs; a key whose jobs are gone is free."""
    if request.idempotency_key is not None:
        same = and_(requests.c.account_id == request.account_id, requests.c.idempotency_key == request.idempotency_key)
        connection.execute(delete(requests).where(same))
    values = {name: getattr(request, name) for name in AcceptedRequest.__slots__}
    return words.insertion(requests, [values | {"job_ids": " ".join(request.job_ids)}])


def by_idempotency_key(connection: Connection, account_id: str, key: str) -> AcceptedRequest | None:
    """The request that was accepted under this Idempotency-Key."""
    query = select(requests).where(requests.c.account_id == account_id, requests.c.idempotency_key == key)
    return _first(connection, query)


def by_body(connection: Connection, key_id: str, fingerprint: bytes, now: float) -> AcceptedRequest | None:
    """The newest request with this body that the same API key made in the last ten minutes."""
    query = select(requests).where(
        requests.c.key_id == key_id,
        requests.c.fingerprint == fingerprint,
        requests.c.created_at >= now - RETRY_SHIELD_SECONDS,
    )
    return _first(connection, query.order_by(requests.c.created_at.desc()))


def remove(connection: Connection, ids: Sequence[str]) -> None:
    """An idempotency record lives as long as its job."""
    connection.execute(delete(requests).where(requests.c.id.in_(ids)))

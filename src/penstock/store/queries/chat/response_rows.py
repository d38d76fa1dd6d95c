"""Kept responses: added within the account's quota, found, continued, ended and removed."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from sqlalchemy import Connection, Integer, and_, delete, func, insert, literal, select, update

from penstock.domain.kept.responses import (
    LEASE_SECONDS,
    MAX_CHAIN_RESPONSES,
    MAX_RESPONSES,
    MAX_RUNNING,
    KeptResponse,
    ResponseStatus,
)
from penstock.errors import ConcurrencyLimited, ResponseNotFound
from penstock.store import clock
from penstock.store.database import RUNG
from penstock.store.locks import hold
from penstock.store.signals import background
from penstock.store.tables import response_items, responses

EXTENSION: float = 0.1
"""The part of the retention by which a continued response outlives the one that continues it.

Without it, each turn of a conversation would rewrite all turns before.
"""
MAX_SKEW_SECONDS: float = 600.0
"""A lease that ends later than this and its length from now was written by a wrong clock. It counts as over."""
LOST = {"code": "server_error", "message": "The server that ran this response ended before it was complete."}
_RECORD = tuple(column for column in responses.c if column.name not in ("owner", "lease_until", "bytes"))


class Link(NamedTuple):
    """A response of a conversation, without its items."""

    id: str
    previous_id: str | None
    status: ResponseStatus
    bytes: int


class Turn(NamedTuple):
    """The items of a response of a conversation."""

    input: bytes
    body: bytes


class RunLease(NamedTuple):
    """The process that runs a background response, and when it was last alive."""

    owner: str
    now: float

    def until(self, connection: Connection) -> float:
        """Return until when it counts as alive."""
        return clock.read(connection, self.now) + LEASE_SECONDS


def _is(account_id: str, response_id: Any) -> Any:
    return and_(responses.c.account_id == account_id, responses.c.id == response_id)


# -- keeping


def add(
    connection: Connection,
    response: KeptResponse,
    output_ids: Sequence[str],
    quota_bytes: int,
    lease: RunLease | None = None,
) -> None:
    """Keep a response. Older ones of the account make room, and those that it continues are kept as long."""
    account_id = response.account_id
    hold(connection, "responses", account_id)
    if lease is not None:
        _check_running(connection, account_id)
    _remove(connection, account_id, [response.id])  # a vendor's id may come again
    _make_room(connection, response, quota_bytes)
    row = {**asdict(response), "is_background": int(response.is_background), "bytes": response.size}
    owned: dict[str, Any] = {"owner": None, "lease_until": None}
    if lease is not None:
        owned = {"owner": lease.owner, "lease_until": lease.until(connection)}
    connection.execute(insert(responses), {**row, "status": response.status.value, **owned})
    _add_items(connection, account_id, response.id, output_ids)
    if response.previous_id is not None:
        _extend(connection, response)


def _check_running(connection: Connection, account_id: str) -> None:
    query = select(func.count()).where(responses.c.account_id == account_id, responses.c.owner.is_not(None))
    if connection.execute(query).scalar_one() >= MAX_RUNNING:
        raise ConcurrencyLimited(
            f"The account has {MAX_RUNNING} background responses under way, as many as it may have at a time.",
            suggestion="Wait until one ends, or cancel one with POST /v1/responses/{response_id}/cancel.",
            retry_after=5,
        )


def _make_room(connection: Connection, response: KeptResponse, quota_bytes: int) -> None:
    """Remove the account's oldest responses until this one fits. Those that run stay."""
    mine = responses.c.account_id == response.account_id
    totals = select(func.count(), func.coalesce(func.sum(responses.c.bytes), 0)).where(mine)
    count, size = connection.execute(totals).one()
    surplus, excess = count + 1 - MAX_RESPONSES, int(size) + response.size - quota_bytes
    if surplus <= 0 and excess <= 0:
        return
    oldest = select(responses.c.id, responses.c.bytes).where(mine, responses.c.owner.is_(None))
    removed: list[str] = []
    for row in connection.execute(oldest.order_by(responses.c.expires_at, responses.c.id)):
        if surplus <= 0 and excess <= 0:
            break
        removed.append(row.id)
        surplus, excess = surplus - 1, excess - row.bytes
    _remove(connection, response.account_id, removed)


def _add_items(connection: Connection, account_id: str, response_id: str, ids: Sequence[str]) -> None:
    if ids:
        known = response_items.c.id.in_(ids)
        connection.execute(delete(response_items).where(response_items.c.account_id == account_id, known))
        rows = [{"account_id": account_id, "id": each, "response_id": response_id} for each in dict.fromkeys(ids)]
        connection.execute(insert(response_items), rows)


def _extend(connection: Connection, response: KeptResponse) -> None:
    """Keep the responses before this one at least as long, with some time to spare."""
    earlier = [link.id for link in chain(connection, response.account_id, response.previous_id, response.created_at)]
    until = response.expires_at + (response.expires_at - response.created_at) * EXTENSION
    mine = and_(responses.c.account_id == response.account_id, responses.c.id.in_(earlier))
    connection.execute(
        update(responses).where(mine, responses.c.expires_at < response.expires_at).values(expires_at=until)
    )


# -- reading


def find(connection: Connection, account_id: str, response_id: str, now: float) -> KeptResponse | None:
    """Return a response of the account, or None if it is not kept."""
    query = select(*_RECORD).where(_is(account_id, response_id), responses.c.expires_at > now)
    row = connection.execute(query).one_or_none()
    return None if row is None else _response(row)


def chain(connection: Connection, account_id: str, response_id: str | None, now: float) -> list[Link]:
    """Return a response and those before it, the newest first. One more than allowed means that there are too many."""
    columns = (responses.c.id, responses.c.previous_id, responses.c.status, responses.c.bytes)
    is_kept = and_(responses.c.account_id == account_id, responses.c.expires_at > now)
    newest = select(*columns, literal(0, Integer).label("depth")).where(is_kept, responses.c.id == response_id)
    links = newest.cte("links", recursive=True)
    earlier = select(*columns, links.c.depth + 1).where(
        is_kept, responses.c.id == links.c.previous_id, links.c.depth < MAX_CHAIN_RESPONSES
    )
    links = links.union_all(earlier)
    rows = connection.execute(select(links).order_by(links.c.depth))
    return [Link(row.id, row.previous_id, ResponseStatus(row.status), row.bytes) for row in rows]


def turns(connection: Connection, account_id: str, ids: Sequence[str]) -> list[Turn]:
    """Return the items of these responses, in this order."""
    mine = and_(responses.c.account_id == account_id, responses.c.id.in_(ids))
    query = select(responses.c.id, responses.c.input, responses.c.body).where(mine)
    found = {row.id: row for row in connection.execute(query)}
    return [Turn(found[each].input, found[each].body) for each in ids if each in found]


def bodies_with(connection: Connection, account_id: str, item_ids: Collection[str], now: float) -> list[bytes]:
    """Return the response objects that have these output items."""
    query = select(responses.c.body).join(
        response_items,
        and_(response_items.c.account_id == responses.c.account_id, response_items.c.response_id == responses.c.id),
    )
    wanted = and_(response_items.c.account_id == account_id, response_items.c.id.in_(item_ids))
    return list(connection.execute(query.where(wanted, responses.c.expires_at > now).distinct()).scalars())


# -- background responses


def start(connection: Connection, account_id: str, response_id: str, owner: str) -> bool:
    """Record that a queued response runs now. Return False if it was canceled or deleted meanwhile."""
    row = connection.execute(
        select(*_RECORD).where(_is(account_id, response_id), responses.c.owner == owner).with_for_update()
    ).one_or_none()
    if row is None:
        return False
    _write_end(connection, _response(row).end(ResponseStatus.IN_PROGRESS), has_ended=False)
    return True


def finish(connection: Connection, response: KeptResponse, output_ids: Sequence[str], owner: str) -> bool:
    """Record the end of a background response. Return False if it was canceled, deleted or given up meanwhile."""
    mine = and_(_is(response.account_id, response.id), responses.c.owner == owner)
    if connection.execute(select(responses.c.id).where(mine).with_for_update()).first() is None:
        return False
    _write_end(connection, response)
    _add_items(connection, response.account_id, response.id, output_ids)
    return True


def cancel(connection: Connection, account_id: str, response_id: str, now: float) -> KeptResponse:
    """Cancel a background response, unless it has ended. Return it as it is then."""
    query = select(*_RECORD, responses.c.owner).where(_is(account_id, response_id), responses.c.expires_at > now)
    row = connection.execute(query.with_for_update()).one_or_none()
    if row is None:
        raise ResponseNotFound
    found = _response(row)
    if row.owner is None:
        return found
    ended = found.end(ResponseStatus.CANCELLED)
    _write_end(connection, ended)
    connection.info[RUNG].add(background(row.owner))
    return ended


def renew(connection: Connection, lease: RunLease, ids: Collection[str]) -> set[tuple[str, str]]:
    """Renew the lease of a process on these responses. Return the accounts and ids of those that are still its own."""
    mine = and_(responses.c.owner == lease.owner, responses.c.id.in_(ids))
    connection.execute(update(responses).where(mine).values(lease_until=lease.until(connection)))
    found = connection.execute(select(responses.c.account_id, responses.c.id).where(mine))
    return {(row.account_id, row.id) for row in found}


def end_lost(connection: Connection, now: float, limit: int) -> int:
    """End background responses as failed whose process has died. Return their number."""
    latest = max(now, clock.read(connection, now)) + LEASE_SECONDS + MAX_SKEW_SECONDS
    is_over = clock.has_passed(connection, responses.c.lease_until, now) | (responses.c.lease_until > latest)
    query = select(*_RECORD).where(responses.c.owner.is_not(None), is_over).limit(limit)
    return _end_as_failed(connection, connection.execute(query.with_for_update(skip_locked=True)).all())


def end_owned(connection: Connection, owner: str) -> int:
    """End the background responses of a process that stops as failed. Return their number."""
    query = select(*_RECORD).where(responses.c.owner == owner)
    return _end_as_failed(connection, connection.execute(query.with_for_update()).all())


def _end_as_failed(connection: Connection, rows: Iterable[Any]) -> int:
    ended = [_response(row).end(ResponseStatus.FAILED, LOST) for row in rows]
    for response in ended:
        _write_end(connection, response)
    return len(ended)


def _write_end(connection: Connection, response: KeptResponse, *, has_ended: bool = True) -> None:
    values: dict[str, Any] = {"status": response.status.value, "body": response.body, "bytes": response.size}
    if has_ended:
        values |= {"owner": None, "lease_until": None}
    connection.execute(update(responses).where(_is(response.account_id, response.id)).values(values))


# -- removing


def remove(connection: Connection, account_id: str, response_id: str, now: float) -> None:
    """Remove a response at once. The process that runs it notices."""
    query = select(responses.c.owner).where(_is(account_id, response_id), responses.c.expires_at > now)
    row = connection.execute(query.with_for_update()).one_or_none()
    if row is None:
        raise ResponseNotFound
    _remove(connection, account_id, [response_id])
    if row.owner is not None:
        connection.info[RUNG].add(background(row.owner))


def remove_expired(connection: Connection, now: float, limit: int) -> int:
    """Remove responses past their retention, at most `limit` of them. Return their number."""
    old = select(responses.c.account_id, responses.c.id).where(responses.c.expires_at <= now)
    rows = connection.execute(old.order_by(responses.c.expires_at).limit(limit)).all()
    by_account: dict[str, list[str]] = {}
    for row in rows:
        by_account.setdefault(row.account_id, []).append(row.id)
    for account_id, ids in by_account.items():
        _remove(connection, account_id, ids)
    return len(rows)


def _remove(connection: Connection, account_id: str, ids: Sequence[str]) -> None:
    if ids:
        theirs = and_(response_items.c.account_id == account_id, response_items.c.response_id.in_(ids))
        connection.execute(delete(response_items).where(theirs))
        connection.execute(delete(responses).where(responses.c.account_id == account_id, responses.c.id.in_(ids)))


def _response(row: Any) -> KeptResponse:
    return KeptResponse(
        account_id=row.account_id,
        id=row.id,
        created_at=row.created_at,
        expires_at=row.expires_at,
        status=ResponseStatus(row.status),
        model=row.model,
        previous_id=row.previous_id,
        is_background=bool(row.is_background),
        input=row.input,
        body=row.body,
    )

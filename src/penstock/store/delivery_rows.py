"""Deliveries in the store: taken on for a while, told how they went, listed, sent again and forgotten."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Select, and_, delete, exists, func, select, update

from penstock.endpoints import (
    MAX_ATTEMPTS_KEPT,
    PATIENCE_SECONDS,
    PING,
    Attempt,
    Delivery,
    DeliveryNotFound,
    Parcel,
    Reason,
    Status,
    WebhookDisabled,
    next_pause,
)
from penstock.identifiers import new_id
from penstock.store import event_rows, moments, webhook_rows
from penstock.store.bell import DELIVERIES
from penstock.store.database import RUNG
from penstock.store.tables import events
from penstock.store.webhook_tables import deliveries, webhooks

BATCH = 64
LEASE_SECONDS = 30.0
"""Twice as long as an attempt may take: then whoever took it on has died."""
GONE = 410
decode_attempts = msgspec.json.Decoder(tuple[Attempt, ...]).decode

_earlier = deliveries.alias("earlier")
_PENDING = deliveries.c.status == Status.PENDING.value
_IS_LATER = exists().where(
    _earlier.c.subject == deliveries.c.subject,
    _earlier.c.webhook_id == deliveries.c.webhook_id,
    _earlier.c.sequence < deliveries.c.sequence,
    _earlier.c.status == Status.PENDING.value,
    _earlier.c.tries == 0,
)
"""Whether an earlier event of the same job has yet to be tried: one that failed holds up nothing."""
_WHOLE = (
    select(
        deliveries,
        func.coalesce(deliveries.c.url, webhooks.c.url, "").label("address"),
        events.c.position.label("event_position"),
    )
    .outerjoin(webhooks, webhooks.c.id == deliveries.c.webhook_id)
    .outerjoin(events, and_(events.c.job_id == deliveries.c.subject, events.c.sequence == deliveries.c.sequence))
)
_NEXT = select(func.min(deliveries.c.due_at)).where(_PENDING)


@dataclass(slots=True)
class Busy:
    """How much is under way, and what is the most: of all, of one account, and to one host."""

    room: int
    of_account: int
    of_host: int
    accounts: Counter[str] = field(default_factory=Counter[str])
    hosts: Counter[str] = field(default_factory=Counter[str])

    def copy(self) -> "Busy":
        """For whoever counts on and may have to begin anew."""
        return Busy(self.room, self.of_account, self.of_host, Counter(self.accounts), Counter(self.hosts))

    def take(self, account_id: str, host: str, number: int = 1) -> bool:
        """Count one more if there is a place for it; `number` -1 gives it back."""
        full = self.accounts[account_id] >= self.of_account or self.hosts[host] >= self.of_host or self.room < 1
        if number > 0 and full:
            return False
        self.room -= number
        self.accounts[account_id] += number
        self.hosts[host] += number
        for counts, name in ((self.accounts, account_id), (self.hosts, host)):
            if not counts[name]:
                del counts[name]
        return True

    @property
    def full(self) -> tuple[list[str], list[str]]:
        """Accounts and hosts that get no more."""
        return (
            [name for name, count in self.accounts.items() if count >= self.of_account],
            [name for name, count in self.hosts.items() if count >= self.of_host],
        )


# -- sending


def next_due(connection: Connection, now: float) -> tuple[float | None, float]:
    """When the next one is to be sent, None if none is; and what time it is by the store's clock."""
    due_at, store_now = connection.execute(_NEXT.add_columns(moments.current(connection, now))).one()
    return due_at, store_now


def claim(connection: Connection, now: float, busy: Busy) -> list[Parcel]:
    """Take on what is due, as much as there is room for; whoever dies with it loses it after a while."""
    chosen = _choose(connection, now, busy.copy())
    if not chosen:
        return []
    lease = new_id("lease")
    values = {"lease": lease, "due_at": now + LEASE_SECONDS}
    connection.execute(update(deliveries).where(deliveries.c.position.in_(chosen)).values(values))
    rows = connection.execute(_WHOLE.where(deliveries.c.position.in_(chosen))).mappings().all()
    wanted = {row["webhook_id"]: row["account_id"] for row in rows}
    found = webhook_rows.several(connection, wanted, now)
    parcels: list[Parcel] = []
    for row in rows:
        delivery = _delivery(row)
        endpoint = found.get(delivery.webhook_id)
        event = event_rows.get(connection, delivery.subject, delivery.sequence) if delivery.type != PING else None
        if endpoint is None or (event is None and delivery.type != PING):
            connection.execute(delete(deliveries).where(deliveries.c.position == delivery.position))
        elif endpoint.disabled_at is not None and delivery.type != PING:
            _finish(connection, delivery.position, Status.FAILED, now)
        else:
            parcels.append(Parcel(delivery, endpoint, event, chosen[delivery.position]))
    return parcels


def _choose(connection: Connection, now: float, busy: Busy) -> dict[int, float]:
    """Positions, and when each was due. One account's or host's backlog is passed over once it has its share."""
    chosen: dict[int, float] = {}
    while busy.room > 0:
        accounts, hosts = busy.full
        query = (
            select(deliveries.c.position, deliveries.c.account_id, deliveries.c.host, deliveries.c.due_at)
            .where(_PENDING, deliveries.c.due_at <= now, ~_IS_LATER, deliveries.c.position.not_in(chosen))
            .where(deliveries.c.account_id.not_in(accounts), deliveries.c.host.not_in(hosts))
            .order_by(deliveries.c.due_at, deliveries.c.position)
            .limit(BATCH)
            .with_for_update(skip_locked=True, of=deliveries)
        )
        rows = connection.execute(query).all()
        chosen |= {row.position: row.due_at for row in rows if busy.take(row.account_id, row.host)}
        if len(rows) < BATCH:
            break
    return chosen


def record(
    connection: Connection, parcel: Parcel, attempt: Attempt, retry_after: float | None, now: float
) -> Status | None:
    """How an attempt went, and what follows from it; None if someone else has taken it on since."""
    mine = and_(deliveries.c.position == parcel.delivery.position, deliveries.c.lease == parcel.delivery.lease)
    row = connection.execute(
        select(deliveries.c.tries, deliveries.c.attempts).where(mine).with_for_update()
    ).one_or_none()
    if row is None:
        return None
    attempts = (*decode_attempts(row.attempts), attempt)[-MAX_ATTEMPTS_KEPT:]
    tries = row.tries + 1
    status, pause = _judge(parcel, attempt, tries, retry_after)
    values = {
        "status": status.value,
        "tries": tries,
        "due_at": None if pause is None else now + pause,
        "lease": None,
        "finished_at": now if pause is None else None,
        "attempts": msgspec.json.encode(attempts),
    }
    connection.execute(update(deliveries).where(mine).values(values))
    connection.info[RUNG].add(parcel.delivery.subject)
    _look_after(connection, parcel, attempt, status, now)
    return status


def _judge(parcel: Parcel, attempt: Attempt, tries: int, retry_after: float | None) -> tuple[Status, float | None]:
    if attempt.succeeded:
        return Status.DELIVERED, None
    is_final = attempt.status_code == GONE or parcel.delivery.type == PING
    pause = None if is_final else next_pause(tries, retry_after)
    return (Status.FAILED if pause is None else Status.PENDING), pause


def _look_after(connection: Connection, parcel: Parcel, attempt: Attempt, status: Status, now: float) -> None:
    """What an attempt tells of the webhook itself; jobs' own webhooks are no one's to disable."""
    endpoint = parcel.endpoint
    if endpoint.url is None:
        return
    since = webhook_rows.note(connection, endpoint.id, now, succeeded=attempt.succeeded)
    if attempt.status_code == GONE:
        webhook_rows.disable(connection, endpoint, Reason.GONE, now)
    elif status is Status.FAILED and since is not None and now - since >= PATIENCE_SECONDS:
        webhook_rows.disable(connection, endpoint, Reason.FAILING, now)


def release(connection: Connection, leases: Sequence[tuple[int, str | None]], now: float) -> None:
    """Give back what was not sent to its end: someone else takes it on at once."""
    for position, lease in leases:
        mine = and_(deliveries.c.position == position, deliveries.c.lease == lease)
        connection.execute(update(deliveries).where(mine).values(lease=None, due_at=now))
    connection.info[RUNG].add(DELIVERIES)


def release_all(connection: Connection, now: float) -> None:
    """Give back what others took on, who are no more."""
    mine = and_(_PENDING, deliveries.c.lease.is_not(None))
    connection.execute(update(deliveries).where(mine).values(lease=None, due_at=now))


def _finish(connection: Connection, position: int, status: Status, now: float) -> None:
    values = {"status": status.value, "due_at": None, "lease": None, "finished_at": now}
    connection.execute(update(deliveries).where(deliveries.c.position == position).values(values))


# -- looking


def get(connection: Connection, account_id: str, position: int) -> Delivery:
    """An account's delivery; another account's is not found."""
    query = _WHOLE.where(deliveries.c.position == position, deliveries.c.account_id == account_id)
    row = connection.execute(query).mappings().one_or_none()
    if row is None:
        raise DeliveryNotFound(suggestion="List yours with GET /api/v1/webhooks/deliveries.")
    return _delivery(row)


def page(
    connection: Connection, account_id: str, filters: Mapping[str, Any], before: int | None, limit: int
) -> list[Delivery]:
    """An account's deliveries, newest first, filtered by columns."""
    query = _WHOLE.where(deliveries.c.account_id == account_id, *_matching(filters))
    if before is not None:
        query = query.where(deliveries.c.position < before)
    return _read(connection, query.order_by(deliveries.c.position.desc()).limit(limit))


def _matching(filters: Mapping[str, Any]) -> list[ColumnElement[bool]]:
    return [deliveries.c[name] == value for name, value in filters.items() if value is not None]


def _read(connection: Connection, query: Select[Any]) -> list[Delivery]:
    return [_delivery(row) for row in connection.execute(query).mappings()]


def ping(connection: Connection, account_id: str, webhook_id: str, name: str, now: float) -> int:
    """Have a webhook told that it is tried; where the delivery stands."""
    return webhook_rows.add_ping(connection, webhook_rows.get(connection, account_id, webhook_id), name, now)


def redeliver(connection: Connection, account_id: str, position: int, now: float) -> Delivery:
    """Send it again now, and again as often as if it were new; one that is being sent is left to that."""
    mine = and_(deliveries.c.position == position, deliveries.c.account_id == account_id)
    told = select(webhooks.c.disabled_at).join(deliveries, deliveries.c.webhook_id == webhooks.c.id).where(mine)
    if connection.execute(told).scalar() is not None:
        raise WebhookDisabled(suggestion='Enable it first: PATCH /api/v1/webhooks/{id} with {"disabled": false}.')
    idle = deliveries.c.lease.is_(None) | moments.has_passed(connection, deliveries.c.due_at, now)
    due_at = moments.not_after(connection, now)
    values = {"status": Status.PENDING.value, "tries": 0, "due_at": due_at, "lease": None, "finished_at": None}
    connection.execute(update(deliveries).where(mine, idle).values(values))
    connection.info[RUNG].add(DELIVERIES)
    return get(connection, account_id, position)


def remove_old(connection: Connection, before: float, limit: int = 1000) -> int:
    """Forget what ended long ago; how much it was."""
    old = select(deliveries.c.position).where(deliveries.c.finished_at < before).limit(limit)
    return connection.execute(delete(deliveries).where(deliveries.c.position.in_(old))).rowcount


def _delivery(row: Mapping[Any, Any]) -> Delivery:
    fields = dict(row)
    del fields["host"]
    fields["url"] = fields.pop("address")
    fields["status"] = Status(fields["status"])
    fields["attempts"] = decode_attempts(fields["attempts"])
    return Delivery(**fields)

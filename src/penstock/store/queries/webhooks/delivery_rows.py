"""Webhook deliveries: claimed for a while, recorded, listed, sent again and removed."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    Integer,
    Select,
    and_,
    bindparam,
    delete,
    exists,
    func,
    literal_column,
    select,
    update,
)

from penstock.domain.ids import new_id
from penstock.domain.webhooks import (
    MAX_ATTEMPTS_KEPT,
    PATIENCE_SECONDS,
    PING,
    Delivery,
    DeliveryAttempt,
    DisabledReason,
    PendingDelivery,
    Status,
    next_pause,
)
from penstock.errors import DeliveryNotFound, WebhookDisabled
from penstock.fairness.webhook_slots import Candidate, Plan
from penstock.store import clock
from penstock.store.database import RUNG
from penstock.store.queries.jobs import event_rows
from penstock.store.queries.webhooks import webhook_rows
from penstock.store.signals import DELIVERIES
from penstock.store.tables import deliveries, events, webhooks

FEW = 256
"""Up to this number, due deliveries are read one by one. Above it, only the next ones of each endpoint are."""
MANY = 1000
"""The number of rows in one query."""
LEASE_SECONDS = 30.0
"""Twice as long as an attempt may take: after that, the process that claimed it has died."""
GONE = 410
decode_attempts = msgspec.json.Decoder(tuple[DeliveryAttempt, ...]).decode

_heads = deliveries.alias("heads")
_others = deliveries.alias("others")


def _is_pending(table: Any) -> ColumnElement[bool]:
    """Return the condition in the form of the partial indexes, which SQLite does not recognize with a parameter."""
    return table.c.status == literal_column(f"'{Status.PENDING.value}'")


def _is_later(table: Any) -> ColumnElement[bool]:
    """Return a condition: an earlier event of the job has yet to be tried. A failed one delays nothing."""
    earlier = deliveries.alias("earlier")
    return exists().where(
        earlier.c.subject == table.c.subject,
        earlier.c.webhook_id == table.c.webhook_id,
        earlier.c.sequence < table.c.sequence,
        _is_pending(earlier),
        earlier.c.tries == literal_column("0"),
    )


_PENDING = _is_pending(deliveries)
_NOW = bindparam("now", type_=Float)
_DUE = and_(_PENDING, deliveries.c.due_at <= _NOW)
_CANDIDATE = select(deliveries.c.position, deliveries.c.account_id, deliveries.c.lane, deliveries.c.due_at)
_FEW_DUE = (
    _CANDIDATE.add_columns(_is_later(deliveries).label("is_later"))
    .where(_DUE)
    .order_by(deliveries.c.due_at)
    .limit(FEW + 1)
)


def _first_of_each_lane() -> Select[Any]:
    """Step from lane to lane through their index: the rows of a backlog are not visited."""
    first = select(func.min(_others.c.lane).label("lane")).where(_is_pending(_others)).cte("lanes", recursive=True)
    following = select(func.min(_others.c.lane)).where(_is_pending(_others), _others.c.lane > first.c.lane)
    lanes = first.union_all(select(following.scalar_subquery()).where(first.c.lane.is_not(None)))
    head = _next_of(lanes.c.lane, bindparam("one", value=1, type_=Integer)).correlate(lanes).scalar_subquery()
    named = lanes.c.lane.is_not(None) & lanes.c.lane.not_in(bindparam("full", expanding=True))
    return select(head).select_from(lanes).where(named)


def _next_of(lane: Any, number: Any) -> Select[Any]:
    """Return a query for the next due deliveries of a lane."""
    return (
        select(_heads.c.position)
        .where(_heads.c.lane == lane, _is_pending(_heads), _heads.c.due_at <= _NOW, ~_is_later(_heads))
        .order_by(_heads.c.due_at, _heads.c.position)
        .limit(number)
    )


_HEADS = _first_of_each_lane()
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


# -- sending


def next_due(connection: Connection, now: float) -> tuple[float | None, float]:
    """Return when the next delivery is due, or None, and the current time of the store's clock."""
    due_at, store_now = connection.execute(_NEXT.add_columns(clock.current(connection, now))).one()
    return due_at, store_now


def claim(connection: Connection, now: float, plan: Plan) -> list[PendingDelivery]:
    """Claim due deliveries, as far as there is room. The claim of a dead process ends with its lease."""
    chosen = {each.position: each.due_at for each in _choose(connection, now, plan)}
    if not chosen:
        return []
    turns = {position: turn for turn, position in enumerate(chosen)}
    lease = new_id("lease")
    values = {"lease": lease, "due_at": now + LEASE_SECONDS}
    connection.execute(update(deliveries).where(deliveries.c.position.in_(chosen)).values(values))
    rows = connection.execute(_WHOLE.where(deliveries.c.position.in_(chosen))).mappings().all()
    rows = sorted(rows, key=lambda row: turns[row["position"]])
    wanted = {row["webhook_id"]: row["account_id"] for row in rows}
    found = webhook_rows.several(connection, wanted, now)
    claimed: list[PendingDelivery] = []
    for row in rows:
        delivery = _delivery(row)
        endpoint = found.get(delivery.webhook_id)
        event = event_rows.get(connection, delivery.subject, delivery.sequence) if delivery.type != PING else None
        if endpoint is None or (event is None and delivery.type != PING):
            connection.execute(delete(deliveries).where(deliveries.c.position == delivery.position))
        elif endpoint.disabled_at is not None and delivery.type != PING:
            _finish(connection, delivery.position, Status.FAILED, now)
        else:
            claimed.append(PendingDelivery(delivery, endpoint, event, chosen[delivery.position]))
    return claimed


def _choose(connection: Connection, now: float, plan: Plan) -> list[Candidate]:
    """Choose and lock deliveries to claim. Those locked by another process are skipped, and others are tried."""
    due = _few_due(connection, now)
    if due is None:
        due = _due_by_lane(connection, now, plan)
    held: list[Candidate] = []
    while wanted := plan.choose(due, held):
        tried = {each.position for each in wanted}
        query = select(deliveries.c.position).where(deliveries.c.position.in_(tried), _DUE)
        locked = connection.execute(query.with_for_update(skip_locked=True), {"now": now}).scalars().all()
        held += [each for each in wanted if each.position in locked]
        if len(locked) == len(wanted):
            break
        due = [each for each in due if each.position not in tried]
    return held


def _few_due(connection: Connection, now: float) -> list[Candidate] | None:
    """Return all due deliveries, or None if there are too many."""
    rows = connection.execute(_FEW_DUE, {"now": now}).all()
    if len(rows) > FEW:
        return None
    return [Candidate(*row[:4]) for row in rows if not row.is_later]


def _due_by_lane(connection: Connection, now: float, plan: Plan) -> list[Candidate]:
    """Return the next delivery of each endpoint that has room, and more of those that may have more at once."""
    heads = connection.execute(_HEADS, {"now": now, "full": plan.full_lanes()}).scalars()
    positions = [each for each in heads if each is not None]
    due: list[Candidate] = []
    for start in range(0, len(positions), MANY):
        query = _CANDIDATE.where(deliveries.c.position.in_(positions[start : start + MANY]))
        due += [Candidate(*row) for row in connection.execute(query)]
    for head in plan.choose(due):
        if (room := plan.room_of(head.lane)) > 1:
            more = _next_of(bindparam("lane"), bindparam("room", type_=Integer))
            positions = connection.execute(more, {"lane": head.lane, "room": room, "now": now}).scalars()
            due += [
                Candidate(each, head.account_id, head.lane, head.due_at) for each in positions if each != head.position
            ]
    return due


def record(
    connection: Connection, pending: PendingDelivery, attempt: DeliveryAttempt, retry_after: float | None, now: float
) -> Status | None:
    """Record an attempt and return the new status. Return None if another process has claimed the delivery since."""
    mine = and_(deliveries.c.position == pending.delivery.position, deliveries.c.lease == pending.delivery.lease)
    row = connection.execute(
        select(deliveries.c.tries, deliveries.c.attempts).where(mine).with_for_update()
    ).one_or_none()
    if row is None:
        return None
    attempts = (*decode_attempts(row.attempts), attempt)[-MAX_ATTEMPTS_KEPT:]
    tries = row.tries + 1
    status, pause = _judge(pending, attempt, tries, retry_after)
    values = {
        "status": status.value,
        "tries": tries,
        "due_at": None if pause is None else now + pause,
        "lease": None,
        "finished_at": now if pause is None else None,
        "attempts": msgspec.json.encode(attempts),
    }
    connection.execute(update(deliveries).where(mine).values(values))
    connection.info[RUNG].add(pending.delivery.subject)
    _look_after(connection, pending, attempt, status, now)
    return status


def _judge(
    pending: PendingDelivery, attempt: DeliveryAttempt, tries: int, retry_after: float | None
) -> tuple[Status, float | None]:
    if attempt.succeeded:
        return Status.DELIVERED, None
    is_final = attempt.status_code == GONE or pending.delivery.type == PING
    pause = None if is_final else next_pause(tries, retry_after)
    return (Status.FAILED if pause is None else Status.PENDING), pause


def _look_after(
    connection: Connection, pending: PendingDelivery, attempt: DeliveryAttempt, status: Status, now: float
) -> None:
    """Update the webhook's own state after an attempt. The webhooks that jobs bring along are never disabled."""
    endpoint = pending.endpoint
    if endpoint.url is None:
        return
    since = webhook_rows.note(connection, endpoint.id, now, succeeded=attempt.succeeded)
    if attempt.status_code == GONE:
        webhook_rows.disable(connection, endpoint, DisabledReason.GONE, now)
    elif status is Status.FAILED and since is not None and now - since >= PATIENCE_SECONDS:
        webhook_rows.disable(connection, endpoint, DisabledReason.FAILING, now)


def release(connection: Connection, leases: Sequence[tuple[int, str | None]], now: float) -> None:
    """Release claimed deliveries that were not sent: another process sends them at once."""
    for position, lease in leases:
        mine = and_(deliveries.c.position == position, deliveries.c.lease == lease)
        connection.execute(update(deliveries).where(mine).values(lease=None, due_at=now))
    connection.info[RUNG].add(DELIVERIES)


def release_all(connection: Connection, now: float) -> None:
    """Release the deliveries claimed by processes that are gone."""
    mine = and_(_PENDING, deliveries.c.lease.is_not(None))
    connection.execute(update(deliveries).where(mine).values(lease=None, due_at=now))


def _finish(connection: Connection, position: int, status: Status, now: float) -> None:
    values = {"status": status.value, "due_at": None, "lease": None, "finished_at": now}
    connection.execute(update(deliveries).where(deliveries.c.position == position).values(values))


# -- looking


def get(connection: Connection, account_id: str, position: int) -> Delivery:
    """Return an account's delivery. Another account's is not found."""
    query = _WHOLE.where(deliveries.c.position == position, deliveries.c.account_id == account_id)
    row = connection.execute(query).mappings().one_or_none()
    if row is None:
        raise DeliveryNotFound
    return _delivery(row)


def whole(connection: Connection, account_id: str, position: int, now: float) -> PendingDelivery:
    """Return an account's delivery with all that sending it needs. It is not found once its event is deleted."""
    delivery = get(connection, account_id, position)
    endpoint = webhook_rows.several(connection, {delivery.webhook_id: account_id}, now).get(delivery.webhook_id)
    event = event_rows.get(connection, delivery.subject, delivery.sequence) if delivery.type != PING else None
    if endpoint is None or (event is None and delivery.type != PING):
        raise DeliveryNotFound("The event of this delivery is deleted.")
    return PendingDelivery(delivery, endpoint, event, now)


def page(
    connection: Connection, account_id: str, filters: Mapping[str, Any], before: int | None, limit: int
) -> list[Delivery]:
    """Return an account's deliveries, newest first, filtered by columns."""
    query = _WHOLE.where(deliveries.c.account_id == account_id, *_matching(filters))
    if before is not None:
        query = query.where(deliveries.c.position < before)
    return _read(connection, query.order_by(deliveries.c.position.desc()).limit(limit))


def _matching(filters: Mapping[str, Any]) -> list[ColumnElement[bool]]:
    return [deliveries.c[name] == value for name, value in filters.items() if value is not None]


def _read(connection: Connection, query: Select[Any]) -> list[Delivery]:
    return [_delivery(row) for row in connection.execute(query).mappings()]


def ping(connection: Connection, account_id: str, webhook_id: str, name: str, now: float) -> int:
    """Queue a ping of a webhook. Return the position of its delivery."""
    return webhook_rows.add_ping(connection, webhook_rows.get(connection, account_id, webhook_id), name, now)


def redeliver(connection: Connection, account_id: str, position: int, now: float) -> Delivery:
    """Send a delivery again now, with all its retries. One that is being sent is left alone."""
    mine = and_(deliveries.c.position == position, deliveries.c.account_id == account_id)
    disabled_at = select(webhooks.c.disabled_at).join(deliveries, deliveries.c.webhook_id == webhooks.c.id).where(mine)
    if connection.execute(disabled_at).scalar() is not None:
        raise WebhookDisabled
    idle = deliveries.c.lease.is_(None) | clock.has_passed(connection, deliveries.c.due_at, now)
    due_at = clock.not_after(connection, now)
    values = {"status": Status.PENDING.value, "tries": 0, "due_at": due_at, "lease": None, "finished_at": None}
    connection.execute(update(deliveries).where(mine, idle).values(values))
    connection.info[RUNG].add(DELIVERIES)
    return get(connection, account_id, position)


def remove_old(connection: Connection, before: float, limit: int = 1000) -> int:
    """Remove deliveries that ended before this time. Return their number."""
    old = select(deliveries.c.position).where(deliveries.c.finished_at < before).limit(limit)
    return connection.execute(delete(deliveries).where(deliveries.c.position.in_(old))).rowcount


def _delivery(row: Mapping[Any, Any]) -> Delivery:
    fields = dict(row)
    fields["url"], fields["lane"] = fields.pop("address"), fields.pop("host")
    fields["status"] = Status(fields["status"])
    fields["attempts"] = decode_attempts(fields["attempts"])
    return Delivery(**fields)

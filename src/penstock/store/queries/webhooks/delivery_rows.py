"""Webhook deliveries: claimed for a while, recorded, listed, sent again and removed."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Select, and_, delete, func, select, update

from penstock.domain.events import Event
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
from penstock.store import clock, sql
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

_PENDING = f"status = '{Status.PENDING.value}'"
"""The condition in the form of the partial indexes, which SQLite does not recognize with a parameter."""


def _is_later(table: str) -> str:
    """Return a condition: an earlier event of the job has yet to be tried. A failed one delays nothing."""
    return (
        f"EXISTS (SELECT 1 FROM deliveries AS earlier WHERE earlier.subject = {table}.subject "  # noqa: S608
        f"AND earlier.webhook_id = {table}.webhook_id AND earlier.sequence < {table}.sequence "
        f"AND earlier.{_PENDING} AND earlier.tries = 0)"
    )


def _next_of(lane: str) -> str:
    """Return a query for the next due deliveries of a lane, with values for the time and their number."""
    return (
        f"SELECT position FROM deliveries AS heads WHERE host = {lane} AND {_PENDING} AND due_at <= ? "  # noqa: S608
        f"AND NOT {_is_later('heads')} ORDER BY due_at, position LIMIT ?"
    )


# The column `host` is the lane: older code wrote the host there.
_FEW_DUE = (
    f"SELECT position, account_id, host, due_at, {_is_later('deliveries')} FROM deliveries "  # noqa: S608
    f"WHERE {_PENDING} AND due_at <= ? ORDER BY due_at LIMIT {FEW + 1}"
)
# Step from lane to lane through their index: the rows of a backlog are not visited.
_HEADS = f"""
    WITH RECURSIVE lanes (lane) AS (
        SELECT MIN(host) FROM deliveries AS others WHERE {_PENDING}
        UNION ALL
        SELECT (SELECT MIN(host) FROM deliveries AS others WHERE {_PENDING} AND host > lanes.lane)
        FROM lanes WHERE lanes.lane IS NOT NULL
    )
    SELECT ({_next_of("lanes.lane")}) FROM lanes WHERE lanes.lane IS NOT NULL
"""  # noqa: S608  constant text
_NOT_FULL = f"{_HEADS} AND lanes.lane NOT IN"
_MORE = _next_of("?")
_CANDIDATES = "SELECT position, account_id, host, due_at FROM deliveries WHERE position IN"
_FREE = f"SELECT position FROM deliveries WHERE {_PENDING} AND due_at <= ? AND position IN"  # noqa: S608
_CLAIM = "UPDATE deliveries SET lease = ?, due_at = ? WHERE position IN"
_NAMES = tuple(column.name for column in deliveries.columns)
_CLAIMED = (
    f"SELECT COALESCE(deliveries.url, webhooks.url, ''), {', '.join(f'deliveries.{name}' for name in _NAMES)}, "  # noqa: S608
    f"{event_rows.COLUMNS} FROM deliveries LEFT JOIN webhooks ON webhooks.id = deliveries.webhook_id "
    "LEFT JOIN events ON events.job_id = deliveries.subject AND events.sequence = deliveries.sequence "
    "WHERE deliveries.position IN"
)
_HELD = "SELECT tries, attempts FROM deliveries WHERE position = ? AND lease = ? FOR UPDATE"
_RECORD = (
    "UPDATE deliveries SET status = ?, tries = ?, due_at = ?, lease = NULL, finished_at = ?, attempts = ? "
    "WHERE position = ? AND lease = ?"
)
_NEXT = f"SELECT MIN(due_at) FROM deliveries WHERE {_PENDING}"  # noqa: S608
_NEXT_BY_CLOCK = f"SELECT MIN(due_at), {clock.NOW_TEXT} FROM deliveries WHERE {_PENDING}"  # noqa: S608
_WHOLE = (
    select(
        deliveries,
        func.coalesce(deliveries.c.url, webhooks.c.url, "").label("address"),
        events.c.position.label("event_position"),
    )
    .outerjoin(webhooks, webhooks.c.id == deliveries.c.webhook_id)
    .outerjoin(events, and_(events.c.job_id == deliveries.c.subject, events.c.sequence == deliveries.c.sequence))
)


# -- sending


def next_due(connection: Connection, now: float) -> tuple[float | None, float]:
    """Return when the next delivery is due, or None, and the current time of the store's clock."""
    if connection.dialect.name == "sqlite":
        return sql.run(connection, _NEXT)[0][0], now
    [(due_at, store_now)] = sql.run(connection, _NEXT_BY_CLOCK)
    return due_at, store_now


def claim(connection: Connection, now: float, plan: Plan) -> list[PendingDelivery]:
    """Claim due deliveries, as far as there is room. The claim of a dead process ends with its lease."""
    chosen = {each.position: each.due_at for each in _choose(connection, now, plan)}
    if not chosen:
        return []
    turns = {position: turn for turn, position in enumerate(chosen)}
    lease = new_id("lease")
    statement, *positions = sql.among(_CLAIM, list(chosen))
    sql.run(connection, statement, lease, now + LEASE_SECONDS, *positions)
    rows = sql.run(connection, *sql.among(_CLAIMED, list(chosen)))
    pairs = [_read_claimed(row) for row in rows]
    pairs.sort(key=lambda pair: turns[pair[0].position])
    wanted = {delivery.webhook_id: delivery.account_id for delivery, _ in pairs}
    found = webhook_rows.several(connection, wanted, now)
    claimed: list[PendingDelivery] = []
    for delivery, event in pairs:
        endpoint = found.get(delivery.webhook_id)
        if endpoint is None or (event is None and delivery.type != PING):
            connection.execute(delete(deliveries).where(deliveries.c.position == delivery.position))
        elif endpoint.disabled_at is not None and delivery.type != PING:
            _finish(connection, delivery.position, Status.FAILED, now)
        else:
            claimed.append(PendingDelivery(delivery, endpoint, event, chosen[delivery.position]))
    return claimed


def _read_claimed(row: Sequence[Any]) -> tuple[Delivery, Event | None]:
    """Return a delivery and its event, if that is still there. A ping has none."""
    delivery = dict(zip(_NAMES, row[1:], strict=False))
    event = row[1 + len(_NAMES) :]
    has_event = event[0] is not None and delivery["type"] != PING
    return _delivery({**delivery, "address": row[0], "event_position": event[0]}), (
        event_rows.read(event) if has_event else None
    )


def _choose(connection: Connection, now: float, plan: Plan) -> list[Candidate]:
    """Choose and lock deliveries to claim. Those locked by another process are skipped, and others are tried."""
    due = _few_due(connection, now)
    if due is None:
        due = _due_by_lane(connection, now, plan)
    held: list[Candidate] = []
    while wanted := plan.choose(due, held):
        tried = {each.position for each in wanted}
        locked = _lock(connection, now, tried)
        held += [each for each in wanted if each.position in locked]
        if len(locked) == len(wanted):
            break
        due = [each for each in due if each.position not in tried]
    return held


def _lock(connection: Connection, now: float, positions: Collection[int]) -> Collection[int]:
    """Lock due deliveries, and return those that no other process has. SQLite has one writer and needs no locks."""
    if connection.dialect.name == "sqlite":
        return positions
    statement, *values = sql.among(_FREE, list(positions))
    return {row[0] for row in sql.run(connection, statement + sql.SKIPPING, now, *values)}


def _few_due(connection: Connection, now: float) -> list[Candidate] | None:
    """Return all due deliveries, or None if there are too many."""
    rows = sql.run(connection, _FEW_DUE, now)
    if len(rows) > FEW:
        return None
    return [Candidate(*row[:4]) for row in rows if not row[4]]


def _due_by_lane(connection: Connection, now: float, plan: Plan) -> list[Candidate]:
    """Return the next delivery of each endpoint that has room, and more of those that may have more at once."""
    full = plan.full_lanes()
    statement, *lanes = sql.among(_NOT_FULL, full) if full else (_HEADS,)
    heads = sql.run(connection, statement, now, 1, *lanes)
    positions = [row[0] for row in heads if row[0] is not None]
    due: list[Candidate] = []
    for start in range(0, len(positions), MANY):
        some = sql.among(_CANDIDATES, positions[start : start + MANY])
        due += [Candidate(*row) for row in sql.run(connection, *some)]
    for head in plan.choose(due):
        if (room := plan.room_of(head.lane)) > 1:
            more = [row[0] for row in sql.run(connection, _MORE, head.lane, now, room)]
            due += [Candidate(each, head.account_id, head.lane, head.due_at) for each in more if each != head.position]
    return due


def record(
    connection: Connection, pending: PendingDelivery, attempt: DeliveryAttempt, retry_after: float | None, now: float
) -> Status | None:
    """Record an attempt and return the new status. Return None if another process has claimed the delivery since."""
    mine = (pending.delivery.position, pending.delivery.lease)
    found = sql.run(connection, _HELD, *mine)
    if not found:
        return None
    attempts = (*decode_attempts(found[0][1]), attempt)[-MAX_ATTEMPTS_KEPT:]
    tries = found[0][0] + 1
    status, pause = _judge(pending, attempt, tries, retry_after)
    ends = (None, now) if pause is None else (now + pause, None)
    sql.run(connection, _RECORD, status.value, tries, *ends, msgspec.json.encode(attempts), *mine)
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
    statement = f"UPDATE deliveries SET lease = NULL, due_at = ? WHERE {_PENDING} AND lease IS NOT NULL"  # noqa: S608
    sql.run(connection, statement, now)


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

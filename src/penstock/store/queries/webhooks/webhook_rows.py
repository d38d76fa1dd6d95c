"""Webhooks and the outbox of their deliveries, which is written with the event itself."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, func, insert, literal_column, select, update

from penstock.domain.accounts import Action, Actor, AuditEntry
from penstock.domain.webhooks import (
    MAX_ENDPOINTS,
    MAX_PINGS,
    PING,
    PING_RETRY_SECONDS,
    PING_SECONDS,
    USUAL,
    DisabledReason,
    Endpoint,
    Status,
    host_of,
    lane_of,
    new_secret,
    own_id,
    ping_lane_of,
)
from penstock.errors import TooManyPings, TooManyWebhooks, WebhookNotFound
from penstock.store import sql
from penstock.store.clock import NOW_TEXT
from penstock.store.database import RUNG
from penstock.store.locks import hold
from penstock.store.queries.accounts import audit_rows
from penstock.store.signals import DELIVERIES
from penstock.store.tables import deliveries, webhooks

NO_ATTEMPTS = b"[]"
"""No attempts yet."""
LANE = "host"
"""The name of the lane's column: older code wrote the host there."""
ENABLED = "SELECT account_id, id, events FROM webhooks WHERE disabled_at IS NULL AND account_id IN"
_NAMES = tuple(column.name for column in webhooks.columns)
SEVERAL = f"SELECT {', '.join(_NAMES)} FROM webhooks WHERE id IN"  # noqa: S608  names of our own
SUCCEEDED = "UPDATE webhooks SET failing_since = NULL WHERE id = ? AND failing_since IS NOT NULL"
FAILED = "UPDATE webhooks SET failing_since = ? WHERE id = ? AND failing_since IS NULL"
FAILING = "SELECT failing_since FROM webhooks WHERE id = ?"

# -- the outbox


class WebhookEvent(NamedTuple):
    """An event that webhooks may receive: its account and subject, and the webhook that a job brought along."""

    account_id: str
    subject: str
    sequence: int
    kind: str
    own: Mapping[str, Any] | None = None


def enqueue(connection: Connection, happened: Sequence[WebhookEvent], now: float) -> None:
    """Queue deliveries of events to the webhooks that subscribed. Without any, this is one index lookup."""
    accounts = list({event.account_id for event in happened})
    enabled = sql.run(connection, *sql.among(ENABLED, accounts))
    rows = [row for event in happened for row in _deliveries(event, enabled, now)]
    if rows:
        _write(connection, rows)
        connection.info[RUNG].add(DELIVERIES)


def _deliveries(happened: WebhookEvent, enabled: Sequence[tuple[Any, ...]], now: float) -> list[dict[str, Any]]:
    account_id, subject, sequence, kind, own = happened
    wanted = [
        (webhook_id, None) for whose, webhook_id, events in enabled if whose == account_id and f" {kind} " in events
    ]
    if own is not None and kind in (own["events"] or USUAL):
        wanted.append((own_id(account_id), own["url"]))
    event = {"account_id": account_id, "subject": subject, "sequence": sequence, "type": kind}
    return [_new(event, *each, now) for each in wanted]


def add_ping(connection: Connection, endpoint: Endpoint, name: str, now: float) -> int:
    """Queue a ping of a webhook and return its position. Raise if the account has too many open pings."""
    _refuse_pings(connection, endpoint.account_id, now)
    event = {"account_id": endpoint.account_id, "subject": name, "sequence": 1, "type": PING}
    values = _new(event, endpoint.id, None, now) | {LANE: ping_lane_of(endpoint.account_id, endpoint.id)}
    connection.info[RUNG].add(DELIVERIES)
    return sql.run(connection, f"{_addition(connection, tuple(values))} RETURNING position", *values.values())[0][0]


def _refuse_pings(connection: Connection, account_id: str, now: float) -> None:
    hold(connection, "pings", account_id)
    first = ping_lane_of(account_id)
    mine = deliveries.c.lane.between(first, f"{first}~") & (deliveries.c.status == literal_column("'pending'"))
    count = select(func.count()).where(mine, deliveries.c.created_at > now - PING_SECONDS)
    if connection.execute(count).scalar_one() >= MAX_PINGS:
        raise TooManyPings(
            f"{MAX_PINGS} pings of this account are under way, as many as may be at once.",
            suggestion="Wait until one of them is answered, at most 15 seconds.",
            retry_after=PING_RETRY_SECONDS,
        )


def _write(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    statement = _addition(connection, tuple(rows[0]))
    if len(rows) == 1:
        sql.run(connection, statement, *rows[0].values())
    else:
        sql.run_many(connection, statement, [tuple(row.values()) for row in rows])


def _addition(connection: Connection, names: tuple[str, ...]) -> str:
    """Return an insert of a row that is due at once, also for a sender with a slow clock."""
    return _insert(names, on_server=connection.dialect.name == "postgresql")


@cache
def _insert(names: tuple[str, ...], *, on_server: bool) -> str:
    marks = [f"LEAST(?, {NOW_TEXT})" if name == "due_at" and on_server else "?" for name in names]
    return f"INSERT INTO deliveries ({', '.join(names)}) VALUES ({', '.join(marks)})"  # noqa: S608  names of our own


def _new(event: Mapping[str, Any], webhook_id: str, url: str | None, now: float) -> dict[str, Any]:
    """Return the row of a delivery that is due at once."""
    return {
        **event,
        "webhook_id": webhook_id,
        LANE: lane_of(webhook_id, url),
        "url": url,
        "status": Status.PENDING.value,
        "tries": 0,
        "due_at": now,
        "created_at": now,
        "attempts": NO_ATTEMPTS,
    }


def forget(connection: Connection, subject: str) -> None:
    """Remove the deliveries of a job together with it."""
    connection.execute(delete(deliveries).where(deliveries.c.subject == subject))


# -- webhooks


def add(connection: Connection, endpoint: Endpoint) -> None:
    """Store a new webhook. Raise if the account has too many."""
    hold(connection, "webhooks", endpoint.account_id)
    count = select(func.count()).where(webhooks.c.account_id == endpoint.account_id, webhooks.c.url.is_not(None))
    if connection.execute(count).scalar_one() >= MAX_ENDPOINTS:
        raise TooManyWebhooks(
            f"The account has {MAX_ENDPOINTS} webhooks, as many as it may have.", suggestion="Delete one first."
        )
    connection.execute(insert(webhooks), _columns(endpoint))


def get(connection: Connection, account_id: str, webhook_id: str, *, lock: bool = False) -> Endpoint:
    """Return an account's webhook. Another account's is not found."""
    query = select(webhooks).where(
        webhooks.c.id == webhook_id, webhooks.c.account_id == account_id, webhooks.c.url.is_not(None)
    )
    row = connection.execute(query.with_for_update() if lock else query).mappings().one_or_none()
    if row is None:
        raise WebhookNotFound
    return _endpoint(row)


def page(connection: Connection, account_id: str, before: str | None, limit: int) -> list[Endpoint]:
    """Return an account's webhooks, newest first."""
    query = select(webhooks).where(webhooks.c.account_id == account_id, webhooks.c.url.is_not(None))
    if before is not None:
        query = query.where(webhooks.c.id < before)
    return [_endpoint(row) for row in connection.execute(query.order_by(webhooks.c.id.desc()).limit(limit)).mappings()]


def get_own(connection: Connection, account_id: str, now: float, *, lock: bool = False) -> Endpoint:
    """Return the account's secret for the webhooks that its jobs bring along. It is created on demand."""
    if lock:
        hold(connection, "webhooks", account_id)
    return several(connection, {own_id(account_id): account_id}, now)[own_id(account_id)]


def several(connection: Connection, wanted: Mapping[str, str], now: float) -> dict[str, Endpoint]:
    """Return webhooks by id, each given with its account. Accounts' own ones are created if missing."""
    rows = sql.run(connection, *sql.among(SEVERAL, list(wanted))) if wanted else ()
    found = {row[0]: _endpoint(dict(zip(_NAMES, row, strict=True))) for row in rows}
    for webhook_id, account_id in wanted.items():
        if webhook_id not in found and webhook_id == own_id(account_id):
            own = Endpoint(
                id=webhook_id,
                account_id=account_id,
                url=None,
                events=(),
                description="",
                base_url="",
                secret=new_secret(),
                created_at=now,
            )
            connection.execute(insert(webhooks), _columns(own))
            found[webhook_id] = own
    return found


def change(connection: Connection, endpoint: Endpoint, now: float) -> None:
    """Write a changed webhook. Pending deliveries go to its new URL, or fail if it is disabled."""
    connection.execute(update(webhooks).where(webhooks.c.id == endpoint.id).values(_columns(endpoint)))
    own = (deliveries.c.webhook_id == endpoint.id) & (deliveries.c.status == Status.PENDING.value)
    if endpoint.disabled_at is not None:  # deliveries being sent end by themselves
        gone = {"status": Status.FAILED.value, "due_at": None, "finished_at": now}
        connection.execute(update(deliveries).where(own, deliveries.c.lease.is_(None)).values(gone))


def rotate(connection: Connection, endpoint: Endpoint, now: float) -> Endpoint:
    """Replace the secret. Messages are signed with both secrets for a while."""
    rotated = endpoint.rotate(now)
    connection.execute(update(webhooks).where(webhooks.c.id == endpoint.id).values(_columns(rotated)))
    return rotated


def remove(connection: Connection, account_id: str, webhook_id: str) -> None:
    """Remove a webhook and its deliveries."""
    get(connection, account_id, webhook_id, lock=True)
    connection.execute(delete(webhooks).where(webhooks.c.id == webhook_id))
    connection.execute(delete(deliveries).where(deliveries.c.webhook_id == webhook_id))


def disable(connection: Connection, endpoint: Endpoint, reason: DisabledReason, now: float) -> None:
    """Disable a webhook that refuses messages or keeps failing, and record it in the audit log."""
    query = select(webhooks).where(webhooks.c.id == endpoint.id, webhooks.c.disabled_at.is_(None)).with_for_update()
    row = connection.execute(query).mappings().one_or_none()
    if row is None:
        return
    change(connection, replace(_endpoint(row), disabled_at=now, disabled_reason=reason), now)
    entry = AuditEntry(
        created_at=now,
        actor=Actor.SERVER,
        action=Action.WEBHOOK_DISABLED,
        subject=endpoint.id,
        account_id=endpoint.account_id,
        detail={"reason": reason.value},
    )
    audit_rows.append(connection, entry)


def note(connection: Connection, webhook_id: str, now: float, *, succeeded: bool) -> float | None:
    """Record whether a webhook failed. Return since when it has only failed, or None if it has not."""
    if succeeded:
        sql.run(connection, SUCCEEDED, webhook_id)
        return None
    sql.run(connection, FAILED, now, webhook_id)
    found = sql.run(connection, FAILING, webhook_id)
    return found[0][0] if found else None


def _columns(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "id": endpoint.id,
        "account_id": endpoint.account_id,
        "url": endpoint.url,
        "host": "" if endpoint.url is None else host_of(endpoint.url),
        "events": f" {' '.join(endpoint.events)} ",
        "description": endpoint.description,
        "base_url": endpoint.base_url,
        "secret": endpoint.secret,
        "former_secret": endpoint.former_secret,
        "former_until": endpoint.former_until,
        "created_at": endpoint.created_at,
        "disabled_at": endpoint.disabled_at,
        "disabled_reason": endpoint.disabled_reason,
        "failing_since": endpoint.failing_since,
    }


def _endpoint(row: Mapping[Any, Any]) -> Endpoint:
    fields = dict(row)
    del fields["host"]
    fields["events"] = tuple(fields["events"].split())
    fields["disabled_reason"] = None if fields["disabled_reason"] is None else DisabledReason(fields["disabled_reason"])
    return Endpoint(**fields)

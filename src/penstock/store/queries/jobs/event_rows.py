"""The event log: written with the change of the job, read in order, signaled after the commit."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import msgspec
from sqlalchemy import Connection, delete, func, select

from penstock.domain.events import BUDGET_EVENT, PIPELINE_PREFIX, Event, EventType
from penstock.domain.ids import new_id
from penstock.domain.jobs import Job
from penstock.domain.pipelines.records import Pipeline
from penstock.store import sql
from penstock.store.database import RUNG
from penstock.store.queries.webhooks import webhook_rows
from penstock.store.signals import QUEUE
from penstock.store.tables import events

decode_job = msgspec.json.Decoder(Job).decode
decode_pipeline = msgspec.json.Decoder(Pipeline).decode


def describe(kind: EventType, job: Job, document: bytes, now: float) -> dict[str, Any]:
    """Return the row of an event, to be written with the change of the job."""
    return _row(job.account_id, job.id, job.sequence, kind.value, now, document)


def announce(connection: Connection, pairs: Sequence[tuple[EventType, Job]], now: float) -> None:
    """Signal listeners on the job, the account or the queue after the commit, and queue webhook deliveries."""
    topics: set[str] = connection.info[RUNG]
    for kind, job in pairs:
        topics.update((job.id, job.account_id))
        if kind is EventType.QUEUED:
            topics.add(QUEUE)
    news = [
        webhook_rows.WebhookEvent(job.account_id, job.id, job.sequence, kind.value, job.webhook) for kind, job in pairs
    ]
    webhook_rows.enqueue(connection, news, now)


def append_notice(connection: Connection, account_id: str, balance: Mapping[str, Any], now: float) -> None:
    """Add an event about one of an account's budgets."""
    append_other(connection, account_id, new_id("notice"), 1, BUDGET_EVENT, msgspec.json.encode(balance), None, now)


def append_other(
    connection: Connection,
    account_id: str,
    subject: str,
    sequence: int,
    kind: str,
    document: bytes,
    own: Mapping[str, Any] | None,
    now: float,
) -> None:
    """Add an event whose subject is no job. `own` is the webhook that its request brought along."""
    sql.do_all(connection, sql.insertion(events, [_row(account_id, subject, sequence, kind, now, document)]))
    connection.info[RUNG].update((account_id, subject))
    webhook_rows.enqueue(connection, [webhook_rows.WebhookEvent(account_id, subject, sequence, kind, own)], now)


def _row(account_id: str, subject: str, sequence: int, kind: str, now: float, document: bytes) -> dict[str, Any]:
    return {
        "account_id": account_id,
        "job_id": subject,
        "sequence": sequence,
        "type": kind,
        "created_at": now,
        "document": document,
    }


def read(row: Sequence[Any]) -> Event:
    """Read a row of the log."""
    if row[1] == BUDGET_EVENT:
        return Event(row[0], row[1], row[2], row[3], None, msgspec.json.decode(row[4]))
    if row[1].startswith(PIPELINE_PREFIX):
        return Event(row[0], row[1], row[2], row[3], None, pipeline=decode_pipeline(row[4]))
    return Event(row[0], row[1], row[2], row[3], decode_job(row[4]))


_columns = (events.c.position, events.c.type, events.c.sequence, events.c.created_at, events.c.document)
COLUMNS = ", ".join(f"events.{column.name}" for column in _columns)
"""The columns from which `read` makes an event."""
_GET = f"SELECT {COLUMNS} FROM events WHERE job_id = ? AND sequence = ?"  # noqa: S608  names of our own


def get(connection: Connection, job_id: str, sequence: int) -> Event | None:
    """Return one event of a job, or a notice."""
    found = sql.run(connection, _GET, job_id, sequence)
    return read(found[0]) if found else None


def of_jobs(connection: Connection, asked: Sequence[tuple[str, int]], limit: int) -> dict[tuple[str, int], list[Event]]:
    """Return the events of each of these jobs after a position, oldest first, and at most `limit` in all."""
    values = [value for question in (*asked, *[("", 0)] * (_room(len(asked)) - len(asked))) for value in question]
    found: dict[tuple[str, int], list[Event]] = {}
    for job_id, after, *row in sql.run(connection, _of_jobs(_room(len(asked))), *values, limit):
        found.setdefault((job_id, after), []).append(read(row))
    return found


def _room(count: int) -> int:
    """Return the next power of four: few distinct statements, which the server caches."""
    room = 1
    while room < count:
        room *= 4
    return room


@cache
def _of_jobs(count: int) -> str:
    asked = ", ".join(["(CAST(? AS TEXT), CAST(? AS BIGINT))"] * count)
    return (
        f"WITH asked (job_id, after) AS (VALUES {asked}) SELECT asked.job_id, asked.after, {COLUMNS} "  # noqa: S608  no values
        "FROM asked JOIN events ON events.job_id = asked.job_id AND events.position > asked.after "
        "ORDER BY events.position LIMIT ?"
    )


def of_subjects(
    connection: Connection, subjects: Sequence[str], after: int, limit: int, until: int | None = None
) -> Sequence[Event]:
    """Return the events of several subjects together after a position, as `of_account` does."""
    query = select(*_columns).where(events.c.job_id.in_(subjects), events.c.position > after)
    if until is not None:
        query = query.where(events.c.position <= until)
    return [read(row) for row in connection.execute(query.order_by(events.c.position).limit(limit))]


def of_account(
    connection: Connection, account_id: str, after: int, limit: int, until: int | None = None
) -> Sequence[Event]:
    """Return an account's events after a position, oldest first. `until` excludes events that others may overtake."""
    query = select(*_columns).where(events.c.account_id == account_id, events.c.position > after)
    if until is not None:
        query = query.where(events.c.position <= until)
    return [read(row) for row in connection.execute(query.order_by(events.c.position).limit(limit))]


def last_position(connection: Connection, account_id: str) -> int:
    """Return the position of the account's latest event."""
    query = select(func.max(events.c.position)).where(events.c.account_id == account_id)
    return connection.execute(query).scalar() or 0


def remove(connection: Connection, job_id: str) -> None:
    """Remove a job's events and deliveries with it, as events contain its parameters."""
    connection.execute(delete(events).where(events.c.job_id == job_id))
    webhook_rows.forget(connection, job_id)

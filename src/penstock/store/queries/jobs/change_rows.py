"""Changes of jobs: the row, the event, and what follows from an end. Their callers have locked the row."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import Connection

from penstock.domain.events import type_of
from penstock.domain.jobs import RISKY, Job, has_advanced
from penstock.store import sql
from penstock.store.queries.billing import ledger_rows, usage_rows
from penstock.store.queries.billing.ledger_rows import LedgerRefused
from penstock.store.queries.files import lineage_rows
from penstock.store.queries.jobs import event_rows
from penstock.store.sql import Statement
from penstock.store.tables import events

WAITING: Final = "waiting"
"""The column `state` of a job that waits for others. No claim looks for it, not even one by older code."""
NO_VENDOR: Final = ""
"""The column `vendor` of such a job: on PostgreSQL, claims go by vendor."""
# The columns of `columns`, in this order.
_UPDATE = "UPDATE jobs SET vendor = ?, state = ?, done = ?, finished_at = ?, expires_at = ?, document = ? WHERE id = ?"
# For PostgreSQL: many changes from one value. Each document is sent once for its job and its event.
_WRITE_ALL: Final = """
    WITH new AS MATERIALIZED (
        SELECT *, convert_to(document, 'UTF8') AS bytes FROM json_to_recordset(CAST(? AS JSON)) AS (
            job_id TEXT, account_id TEXT, vendor TEXT, state TEXT, done INTEGER, finished_at DOUBLE PRECISION,
            expires_at DOUBLE PRECISION, at_risk INTEGER, has_advanced BOOLEAN,
            sequence INTEGER, type TEXT, created_at DOUBLE PRECISION, document TEXT
        )
    ),
    changed AS (
        UPDATE jobs SET vendor = new.vendor, state = new.state, done = new.done, finished_at = new.finished_at,
            expires_at = new.expires_at, document = new.bytes, at_risk = coalesce(new.at_risk, jobs.at_risk),
            deaths = CASE WHEN new.has_advanced THEN 0 ELSE jobs.deaths END
        FROM new WHERE jobs.id = new.job_id
    )
    INSERT INTO events (account_id, job_id, sequence, type, created_at, document)
    SELECT account_id, job_id, sequence, type, created_at, bytes FROM new
"""


def columns(job: Job, document: bytes) -> dict[str, Any]:
    """Return the columns that a change of a job updates."""
    return {
        "vendor": NO_VENDOR if job.is_waiting else job.vendor,
        "state": WAITING if job.is_waiting else job.state.value,
        "done": int(job.done),
        "finished_at": job.finished_at,
        "expires_at": job.expires_at,
        "document": document,
    }


class Change(NamedTuple):
    """A job before and after a change, and the moment of it."""

    before: Job
    after: Job
    now: float

    @property
    def has_new_phase(self) -> bool:
        """Return whether the job is in another phase now."""
        return self.after.phase is not self.before.phase

    @property
    def has_advanced(self) -> bool:
        """Return whether a risky step was survived."""
        return has_advanced(self.before.phase, self.after.phase)


def write(connection: Connection, before: Job, after: Job, now: float) -> Job:
    """Write a changed job with its event. Call `close` if it has ended."""
    return write_all(connection, [Change(before, after, now)])[0]


def write_all(connection: Connection, changes: Sequence[Change]) -> list[Job]:
    """Write changed jobs with their events. Call `close` for those that have ended."""
    written = [replace(after, sequence=before.sequence + 1) for before, after, _ in changes]
    documents = [msgspec.json.encode(job) for job in written]
    kinds = [type_of(each.before, job) for each, job in zip(changes, written, strict=True)]
    rows = [
        event_rows.describe(kind, job, document, each.now)
        for kind, job, document, each in zip(kinds, written, documents, changes, strict=True)
    ]
    if len(changes) == 1 or connection.dialect.name == "sqlite":
        updates = [_update(*each) for each in zip(changes, written, documents, strict=True)]
        sql.do_all(connection, *updates, sql.insertion(events, rows))
    else:
        sql.run(connection, _WRITE_ALL, _pack(changes, written, rows))
    event_rows.announce(connection, list(zip(kinds, written, strict=True)), max(each.now for each in changes))
    return written


def _update(change: Change, after: Job, document: bytes) -> Statement:
    """Return the update statement. A new phase also records whether a risky step begins or was survived."""
    values = (*columns(after, document).values(), after.id)
    if not change.has_new_phase:
        return Statement(_UPDATE, values)
    deaths = "0" if change.has_advanced else "deaths"
    return Statement(
        _UPDATE.replace(" WHERE", f", at_risk = {int(after.phase in RISKY)}, deaths = {deaths} WHERE"), values
    )


def _pack(changes: Sequence[Change], written: Sequence[Job], rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the values of `_WRITE_ALL` as JSON: in one value, however many they are, so that its plan is kept."""
    packed: list[dict[str, Any]] = [
        {
            **columns(job, row["document"]),
            **row,
            "document": row["document"].decode(),
            "at_risk": int(job.phase in RISKY) if change.has_new_phase else None,
            "has_advanced": change.has_advanced,
        }
        for change, job, row in zip(changes, written, rows, strict=True)
    ]
    return msgspec.json.encode(packed).decode()


def close(connection: Connection, ended: Sequence[Job], now: float) -> None:
    """Free the inputs of jobs that have ended, and settle their costs."""
    for job in ended:
        if job.parents:
            lineage_rows.end(connection, job.id)
    charged = _pay(connection, ended, now)  # last: others wait for the locks of balances and sums
    used = [usage_rows.of_job(job, charged.get(job.id) if job.charged else None) for job in ended]
    usage_rows.add(connection, usage_rows.join(used))


def _pay(connection: Connection, ended: Sequence[Job], now: float) -> dict[str, int]:
    """Settle, release or keep the holds of finished jobs. Return the amounts charged."""
    for job in ended:
        if job.charged is None:
            with suppress(LedgerRefused):  # nothing was held for it
                ledger_rows.keep(connection, job.id, job.payer, now)
    decided = [job for job in ended if job.charged is not None]
    costs = {job.id: (job.final or 0) if job.charged else None for job in decided}
    return ledger_rows.end_all(connection, costs, now)

"""Changes of jobs: the row, the event, and what follows from an end. Their callers have locked the row."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

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


def write(connection: Connection, before: Job, after: Job, now: float) -> Job:
    """Write a changed job with its event. Call `close` if it has ended."""
    after = replace(after, sequence=before.sequence + 1)
    document = msgspec.json.encode(after)
    kind, values = type_of(before, after), (*columns(after, document).values(), after.id)
    sql.do_all(
        connection,
        Statement(_update(before, after), values),
        sql.insertion(events, [event_rows.describe(kind, after, document, now)]),
    )
    event_rows.announce(connection, [(kind, after)], now)
    return after


def _update(before: Job, after: Job) -> str:
    """Return the update statement. A new phase also records whether a risky step begins or was survived."""
    if after.phase is before.phase:
        return _UPDATE
    deaths = "0" if has_advanced(before.phase, after.phase) else "deaths"
    return _UPDATE.replace(" WHERE", f", at_risk = {int(after.phase in RISKY)}, deaths = {deaths} WHERE")


def close(connection: Connection, ended: Sequence[Job], now: float) -> None:
    """Free the inputs of jobs that have ended, and settle their costs."""
    for job in ended:
        if job.parents:
            lineage_rows.end(connection, job.id)
    used = [_pay(connection, job, now) for job in ended]  # last: others wait for the locks of balances and sums
    usage_rows.add(connection, usage_rows.join(used))


def _pay(connection: Connection, job: Job, now: float) -> usage_rows.Additions:
    """Settle, release or keep the hold of a finished job. Return what it adds to the usage sums."""
    charged = None
    with suppress(LedgerRefused):  # nothing was held for it
        if job.charged:
            charged = ledger_rows.settle(connection, job.id, job.final or 0, now)
        elif job.charged is None:
            ledger_rows.keep(connection, job.id, job.payer, now)
        else:
            ledger_rows.release(connection, job.id, now)
    return usage_rows.of_job(job, charged)

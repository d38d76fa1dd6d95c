"""Jobs: every change is one row, one event and one commit. A runner's change is fenced by its claim."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Select, bindparam, or_, select, union_all, update

from penstock.domain.events import type_of
from penstock.domain.ids import first_id
from penstock.domain.jobs import Claim, IllegalMove, Job, Placing, State, choose_free, request_cancel
from penstock.errors import Gone, JobDeleted, JobNotFinished, JobNotFound
from penstock.store import locks, sql
from penstock.store.database import RUNG
from penstock.store.queries.billing.ledger_rows import Holding
from penstock.store.queries.files import lineage_rows, result_rows
from penstock.store.queries.jobs import advance_rows, change_rows, event_rows, pipeline_rows, search_index_rows
from penstock.store.signals import QUEUE, nudge
from penstock.store.sql import Statement
from penstock.store.tables import events, jobs

SOLE = 2
FAR_FUTURE = 1e12
"""The start deadline of a job that waits for others: its own begins when it may start."""
GET = "SELECT document, removed FROM jobs WHERE id = ? AND account_id = ?"
LOCK = "SELECT document FROM jobs WHERE id = ? AND owner = ? AND epoch = ? FOR UPDATE"
GET_CLAIMED = "SELECT document FROM jobs WHERE id = ? AND owner = ? AND epoch = ?"
GET_SEVERAL = "SELECT id, document FROM jobs WHERE removed IS NULL AND id IN"
RISK = "UPDATE jobs SET at_risk = ? WHERE id = ? AND owner = ? AND epoch = ? AND done = 0 RETURNING id"
NOT_SOLE = f"UPDATE jobs SET at_risk = 1 WHERE owner = ? AND at_risk = {SOLE} AND id IN"  # noqa: S608  constant text
RELEASE = "UPDATE jobs SET owner = NULL, seated = 0 WHERE id = ? AND owner = ? AND epoch = ?"
encode = msgspec.json.encode
DISPATCHING = b'"phase":"dispatching"'
MAX_ID_SKEW_SECONDS = 3_900.0
"""The largest difference between the time in an id and the job's creation: clocks jump, ids only go forward."""
MAX_CLOCK_ERROR_SECONDS = 600.0
"""More than a vendor's clock may be off: how far back jobs are checked for an order."""
log = logging.getLogger(__name__)


STATES: Mapping[Any, tuple[str, ...]] = {State.QUEUED: (State.QUEUED.value, change_rows.WAITING)}
"""The values of the column `state` for a state, if they are several."""


class FenceLost(Exception):
    """Another process has claimed the job: stop silently."""


def insert_all(connection: Connection, accepted: Sequence[Job], now: float, *more: Statement) -> list[Job]:
    """Write newly accepted jobs with their first events and holds of their highest costs. Run `more` statements."""
    if any(map(may_cost, accepted)):
        holding = Holding(connection, [job.payer for job in accepted])
        hold(holding, accepted)
        more = (*more, *holding.close())
    return write_all(connection, accepted, now, *more)


def hold(holding: Holding, accepted: Sequence[Job]) -> None:
    """Hold the highest possible cost of a request's jobs: for all of them or none."""
    amounts = {job.id: job.estimated or 0 for job in accepted if may_cost(job)}
    if amounts:
        holding.add(accepted[0].payer, amounts, accepted[0].created_at)


def write_all(connection: Connection, accepted: Sequence[Job], now: float, *more: Statement) -> list[Job]:
    """Write new jobs with their first events, and run `more` statements. Their costs are held already."""
    if not accepted:
        sql.do_all(connection, *more)
        return []
    written = [job if job.sequence == 1 else replace(job, sequence=1) for job in accepted]
    documents = [encode(job) for job in written]
    kinds = [type_of(None, job) for job in written]
    rows = [_new_row(job, document) for job, document in zip(written, documents, strict=True)]
    first_events = [event_rows.describe(*each, now) for each in zip(kinds, written, documents, strict=True)]
    event_rows.announce(connection, list(zip(kinds, written, strict=True)), now)
    sql.do_all(connection, sql.insertion(jobs, rows), sql.insertion(events, first_events), *more)
    return written


def _new_row(job: Job, document: bytes) -> dict[str, Any]:
    return {
        "id": job.id,
        "account_id": job.account_id,
        "lineage": job.payer.lineage,
        "model": job.model,
        "client_ref": job.client_ref,
        "batch_id": job.batch_id,
        "created_at": job.created_at,
        "start_by": FAR_FUTURE if job.is_waiting else job.start_by,
        "epoch": 0,
        **change_rows.columns(job, document),
    }


def may_cost(job: Job) -> bool:
    """Return whether a job may cost something. With an unknown maximum, nothing is held yet."""
    if job.estimated is not None or job.prices is None:
        return bool(job.estimated)
    return any(price is not None for price in job.prices.values())


def _change(connection: Connection, before: Job, change: Callable[[Job], Job], now: float) -> Job:
    """Apply a pure change to a job whose row is locked. The end of a job also advances its pipeline."""
    after = change(before)
    if after is before or after == before:
        return before
    if before.done:
        raise IllegalMove(f"{before.id} is {before.state} and stays as it is")
    if _begins_order(before, after) and pipeline_rows.is_stopping(connection, after.pipeline_id or ""):
        after = request_cancel(before, now)
    after = change_rows.write(connection, before, after, now)
    if after.done:
        pipeline_id = after.pipeline_id
        ended = [] if pipeline_id is None else advance_rows.advance(connection, pipeline_id, now)
        change_rows.close(connection, [after, *ended], now)
    return after


def _begins_order(before: Job, after: Job) -> bool:
    return after.pipeline_id is not None and before.attempt is None and after.attempt is not None


def amend(connection: Connection, claim: Claim, change: Callable[[Job], Job], now: float) -> Job:
    """Apply a runner's change. Raise FenceLost if its claim has ended."""
    found = sql.run(connection, LOCK, claim.job_id, claim.owner, claim.epoch)
    if not found:
        raise FenceLost(claim.job_id)
    return _change(connection, event_rows.decode_job(found[0][0]), change, now)


def mark_risk(connection: Connection, claim: Claim, level: int, beside: Sequence[str] = ()) -> None:
    """Record that a risky step of the job begins (1, or 2 if it is the only suspect here) or is over (0).

    The jobs that run `beside` it are no longer the only ones of this owner at risk.
    """
    if not sql.run(connection, RISK, level, claim.job_id, claim.owner, claim.epoch):
        raise FenceLost(claim.job_id)
    if beside:
        statement, *ids = sql.among(NOT_SOLE, beside)
        sql.run(connection, statement, claim.owner, *ids)


def adopt(
    connection: Connection,
    claim: Claim,
    found: Sequence[str],
    change: Callable[[Job, str], Job],
    now: float,
    seen_at: Mapping[str, float] | None = None,
) -> Job:
    """Assign a lost order to its job: the first of the upstream ids found that no other job of its vendor has.

    While another job places a similar order, orders that may be that job's are excluded. An order seen before the other
    job began, by `seen_at`, cannot be its own.
    """
    job = get_claimed(connection, claim)
    locks.hold(connection, "orders", job.vendor)
    documents = _list_others(connection, job)
    held = [name for name in found if any(encode(name) in document for document in documents)]
    dispatching = (event_rows.decode_job(document) for document in documents if DISPATCHING in document)
    alike = (
        other for other in dispatching if other.params == job.params and other.upstream_model == job.upstream_model
    )
    placing = [Placing(other.attempt.started_at) for other in alike if other.attempt is not None]
    free = choose_free(found, held, placing, seen_at)
    return job if free is None else amend(connection, claim, lambda job: change(job, free), now)


def has_free(connection: Connection, claim: Claim, found: Sequence[str]) -> bool:
    """Return whether at least one of these orders belongs to no other job: then it may be this job's."""
    documents = _list_others(connection, get_claimed(connection, claim))
    return any(not any(encode(name) in document for document in documents) for name in found)


def _list_others(connection: Connection, job: Job) -> Sequence[bytes]:
    """Return the documents of the vendor's other jobs that may hold an order as young as this job's."""
    others = select(jobs.c.document).where(
        jobs.c.vendor == job.vendor,
        jobs.c.id != job.id,
        or_(jobs.c.finished_at.is_(None), jobs.c.finished_at >= job.attempts[-1].started_at - MAX_CLOCK_ERROR_SECONDS),
    )
    return connection.execute(others).scalars().all()


def hand_on(connection: Connection, claim: Claim, change: Callable[[Job], Job], now: float) -> Job:
    """Apply a change and, if the job still runs, release it to be claimed by any process: both or neither."""
    job = amend(connection, claim, change, now)
    if job.state is State.RUNNING:
        release(connection, claim)
    return job


def release(connection: Connection, claim: Claim) -> None:
    """Release a job, so that another process may claim it."""
    connection.info[RUNG].add(QUEUE)
    sql.run(connection, RELEASE, claim.job_id, claim.owner, claim.epoch)


def amend_own(connection: Connection, account_id: str, job_id: str, change: Callable[[Job], Job], now: float) -> Job:
    """Apply a caller's change to its own job."""
    before = get(connection, account_id, job_id, lock=True)
    connection.info[RUNG].add(nudge(job_id))
    return _change(connection, before, change, now)


def get(connection: Connection, account_id: str, job_id: str, *, lock: bool = False) -> Job:
    """Return an account's job. Another account's is not found. `lock` prevents other changes."""
    found = sql.run(connection, GET + sql.LOCKING if lock else GET, job_id, account_id)
    if not found:
        raise JobNotFound
    document, removed = found[0]
    if removed is not None:
        raise JobDeleted if removed == "deleted" else Gone
    return event_rows.decode_job(document)


def find(connection: Connection, job_id: str) -> Job | None:
    """Return a job of any account, also a removed one, for corrections of the ledger."""
    document = connection.execute(select(jobs.c.document).where(jobs.c.id == job_id)).scalar()
    return None if document is None else event_rows.decode_job(document)


def get_claimed(connection: Connection, claim: Claim) -> Job:
    """Return the job of a claim."""
    found = sql.run(connection, GET_CLAIMED, claim.job_id, claim.owner, claim.epoch)
    if not found:
        raise FenceLost(claim.job_id)
    return event_rows.decode_job(found[0][0])


def get_several(connection: Connection, job_ids: Sequence[str]) -> list[Job]:
    """Return jobs by id, in the given order, without removed ones."""
    rows = sql.run(connection, *sql.among(GET_SEVERAL, job_ids)) if job_ids else ()
    found = {job_id: event_rows.decode_job(document) for job_id, document in rows}
    return [found[job_id] for job_id in job_ids if job_id in found]


def page(
    connection: Connection, account_id: str, filters: Mapping[str, Any], before: str | None, limit: int
) -> list[Job]:
    """Return a page of an account's jobs, newest first. Each filter has an index that ends in the id."""
    found: list[Job] = []
    states = STATES.get(filters.get("state"), (filters.get("state"),))
    for state in states:  # one query each, so that an index serves the order
        query = _filter(connection, account_id, {**filters, "states": None if state is None else (state,)})
        if before is not None:
            query = query.where(jobs.c.id < before)
        rows = connection.execute(query.order_by(jobs.c.id.desc()).limit(limit))
        found += [event_rows.decode_job(row.document) for row in rows]
    return found if len(states) == 1 else sorted(found, key=attrgetter("id"), reverse=True)[:limit]


@dataclass(frozen=True, slots=True)
class ModelPage:
    """A page of the jobs of some models."""

    models: Sequence[str]
    after: str | None
    limit: int
    oldest_first: bool = False


def page_of_models(connection: Connection, account_id: str, page: ModelPage, now: float) -> list[Job]:
    """Return a page of an account's jobs of some models. Each model's part comes from an index."""
    if not page.models:
        return []

    def order(column: ColumnElement[str]) -> ColumnElement[str]:
        return column.asc() if page.oldest_first else column.desc()

    parts: list[Select[tuple[str, bytes]]] = []
    for model in page.models:
        query = select(jobs.c.id, jobs.c.document).where(
            jobs.c.account_id == account_id, jobs.c.model == model, jobs.c.removed.is_(None)
        )
        query = query.where(or_(jobs.c.expires_at.is_(None), jobs.c.expires_at > now))
        if page.after is not None:
            query = query.where(jobs.c.id > page.after if page.oldest_first else jobs.c.id < page.after)
        parts.append(select(query.order_by(order(jobs.c.id)).limit(page.limit).subquery()))
    every = union_all(*parts).subquery()
    rows = connection.execute(select(every.c.document).order_by(order(every.c.id)).limit(page.limit))
    return [event_rows.decode_job(row.document) for row in rows]


def choose(connection: Connection, account_id: str, filters: Mapping[str, Any], job_ids: Sequence[str]) -> list[Job]:
    """Return those of these jobs that are the account's and pass the filters, newest first."""
    states = None if filters.get("state") is None else STATES.get(filters["state"], (filters["state"],))
    query = _filter(connection, account_id, {**filters, "states": states}).where(jobs.c.id.in_(job_ids))
    return [event_rows.decode_job(row.document) for row in connection.execute(query.order_by(jobs.c.id.desc()))]


def _filter(connection: Connection, account_id: str, filters: Mapping[str, Any]) -> Select[tuple[bytes]]:
    query = select(jobs.c.document).where(jobs.c.account_id == account_id, jobs.c.removed.is_(None))
    if (states := filters.get("states")) is not None:
        query = query.where(jobs.c.state.in_(states) if len(states) > 1 else jobs.c.state == states[0])
    for name in ("model", "client_ref", "batch_id"):
        if filters.get(name) is not None:
            query = query.where(jobs.c[name] == filters[name])
    if (pipeline_id := filters.get("pipeline")) is not None:
        query = query.where(jobs.c.id.in_(pipeline_rows.job_ids_of(connection, account_id, pipeline_id)))
    if (after := filters.get("created_after")) is not None:  # ids sort by time, so the index is used
        query = query.where(jobs.c.created_at > after, jobs.c.id > first_id("job", after - MAX_ID_SKEW_SECONDS))
    if (until := filters.get("created_before")) is not None:
        query = query.where(jobs.c.created_at < until, jobs.c.id < first_id("job", until + MAX_ID_SKEW_SECONDS))
    if (now := filters.get("kept_at")) is not None:
        query = query.where(or_(jobs.c.expires_at.is_(None), jobs.c.expires_at > now))
    return query


def recent_durations(connection: Connection, models: Iterable[str], limit: int) -> dict[str, list[float]]:
    """Return the durations of each model's latest successful jobs, oldest first."""
    query = select(jobs.c.document).where(
        jobs.c.model == bindparam("wanted"), jobs.c.state == State.SUCCEEDED.value, jobs.c.removed.is_(None)
    )
    latest = query.order_by(jobs.c.finished_at.desc()).limit(limit)
    found = {model: connection.execute(latest, {"wanted": model}).scalars().all() for model in models}
    return {model: [_duration(document) for document in reversed(rows)] for model, rows in found.items()}


def _duration(document: bytes) -> float:
    job = event_rows.decode_job(document)
    return (job.finished_at or 0.0) - (job.started_at or 0.0)


def expired(connection: Connection, now: float, limit: int) -> list[tuple[str, str]]:
    """Return account and id of jobs past their retention whose outputs no open job needs."""
    query = select(jobs.c.account_id, jobs.c.id).where(jobs.c.removed.is_(None), jobs.c.expires_at <= now)
    query = query.where(lineage_rows.unneeded(jobs.c.id))
    return [(row.account_id, row.id) for row in connection.execute(query.order_by(jobs.c.expires_at).limit(limit))]


def remove(connection: Connection, account_id: str, job_id: str, reason: str) -> Job:
    """Replace a job by a tombstone: its parameters and outputs go, its existence and cost stay."""
    job = get(connection, account_id, job_id, lock=True)
    if not job.done:
        raise JobNotFinished
    bare = replace(job, params={}, outputs=(), metadata=None, client_ref=None, warnings=(), error=None)
    bare = replace(bare, file=None, files={}, to_fetch={}, parents=())
    values = {"removed": reason, "document": encode(bare), "client_ref": None, "expires_at": None}
    connection.execute(update(jobs).where(jobs.c.id == job_id).values(values))
    event_rows.remove(connection, job_id)
    search_index_rows.remove(connection, job_id)
    lineage_rows.remove(connection, job_id)
    result_rows.remove(connection, job_id)
    return job

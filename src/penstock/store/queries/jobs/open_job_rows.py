"""Open jobs: claims by processes, fair between accounts, and the limit on open jobs."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from typing import Any

import msgspec
from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    ScalarSelect,
    Select,
    and_,
    bindparam,
    func,
    literal_column,
    select,
    union_all,
    update,
)

from penstock.domain.api_keys import ApiKey
from penstock.domain.jobs import Claim, Headroom, Job, State
from penstock.errors import ConcurrencyLimited
from penstock.store import locks
from penstock.store.queries.jobs import event_rows
from penstock.store.tables import jobs

FEW = 10
"""Accounts that hold fewer jobs than this may use the places that a process keeps in reserve."""
MAX_JOBS_READ = 20
RETRY_SECONDS = 5.0
"""Seconds until a retry where no job's end is predicted."""

log = logging.getLogger(__name__)

# -- statements, made once; `done = 0` is a literal, so that SQLite uses the partial index

OPEN = jobs.c.done == literal_column("0")
FREE = and_(OPEN, jobs.c.owner.is_(None))


def _next_account(account_id: Any) -> ScalarSelect[Any]:
    """Return the next account with a free queued job: one index lookup, however many jobs it has."""
    later = and_(FREE, jobs.c.state == State.QUEUED.value, jobs.c.account_id > account_id)
    return select(func.min(jobs.c.account_id)).where(later).correlate_except(jobs).scalar_subquery()


_first = select(_next_account(bindparam("after")).label("account_id"), literal_column("1", Integer).label("number"))
_turns = _first.cte("turns", recursive=True)
_turns = _turns.union_all(
    select(_next_account(_turns.c.account_id), _turns.c.number + 1).where(
        _turns.c.account_id.is_not(None), _turns.c.number < bindparam("most")
    )
)
ACCOUNTS = select(_turns.c.account_id).where(_turns.c.account_id.is_not(None)).order_by(_turns.c.number)
OLDEST = (
    select(jobs.c.id)
    .where(
        FREE,
        jobs.c.state == State.QUEUED.value,
        jobs.c.account_id == bindparam("account_id"),
        jobs.c.id > bindparam("after"),
    )
    .order_by(jobs.c.id)
    .limit(bindparam("most"))
)


def _in_state(state: State) -> Select[Any]:
    found = select(jobs.c.state, jobs.c.id).where(FREE, jobs.c.state == state.value)
    return select(found.order_by(jobs.c.account_id, jobs.c.id).limit(bindparam("most")).subquery())


BEGUN = union_all(_in_state(State.RUNNING), _in_state(State.CANCELING))
PAST_START = (
    select(jobs.c.id)
    .where(FREE, jobs.c.start_by <= bindparam("now"), jobs.c.state != State.RUNNING.value)
    .order_by(jobs.c.start_by)
    .limit(bindparam("most"))
)
TAKE = (
    update(jobs)
    .where(jobs.c.id.in_(bindparam("ids", expanding=True)), FREE)
    .values(owner=bindparam("new_owner"), epoch=jobs.c.epoch + 1, at_risk=0)
    .returning(jobs.c.id, jobs.c.epoch, jobs.c.deaths, jobs.c.document)
)
SEAT = TAKE.values(seated=1)
RELEASE = update(jobs).where(OPEN, jobs.c.owner.is_not(None)).values(owner=None)
SUSPECTED = "deaths + CASE WHEN at_risk = 2 OR (at_risk = 1 AND deaths = 0) THEN 1 ELSE 0 END"
"""The deaths of a job whose owner has just died. A suspect's are counted only if it alone was at risk there."""
BURY = RELEASE.values(deaths=literal_column(SUSPECTED, Integer), at_risk=0)
OLDEST_WAITING = (
    select(jobs.c.vendor, func.min(jobs.c.created_at))
    .where(FREE, jobs.c.state == State.QUEUED.value)
    .group_by(jobs.c.vendor)
)
COUNT = select(jobs.c.account_id, jobs.c.state, func.count()).where(OPEN).group_by(jobs.c.account_id, jobs.c.state)


# -- claiming


def claim(
    connection: Connection,
    owner: str,
    limit: int,
    *,
    held: Mapping[str, int] | None = None,
    spare: int | None = None,
    after: str = "",
) -> list[tuple[Claim, Job]]:
    """Claim up to `limit` free jobs: those already begun first, then the oldest of each account.

    Accounts with the fewest `held` jobs come first. Among equals, it is the turn of those after `after`. Accounts that
    hold several already get at most `spare` of the places. Canceled jobs get at most half, as long as others wait.
    """
    begun, canceled = _begun(connection, limit)
    room = limit - len(begun)
    waiting = _choose_fairly(connection, room, (limit if spare is None else spare) - len(begun), held or {}, after)
    ending = canceled[: min(room, max(room - len(waiting), (room + 1) // 2))]
    return take(connection, owner, [*begun, *ending, *waiting[: room - len(ending)]])


def claim_ending(connection: Connection, owner: str, limit: int, now: float) -> list[tuple[Claim, Job]]:
    """Claim jobs that can only end: canceled ones, and those whose start deadline has passed."""
    _, canceled = _begun(connection, limit)
    late = connection.execute(PAST_START, {"now": now, "most": limit}).scalars()
    return take(connection, owner, list(dict.fromkeys([*canceled, *late]))[:limit])


def release_all(connection: Connection, *, died: bool = False) -> None:
    """Free every open job to be claimed again. `died`: its owner died, perhaps because of one of them."""
    connection.execute(BURY if died else RELEASE)


def _begun(connection: Connection, limit: int) -> tuple[list[str], list[str]]:
    """Return running and canceled jobs."""
    found: dict[str, list[str]] = {State.RUNNING.value: [], State.CANCELING.value: []}
    for row in connection.execute(BEGUN, {"most": limit}):
        found[row.state].append(row.id)
    return found[State.RUNNING.value], found[State.CANCELING.value]


def _choose_fairly(connection: Connection, limit: int, spare: int, held: Mapping[str, int], after: str) -> list[str]:
    """Return queued jobs for `limit` places, each to the account that has the fewest by then."""
    if not limit:
        return []
    most = min(limit, max(spare, FEW))  # for one account
    lines = _lines(connection, limit + len(held), most, after)  # all, or enough that hold none
    turns = [(held.get(account_id, 0), number, account_id) for number, account_id in enumerate(lines)]
    heapify(turns)
    chosen: list[str] = []
    while turns and len(chosen) < limit:
        has, number, account_id = turns[0]
        if has >= FEW and len(chosen) >= spare:
            break
        job_id = next(lines[account_id], None)
        if job_id is None:
            heappop(turns)
        else:
            chosen.append(job_id)
            heapreplace(turns, (has + 1, number, account_id))
    return chosen


def _lines(connection: Connection, accounts: int, most: int, after: str) -> dict[str, Iterator[str]]:
    """Return this number of accounts with free queued jobs, in turn. Each has up to `most` of them, oldest first."""
    found = connection.execute(ACCOUNTS, {"after": after, "most": accounts}).scalars().all()
    if after and len(found) < accounts:
        first = connection.execute(ACCOUNTS, {"after": "", "most": accounts - len(found)}).scalars()
        found = list(dict.fromkeys([*found, *first]))
    each = -(-2 * most // max(1, len(found)))  # queried at first: some take more than others
    return {account_id: _line(connection, account_id, min(each, most), most) for account_id in found}


def _line(connection: Connection, account_id: str, each: int, most: int) -> Iterator[str]:
    """Yield an account's free queued jobs. They are queried on demand."""
    after = ""
    for limit in (each, most - each):
        found = connection.execute(OLDEST, {"account_id": account_id, "after": after, "most": limit}).scalars().all()
        yield from found
        if len(found) < limit or limit == most:
            return
        after = found[-1]


def take(
    connection: Connection, owner: str, job_ids: Sequence[str], *, seated: bool = False
) -> list[tuple[Claim, Job]]:
    """Claim these jobs, as far as they are still free. `seated` also takes a seat of their vendor."""
    if not job_ids:
        return []
    rows = {row.id: row for row in connection.execute(SEAT if seated else TAKE, {"ids": job_ids, "new_owner": owner})}
    claimed: list[tuple[Claim, Job]] = []
    for job_id in job_ids:
        if (row := rows.get(job_id)) is None:  # another process was faster
            continue
        try:
            claimed.append((Claim(row.id, owner, row.epoch, row.deaths), event_rows.decode_job(row.document)))
        except msgspec.DecodeError:  # one damaged row must not block the others
            log.exception("a job's row cannot be decoded; the job is skipped", extra={"fields": {"job_id": row.id}})
    return claimed


# -- counting


def count(connection: Connection) -> dict[tuple[str, str], int]:
    """Return the number of open jobs by account and state."""
    return {(account_id, state): number for account_id, state, number in connection.execute(COUNT)}


def oldest_waiting(connection: Connection) -> dict[str, float]:
    """Return the creation time of the oldest job that waits for a claim, by vendor."""
    return {row[0]: row[1] for row in connection.execute(OLDEST_WAITING)}


def admit(connection: Connection, key: ApiKey, more: int, now: float) -> Headroom | None:
    """Raise if a key or its account would exceed its limit of open jobs. Return what is left, or None without a limit.

    It counts the rows in the transaction that adds the new ones: no counter can drift.
    """
    if key.limits.concurrent_jobs is None and key.account_limits.concurrent_jobs is None:
        return None
    limits = (
        ("This API key", jobs.c.lineage == key.lineage, key.limits.concurrent_jobs),
        ("Your account", jobs.c.account_id == key.account_id, key.account_limits.concurrent_jobs),
    )
    left: list[Headroom] = []
    locks.hold(connection, "open jobs", key.account_id)
    for whose, theirs, limit in limits:
        if limit is None:
            continue
        there = connection.execute(select(func.count()).where(OPEN, theirs)).scalar_one()
        if there + more > limit:
            raise _refusal(connection, whose, theirs, Headroom(limit, max(0, limit - there)), there, more, now)
        left.append(Headroom(limit, limit - there - more))
    return min(left, key=lambda headroom: headroom.remaining, default=None)


def _refusal(
    connection: Connection,
    whose: str,
    theirs: ColumnElement[bool],
    headroom: Headroom,
    there: int,
    more: int,
    now: float,
) -> ConcurrencyLimited:
    limit = headroom.limit
    error = ConcurrencyLimited(
        f"{whose} may have {limit} jobs open at once: {there} are, and this request asks for {more} more.",
        retry_after=_soonest_end(connection, theirs, now),
        limit=limit,
        remaining=headroom.remaining,
    )
    if more > limit:
        error.suggestion, error.retryable = f"Send at most {limit} elements of `input` in one request.", False
    return error


class _Eta(msgspec.Struct):
    eta_at: float | None = None


def _soonest_end(connection: Connection, theirs: ColumnElement[bool], now: float) -> float:
    """Return the seconds until one of the oldest running jobs has probably ended."""
    query = select(jobs.c.document).where(OPEN, theirs, jobs.c.state == State.RUNNING.value).limit(MAX_JOBS_READ)
    found = [msgspec.json.decode(document, type=_Eta) for document in connection.execute(query).scalars()]
    ends = [job.eta_at for job in found if job.eta_at is not None]
    return max(1.0, min(ends) - now) if ends else RETRY_SECONDS

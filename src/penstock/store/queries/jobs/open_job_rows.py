"""Open jobs: claims by processes, fair between accounts, and the limit on open jobs."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

import msgspec
from sqlalchemy import Connection

from penstock.domain.api_keys import ApiKey
from penstock.domain.jobs import Claim, Headroom, Job, State
from penstock.errors import ConcurrencyLimited
from penstock.store import locks, sql
from penstock.store.queries.jobs import event_rows

FEW = 10
"""Accounts that hold fewer jobs than this may use the places that a process keeps in reserve."""
MAX_JOBS_READ = 20
RETRY_SECONDS = 5.0
"""Seconds until a retry where no job's end is predicted."""

log = logging.getLogger(__name__)

# -- statements; `done = 0` is part of them, so that SQLite uses the partial index

OPEN = "done = 0"
FREE = f"{OPEN} AND owner IS NULL"
# From account to account with a free queued job: one index lookup for each, however many jobs it has.
ACCOUNTS = f"""
    WITH RECURSIVE turns (account_id, number) AS (
        SELECT (SELECT MIN(account_id) FROM jobs WHERE {FREE} AND state = '{State.QUEUED}' AND account_id > ?), 1
        UNION ALL
        SELECT (SELECT MIN(account_id) FROM jobs
                WHERE {FREE} AND state = '{State.QUEUED}' AND account_id > turns.account_id), turns.number + 1
        FROM turns WHERE turns.account_id IS NOT NULL AND turns.number < ?
    )
    SELECT account_id FROM turns WHERE account_id IS NOT NULL ORDER BY number
"""  # noqa: S608  constant text, like all of these
OLDEST = f"""
    SELECT id FROM jobs WHERE {FREE} AND state = '{State.QUEUED}' AND account_id = ? AND id > ? ORDER BY id LIMIT ?
"""  # noqa: S608


def _in_state(state: State) -> str:
    found = f"SELECT state, id FROM jobs WHERE {FREE} AND state = '{state}' ORDER BY account_id, id LIMIT ?"  # noqa: S608
    return f"SELECT state, id FROM ({found}) AS {state}"  # noqa: S608


BEGUN = f"{_in_state(State.RUNNING)} UNION ALL {_in_state(State.CANCELING)}"
PAST_START = f"""
    SELECT id FROM jobs WHERE {FREE} AND start_by <= ? AND state <> '{State.RUNNING}' ORDER BY start_by LIMIT ?
"""  # noqa: S608
TAKE = f"UPDATE jobs SET owner = ?, epoch = epoch + 1, at_risk = 0 WHERE {FREE} AND id IN"  # noqa: S608
SEAT = TAKE.replace(" WHERE", ", seated = 1 WHERE", 1)
TAKEN = " RETURNING id, epoch, deaths, document"
RELEASE = f"UPDATE jobs SET owner = NULL WHERE {OPEN} AND owner IS NOT NULL"  # noqa: S608
SUSPECTED = "deaths + CASE WHEN at_risk = 2 OR (at_risk = 1 AND deaths = 0) THEN 1 ELSE 0 END"
"""The deaths of a job whose owner has just died. A suspect's are counted only if it alone was at risk there."""
BURY = RELEASE.replace(" WHERE", f", deaths = {SUSPECTED}, at_risk = 0 WHERE", 1)
OLDEST_WAITING = f"""
    SELECT vendor, MIN(created_at) FROM jobs WHERE {FREE} AND state = '{State.QUEUED}' GROUP BY vendor
"""  # noqa: S608
COUNT = f"SELECT account_id, state, COUNT(*) FROM jobs WHERE {OPEN} GROUP BY account_id, state"  # noqa: S608
COUNT_OF = f"SELECT COUNT(*) FROM jobs WHERE {OPEN} AND "  # noqa: S608
RUNNING_OF = f"SELECT document FROM jobs WHERE {OPEN} AND state = '{State.RUNNING}' AND "  # noqa: S608


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
    late = [row[0] for row in sql.run(connection, PAST_START, now, limit)]
    return take(connection, owner, list(dict.fromkeys([*canceled, *late]))[:limit])


def release_all(connection: Connection, *, died: bool = False) -> None:
    """Free every open job to be claimed again. `died`: its owner died, perhaps because of one of them."""
    sql.run(connection, BURY if died else RELEASE)


def _begun(connection: Connection, limit: int) -> tuple[list[str], list[str]]:
    """Return running and canceled jobs."""
    found: dict[str, list[str]] = {State.RUNNING.value: [], State.CANCELING.value: []}
    for state, job_id in sql.run(connection, BEGUN, limit, limit):
        found[state].append(job_id)
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
    found = [row[0] for row in sql.run(connection, ACCOUNTS, after, accounts)]
    if after and len(found) < accounts:
        first = [row[0] for row in sql.run(connection, ACCOUNTS, "", accounts - len(found))]
        found = list(dict.fromkeys([*found, *first]))
    each = -(-2 * most // max(1, len(found)))  # queried at first: some take more than others
    return {account_id: _line(connection, account_id, min(each, most), most) for account_id in found}


def _line(connection: Connection, account_id: str, each: int, most: int) -> Iterator[str]:
    """Yield an account's free queued jobs. They are queried on demand."""
    after = ""
    for limit in (each, most - each):
        found = [row[0] for row in sql.run(connection, OLDEST, account_id, after, limit)]
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
    statement, *ids = sql.among(SEAT if seated else TAKE, job_ids)
    rows = {row[0]: row for row in sql.run(connection, statement + TAKEN, owner, *ids)}
    claimed: list[tuple[Claim, Job]] = []
    for job_id in job_ids:
        if (row := rows.get(job_id)) is None:  # another process was faster
            continue
        _, epoch, deaths, document = row
        try:
            claimed.append((Claim(job_id, owner, epoch, deaths), event_rows.decode_job(document)))
        except msgspec.DecodeError:  # one damaged row must not block the others
            log.exception("a job's row cannot be decoded; the job is skipped", extra={"fields": {"job_id": job_id}})
    return claimed


# -- counting


def count(connection: Connection) -> dict[tuple[str, str], int]:
    """Return the number of open jobs by account and state."""
    return {(account_id, state): number for account_id, state, number in sql.run(connection, COUNT)}


def oldest_waiting(connection: Connection) -> dict[str, float]:
    """Return the creation time of the oldest job that waits for a claim, by vendor."""
    return {row[0]: row[1] for row in sql.run(connection, OLDEST_WAITING)}


class _Theirs(NamedTuple):
    """Whose jobs count: the column that names the owner, and the owner."""

    column: str
    value: str


def admit(connection: Connection, key: ApiKey, more: int, now: float) -> Headroom | None:
    """Raise if a key or its account would exceed its limit of open jobs. Return what is left, or None without a limit.

    It counts the rows in the transaction that adds the new ones: no counter can drift.
    """
    if key.limits.concurrent_jobs is None and key.account_limits.concurrent_jobs is None:
        return None
    limits = (
        ("This API key", _Theirs("lineage", key.lineage), key.limits.concurrent_jobs),
        ("Your account", _Theirs("account_id", key.account_id), key.account_limits.concurrent_jobs),
    )
    left: list[Headroom] = []
    locks.hold(connection, "open jobs", key.account_id)
    for whose, theirs, limit in limits:
        if limit is None:
            continue
        there: int = sql.run(connection, f"{COUNT_OF}{theirs.column} = ?", theirs.value)[0][0]
        if there + more > limit:
            raise _refusal(connection, whose, theirs, Headroom(limit, max(0, limit - there)), there, more, now)
        left.append(Headroom(limit, limit - there - more))
    return min(left, key=lambda headroom: headroom.remaining, default=None)


def _refusal(
    connection: Connection,
    whose: str,
    theirs: _Theirs,
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


def _soonest_end(connection: Connection, theirs: _Theirs, now: float) -> float:
    """Return the seconds until one of the oldest running jobs has probably ended."""
    rows = sql.run(connection, f"{RUNNING_OF}{theirs.column} = ? LIMIT ?", theirs.value, MAX_JOBS_READ)
    found = [msgspec.json.decode(row[0], type=_Eta) for row in rows]
    ends = [job.eta_at for job in found if job.eta_at is not None]
    return max(1.0, min(ends) - now) if ends else RETRY_SECONDS

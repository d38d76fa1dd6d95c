"""Roll-ups of the ledger: old entries and usage records are removed, and their sums kept in checkpoints."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, ScalarSelect, and_, case, delete, func, or_, select, union_all

from penstock.domain.budgets import ACCOUNT_PREFIX, TAG_PREFIX, Period, bound_tag_owners, own_tag, read_tag_owner
from penstock.store import locks, sql
from penstock.store.queries.billing.attribution_tables import tag_carried
from penstock.store.tables import (
    accounts,
    budgets,
    completions,
    holds,
    jobs,
    keys,
    ledger,
    ledger_carried,
    ledger_checkpoints,
    purses,
)

MAX_CARRIED_TAGS: Final = 10_000
"""Tags of an account whose removed entries are summed up, as a `total` budget may be set for any of them."""
_ADD_CHECKPOINT: Final = """
    INSERT INTO ledger_checkpoints (account_id, until, created_at, entries, requests, spent, overrun)
    VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (account_id, until) DO UPDATE SET created_at = excluded.created_at,
        entries = ledger_checkpoints.entries + excluded.entries,
        requests = ledger_checkpoints.requests + excluded.requests,
        spent = ledger_checkpoints.spent + excluded.spent, overrun = ledger_checkpoints.overrun + excluded.overrun
"""
_ADD_CARRIED: Final = """
    INSERT INTO ledger_carried (account_id, lineage, entries, spent, overrun) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (account_id, lineage) DO UPDATE SET entries = ledger_carried.entries + excluded.entries,
        spent = ledger_carried.spent + excluded.spent, overrun = ledger_carried.overrun + excluded.overrun
"""
_ADD_TAG_CARRIED: Final = """
    INSERT INTO tag_carried (owner, spent) VALUES (?, ?)
    ON CONFLICT (owner) DO UPDATE SET spent = tag_carried.spent + excluded.spent
"""
SIGN = case((ledger.c.kind == "settle", 1), (ledger.c.kind == "refund", -1), else_=0)
"""What an entry's amount counts for in the amount spent."""
_SIGNS: Final = {"settle": 1, "refund": -1}


class Carried(NamedTuple):
    """Sums of removed entries, in 10⁻⁹ USD."""

    entries: int
    spent: int
    overrun: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The sums of what one roll-up removed of an account."""

    account_id: str
    until: float
    created_at: float
    entries: int
    requests: int
    spent: int
    overrun: int


def find_due(connection: Connection, cut: float, limit: int, after: str = "") -> list[str]:
    """Return accounts with records from before the cut that may be removed, in the order of their ids."""
    oldest = select(completions.c.created_at).where(completions.c.account_id == accounts.c.id)
    has_jobs = _ended_jobs(cut).where(ledger.c.account_id == accounts.c.id).correlate(accounts).exists()
    due = or_(oldest.order_by(completions.c.id).limit(1).scalar_subquery() < cut, has_jobs)
    query = select(accounts.c.id).where(accounts.c.id > after, due).order_by(accounts.c.id).limit(limit)
    return list(connection.execute(query).scalars())


def _ended_jobs(cut: float) -> Any:
    """Select the subjects of jobs that were accepted and ended before the cut, and whose holds are ended."""
    is_job = ledger.c.subject.like("job\\_%", escape="\\")
    is_over = or_(jobs.c.id.is_(None), jobs.c.finished_at < cut)
    subjects = select(ledger.c.subject).join_from(ledger, jobs, jobs.c.id == ledger.c.subject, isouter=True)
    return subjects.where(ledger.c.at < cut, ledger.c.kind.in_(("settle", "release")), is_job, is_over)


def roll_up(connection: Connection, account_id: str, cut: float, now: float, limit: int) -> int:
    """Remove up to `limit` requests or jobs of before the cut, and add their sums to a checkpoint. Return the number.

    While a job of before the cut is open, all stays: when it ends, the budgets of its period must still be exact.
    """
    if _has_open_job(connection, account_id, cut):
        return 0
    chats = _old_completions(connection, account_id, cut, limit)
    subjects = chats or _old_jobs(connection, account_id, cut, limit)
    if not subjects:
        return 0
    locks.join_ledger(connection)  # no `total` budget of a tag may be set meanwhile: its entries are to be carried
    removed = _remove_entries(connection, subjects)
    if chats:
        connection.execute(delete(completions).where(completions.c.id.in_(chats)))
    carried = _sum_up(removed)
    total = Carried(*(sum(each) for each in zip(*carried.values(), strict=True))) if carried else Carried(0, 0, 0)
    counted = (total.entries, len(chats), total.spent, total.overrun)
    sql.run(connection, _ADD_CHECKPOINT, account_id, cut, now, *counted)
    if carried:
        sql.run_many(
            connection, _ADD_CARRIED, [(account_id, lineage, *carried[lineage]) for lineage in sorted(carried)]
        )
    _carry_tags(connection, account_id, removed)
    return len(subjects)


def _has_open_job(connection: Connection, account_id: str, cut: float) -> bool:
    """Return whether a job from before the cut is not done, or its hold is kept as its outcome is unknown."""
    runs = select(jobs.c.id).where(jobs.c.account_id == account_id, jobs.c.done == 0, jobs.c.created_at < cut)
    is_kept = and_(holds.c.subject == jobs.c.id, holds.c.is_lease == 0)
    kept = select(jobs.c.id).join_from(holds, jobs, is_kept).where(jobs.c.account_id == account_id)
    return connection.execute(union_all(runs, kept.where(jobs.c.created_at < cut)).limit(1)).first() is not None


def _old_completions(connection: Connection, account_id: str, cut: float, limit: int) -> list[str]:
    """Return the oldest chat requests. Their ids sort by time."""
    query = select(completions.c.id, completions.c.created_at).where(completions.c.account_id == account_id)
    rows = connection.execute(query.order_by(completions.c.id).limit(limit))
    return [row.id for row in rows if row.created_at < cut]


def _old_jobs(connection: Connection, account_id: str, cut: float, limit: int) -> list[str]:
    query = _ended_jobs(cut).where(ledger.c.account_id == account_id).order_by(ledger.c.at).limit(limit)
    return sorted(set(connection.execute(query).scalars()))


def _remove_entries(connection: Connection, subjects: Sequence[str]) -> Sequence[Any]:
    """Remove all entries of these subjects. Return them."""
    which = ledger.c.subject.in_(subjects)
    if connection.dialect.name == "postgresql":  # a refund under way adds an entry that only a later statement sees
        locking = select(ledger.c.subject).where(which).order_by(ledger.c.subject, ledger.c.kind).with_for_update()
        connection.execute(locking).all()
    columns = (ledger.c.kind, ledger.c.lineage, ledger.c.amount, ledger.c.overrun, ledger.c.tags)
    return connection.execute(delete(ledger).where(which).returning(*columns)).all()


def _sum_up(removed: Sequence[Any]) -> dict[str, Carried]:
    sums: dict[str, Carried] = {}
    for row in removed:
        entries, spent, overrun = sums.get(row.lineage, (0, 0, 0))
        amount = row.amount * _SIGNS.get(row.kind, 0)
        sums[row.lineage] = Carried(entries + 1, spent + amount, overrun + row.overrun)
    return sums


def _carry_tags(connection: Connection, account_id: str, removed: Sequence[Any]) -> None:
    """Keep the sums of tags: of the first ones, and of any that has a `total` budget."""
    sums: dict[str, int] = {}
    for row in removed:
        for tag in row.tags.strip("\n").split("\n") if row.tags else ():
            owner = own_tag(account_id, tag)
            sums[owner] = sums.get(owner, 0) + row.amount * _SIGNS.get(row.kind, 0)
    if not sums:
        return
    (low, high), carried = bound_tag_owners(account_id), tag_carried.c.owner
    known = set(connection.execute(select(carried).where(carried > low, carried < high)).scalars())
    is_total = budgets.c.period == Period.TOTAL.value
    mine = select(budgets.c.owner).where(budgets.c.owner > low, budgets.c.owner < high, is_total)
    known.update(connection.execute(mine).scalars())
    known.update(sorted(sums.keys() - known)[: max(0, MAX_CARRIED_TAGS - len(known))])
    rows = [(owner, spent) for owner, spent in sorted(sums.items()) if owner in known]
    if rows:
        sql.run_many(connection, _ADD_TAG_CARRIED, rows)


def remove_balances(connection: Connection, owners: Sequence[str], cut: float) -> int:
    """Remove these owners' balances of periods that ended before the cut, unless something is still held in them."""
    here = (holds.c.owner == purses.c.owner, holds.c.period == purses.c.period, holds.c.start == purses.c.start)
    is_held = select(holds.c.subject).where(*here).exists()
    return connection.execute(delete(purses).where(purses.c.owner.in_(owners), purses.c.ends <= cut, ~is_held)).rowcount


def owners_of(connection: Connection, account_id: str) -> list[str]:
    """Return an account, the lineages of its keys, and its tags with balances."""
    query = select(keys.c.lineage).where(keys.c.account_id == account_id).distinct()
    low, high = bound_tag_owners(account_id)
    tags = select(purses.c.owner).where(purses.c.owner > low, purses.c.owner < high).distinct()
    return [account_id, *connection.execute(query).scalars(), *connection.execute(tags).scalars()]


# -- reading


def is_of(owner: str) -> ColumnElement[bool]:
    """Return the condition that an entry of the ledger counts for an owner of budgets."""
    if owner.startswith(ACCOUNT_PREFIX):
        return ledger.c.account_id == owner
    if not owner.startswith(TAG_PREFIX):
        return ledger.c.lineage == owner
    account_id, tag = read_tag_owner(owner)
    # LIKE would ignore the case on SQLite.
    has_tag = func.replace(ledger.c.tags, f"\n{tag}\n", "") != ledger.c.tags
    return and_(ledger.c.account_id == account_id, ledger.c.tags.is_not(None), has_tag)


def select_carried(owner: str) -> ScalarSelect[int]:
    """Return a query for what removed entries of an account, a lineage or a tag come to."""
    if owner.startswith(TAG_PREFIX):
        of_tag = select(func.coalesce(func.sum(tag_carried.c.spent), 0)).where(tag_carried.c.owner == owner)
        return of_tag.scalar_subquery()
    column = ledger_carried.c.account_id if owner.startswith(ACCOUNT_PREFIX) else ledger_carried.c.lineage
    return select(func.coalesce(func.sum(ledger_carried.c.spent), 0)).where(column == owner).scalar_subquery()


def carried_of(connection: Connection) -> Mapping[str, Carried]:
    """Return the sums of removed entries by account."""
    sums = (func.sum(column) for column in (ledger_carried.c.entries, ledger_carried.c.spent, ledger_carried.c.overrun))
    rows = connection.execute(select(ledger_carried.c.account_id, *sums).group_by(ledger_carried.c.account_id))
    return {row[0]: Carried(*map(int, row[1:])) for row in rows}


def cuts_of(connection: Connection, account_ids: Collection[str]) -> dict[str, float]:
    """Return the latest cut of each of these accounts that has one."""
    query = select(ledger_checkpoints.c.account_id, func.max(ledger_checkpoints.c.until))
    found = query.where(ledger_checkpoints.c.account_id.in_(account_ids)).group_by(ledger_checkpoints.c.account_id)
    return {row[0]: row[1] for row in connection.execute(found)}


def checkpoints(connection: Connection, account_id: str | None = None, limit: int = 100) -> list[Checkpoint]:
    """Return the latest checkpoints, of one account or of all."""
    query = select(ledger_checkpoints).order_by(ledger_checkpoints.c.until.desc(), ledger_checkpoints.c.account_id)
    if account_id is not None:
        query = query.where(ledger_checkpoints.c.account_id == account_id)
    return [Checkpoint(**row) for row in connection.execute(query.limit(limit)).mappings()]

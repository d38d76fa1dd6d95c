"""Lineage: which outputs of earlier jobs a job takes as inputs. They keep those bytes until the job is done."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, delete, select

from penstock.domain.jobs import Job
from penstock.errors import Gone, JobDeleted, JobNotFound
from penstock.store import sql
from penstock.store.tables import lineage

_LOCK: Final = "SELECT id, removed FROM jobs WHERE id IN"
_END: Final = "UPDATE lineage SET is_open = 0 WHERE child_id = ?"
_PIN: Final = "UPDATE lineage SET asset_id = ? WHERE child_id = ? AND path = ? AND asset_id = ''"
_NEEDED: Final = "SELECT 1 FROM lineage WHERE parent_id = ? AND is_open = 1 LIMIT 1"

MAX_LINKS: Final = 200
"""Links that a walk returns in one direction."""


class LineageLink(NamedTuple):
    """A job's input that is an output of another job."""

    child_id: str
    path: str
    parent_id: str
    asset_id: str


class WalkedLink(NamedTuple):
    """A link, and its distance from the job at which the walk began."""

    link: LineageLink
    distance: int


class Walk(NamedTuple):
    """The links of a walk, nearest first. `is_cut`: there are more."""

    links: Sequence[WalkedLink]
    is_cut: bool


def add(connection: Connection, accepted: Sequence[Job]) -> None:
    """Record the parents of new jobs. Raise if one has been removed meanwhile."""
    rows = [
        {
            "child_id": job.id,
            "path": parent.path,
            "parent_id": parent.job_id,
            "asset_id": parent.asset_id,
            "account_id": job.account_id,
            "is_open": 1,
        }
        for job in accepted
        for parent in job.parents
    ]
    if not rows:
        return
    new = {job.id for job in accepted}  # of one pipeline: they are written next
    wanted = sorted({parent.job_id for job in accepted for parent in job.parents} - new)
    _check(connection, wanted)
    sql.do_all(connection, sql.insertion(lineage, rows))


def _check(connection: Connection, wanted: Sequence[str]) -> None:
    """Lock the parents. Raise if one has been removed."""
    if not wanted:
        return
    statement, *values = sql.among(_LOCK, wanted)
    found = dict(sql.run(connection, f"{statement} ORDER BY id{sql.LOCKING}", *values))
    for parent_id in wanted:
        if parent_id not in found:
            raise JobNotFound
        if found[parent_id] is not None:
            raise JobDeleted if found[parent_id] == "deleted" else Gone


def pin(connection: Connection, child: Job) -> None:
    """Record which outputs a job of a pipeline takes, now that they are made."""
    for parent in child.parents:
        if parent.asset_id:
            sql.run(connection, _PIN, parent.asset_id, child.id, parent.path)


def end(connection: Connection, child_id: str) -> None:
    """Record that a job is done, so that it needs its parents' outputs no more."""
    sql.run(connection, _END, child_id)


def is_needed(connection: Connection, parent_id: str) -> bool:
    """Return whether an open job takes an output of this job."""
    return bool(sql.run(connection, _NEEDED, parent_id))


def unneeded(parent_id: ColumnElement[str]) -> ColumnElement[bool]:
    """Return the condition that no open job takes an output of this job."""
    return ~select(lineage.c.child_id).where(lineage.c.parent_id == parent_id, lineage.c.is_open == 1).exists()


def parents_of(connection: Connection, account_id: str, job_ids: Sequence[str]) -> list[LineageLink]:
    """Return the links from these jobs up to their parents."""
    return _links(connection, lineage.c.account_id == account_id, lineage.c.child_id.in_(job_ids))


def children_of(connection: Connection, account_id: str, job_ids: Sequence[str], limit: int) -> list[LineageLink]:
    """Return at most `limit` links from these jobs down to their children."""
    return _links(connection, lineage.c.account_id == account_id, lineage.c.parent_id.in_(job_ids), limit=limit)


def walk_up(connection: Connection, account_id: str, job_id: str) -> Walk:
    """Return the links from a job to all jobs whose outputs led to it."""
    return _walk(job_id, lambda ids: parents_of(connection, account_id, ids), attrgetter("parent_id"))


def walk_down(connection: Connection, account_id: str, job_id: str) -> Walk:
    """Return the links from a job to all jobs that were made from its outputs."""
    return _walk(job_id, lambda ids: children_of(connection, account_id, ids, MAX_LINKS + 1), attrgetter("child_id"))


def _walk(
    job_id: str, look: Callable[[Sequence[str]], Sequence[LineageLink]], other: Callable[[LineageLink], str]
) -> Walk:
    """Follow links from job to job, all of one distance together."""
    walked, seen, front, distance = list[WalkedLink](), {job_id}, [job_id], 0
    while front and len(walked) <= MAX_LINKS:
        distance += 1
        links = look(front[:MAX_LINKS])
        walked += [WalkedLink(link, distance) for link in links]
        front = [name for name in dict.fromkeys(map(other, links)) if name not in seen]
        seen.update(front)
    return Walk(walked[:MAX_LINKS], len(walked) > MAX_LINKS)


def _links(connection: Connection, *conditions: ColumnElement[bool], limit: int | None = None) -> list[LineageLink]:
    columns = (lineage.c.child_id, lineage.c.path, lineage.c.parent_id, lineage.c.asset_id)
    query = select(*columns).where(*conditions).order_by(lineage.c.child_id, lineage.c.path).limit(limit)
    return [LineageLink(*row) for row in connection.execute(query)]


def remove(connection: Connection, child_id: str) -> None:
    """Remove the links of a removed job up to its parents."""
    connection.execute(delete(lineage).where(lineage.c.child_id == child_id))

"""The search index: the words of jobs, written in the background from the event log (docs/decisions/0041)."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import Connection, delete, select

from penstock.domain.files import StoredFile
from penstock.domain.searching.words import job_words
from penstock.store import sql
from penstock.store.tables import events, search_jobs, search_words

NAME: Final = "jobs"
_JOBS: Final = "SELECT account_id, id, document FROM jobs WHERE removed IS NULL AND id IN"
_ADVANCE: Final = (
    "INSERT INTO search_progress (name, position) VALUES (?, ?) "
    "ON CONFLICT (name) DO UPDATE SET position = excluded.position WHERE search_progress.position < excluded.position"
)
_POSITION: Final = "SELECT position FROM search_progress WHERE name = ?"
_NEXT: Final = "SELECT (SELECT MIN(position) FROM events WHERE position > ?), (SELECT MAX(position) FROM events)"
_ACCEPTED: Final = "SELECT job_id FROM events WHERE position > ? AND position <= ? AND sequence = 1"
_REMOVED: Final = "SELECT id FROM jobs WHERE removed IS NOT NULL AND id IN"
_ENTRY: Final = "SELECT account_id, words FROM search_jobs WHERE job_id = ?"
_REMOVE: Final = "DELETE FROM search_words WHERE account_id = ? AND job_id = ? AND word IN"


class IndexEntry(NamedTuple):
    """The words of one job."""

    job_id: str
    account_id: str
    words: Sequence[str]


class _Searchable(msgspec.Struct):
    """The fields of a job by which it is found: reading the rest of it would take longer."""

    params: dict[str, Any]
    file: StoredFile | None = None
    files: dict[str, StoredFile] = {}
    client_ref: str | None = None


def _inputs(job: _Searchable) -> dict[str, StoredFile]:
    return job.files if job.file is None else {"file": job.file, **job.files}


_decode = msgspec.json.Decoder(_Searchable).decode


def get_position(connection: Connection) -> int:
    """Return the position in the event log up to which jobs have their words."""
    found = sql.run(connection, _POSITION, NAME)
    return found[0][0] if found else 0


def next_position(connection: Connection, after: int, count: int) -> int | None:
    """Return the end of the next portion of at most `count` events; None if there is none."""
    [(begin, last)] = sql.run(connection, _NEXT, after)
    return None if begin is None else min(last, begin + count - 1)


def read_entries(connection: Connection, after: int, until: int) -> list[IndexEntry]:
    """Return the words of the jobs that were accepted between two positions of the event log."""
    ids = [row[0] for row in sql.run(connection, _ACCEPTED, after, until)]
    return [_entry(*row) for row in sql.run(connection, *sql.among(_JOBS, ids))] if ids else []


def _entry(account_id: str, job_id: str, document: bytes) -> IndexEntry:
    job = _decode(document)
    return IndexEntry(job_id, account_id, sorted(job_words(job.params, _inputs(job), job.client_ref)))


def write_entries(connection: Connection, entries: Sequence[IndexEntry], position: int) -> None:
    """Add words of jobs and record how far the event log is read. Words that are there already stay."""
    whole = [(entry.job_id, entry.account_id, " ".join(entry.words)) for entry in entries]
    words = sorted((entry.account_id, word, entry.job_id) for entry in entries for word in entry.words)
    sql.add_missing(connection, search_jobs, whole)
    sql.add_missing(connection, search_words, words)
    sql.run(connection, _ADVANCE, NAME, position)


def remove(connection: Connection, job_id: str) -> None:
    """Remove all words of a job."""
    found = sql.run(connection, _ENTRY, job_id)
    if not found:
        return
    account_id, words = found[0]
    if words:
        statement, *values = sql.among(_REMOVE, words.split(" "))
        sql.run(connection, statement, account_id, job_id, *values)
    connection.execute(delete(search_jobs).where(search_jobs.c.job_id == job_id))


def find_orphans(connection: Connection, after: str, limit: int) -> tuple[list[str], str | None]:
    """Return those of the next `limit` indexed jobs that are removed, and the last job looked at; None at the end.

    Code of an earlier version removes jobs without their words. Events are removed with their job.
    """
    some = select(search_jobs.c.job_id).where(search_jobs.c.job_id > after).order_by(search_jobs.c.job_id).limit(limit)
    ids = connection.execute(some).scalars().all()
    if not ids:
        return [], None
    between = (search_jobs.c.job_id > after) & (search_jobs.c.job_id <= ids[-1])
    has_events = select(events.c.job_id).where(events.c.job_id == search_jobs.c.job_id).exists()
    orphans = connection.execute(select(search_jobs.c.job_id).where(between, ~has_events)).scalars().all()
    return list(orphans), ids[-1] if len(ids) == limit else None


def list_removed(connection: Connection, job_ids: Sequence[str]) -> list[str]:
    """Return those of these jobs that are removed by now."""
    return [row[0] for row in sql.run(connection, *sql.among(_REMOVED, job_ids))] if job_ids else []

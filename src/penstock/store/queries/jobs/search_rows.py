"""Search an account's jobs, newest first. A page costs at most a fixed number of rows, however many jobs there are.

The index proposes jobs that have one of the query's words; each is then compared with the whole query. Jobs that are
too new for the index are read from the event log.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection

from penstock.domain.jobs import Job
from penstock.domain.searching.query import SearchQuery, SearchTerm
from penstock.domain.searching.words import job_words
from penstock.store import sql
from penstock.store.queries.jobs import job_rows, search_index_rows

MAX_PORTION: Final = 200
"""Jobs that are read and compared at a time."""
MAX_PORTIONS: Final = 8
"""Portions that are read for one page. After them, the page is short and its cursor continues from there."""
MAX_EXPANSIONS: Final = 48
"""Different words with one beginning, each read in its own order. With more, all jobs are compared."""
MAX_COUNTED: Final = 500
"""Entries that are counted to find the rarest word."""
MAX_NEW: Final = 1000
"""The newest jobs that are found without the index."""
LAST: Final = "~"
"""Sorts after every character of ids and words in ASCII."""

_NEW: Final = (
    "SELECT job_id FROM events WHERE account_id = ? AND position > ? AND sequence = 1 ORDER BY position DESC LIMIT ?"
)
_ENTRIES: Final = "SELECT 1 FROM search_words WHERE account_id = ? AND word IN"
_COUNT: Final = "SELECT COUNT(*) FROM ({} LIMIT ?) AS counted"
_WITH_WORD: Final = (
    "SELECT job_id FROM search_words WHERE account_id = ? AND word = ? AND job_id < ? ORDER BY job_id DESC LIMIT ?"
)
_WITH_ID: Final = "SELECT id AS job_id FROM jobs WHERE account_id = ? AND id >= ? AND id < ? ORDER BY id DESC LIMIT ?"
_NEXT_WORD: Final = "SELECT word FROM search_words WHERE account_id = ? AND word {} AND word < ? ORDER BY word LIMIT 1"
# Jumps from word to word in the index: as many steps as words, however many jobs have each.
_EXPAND: Final = f"""
    WITH RECURSIVE expanded (word, number) AS (
        SELECT ({_NEXT_WORD.format(">= ?")}), 1
        UNION ALL
        SELECT ({_NEXT_WORD.format("> expanded.word")}), number + 1 FROM expanded WHERE word IS NOT NULL AND number <= ?
    )
    SELECT word FROM expanded WHERE word IS NOT NULL
"""  # noqa: S608  constant text


class FoundPage(NamedTuple):
    """A page of jobs, and the id before which the next one begins; None if this is the last."""

    jobs: list[Job]
    next_before: str | None


class _Portion(NamedTuple):
    """Ids of jobs that may match, newest first, and the id before which others may follow."""

    job_ids: Sequence[str]
    next_before: str | None


def search(
    connection: Connection,
    account_id: str,
    query: SearchQuery,
    filters: Mapping[str, Any],
    before: str | None,
    limit: int,
) -> FoundPage:
    """Return a page of the account's jobs that match a query and pass the filters, newest first."""
    words = _choose_words(connection, account_id, query)
    new = _list_new(connection, account_id)
    found: list[Job] = []
    place: str | None = before or LAST
    for number in range(MAX_PORTIONS):
        size = MAX_PORTION if number or len(query.terms) > 1 else min(MAX_PORTION, limit + 1)
        portion = _read_portion(connection, account_id, query, words, place, size)
        since = portion.next_before or ""
        ids = {*portion.job_ids, *(job_id for job_id in new if since <= job_id < place)}
        found += [job for job in job_rows.choose(connection, account_id, filters, sorted(ids)) if _is_match(job, query)]
        if len(found) > limit:
            return FoundPage(found[:limit], found[limit - 1].id)
        place = portion.next_before
        if place is None:
            break
    return FoundPage(found, place)


def _is_match(job: Job, query: SearchQuery) -> bool:
    return query.matches(job.id, job_words(job.params, job.inputs, job.client_ref))


def _list_new(connection: Connection, account_id: str) -> set[str]:
    """Return the jobs that are not in the index yet."""
    indexed = search_index_rows.get_position(connection)
    return {row[0] for row in sql.run(connection, _NEW, account_id, indexed, MAX_NEW)}


def _choose_words(connection: Connection, account_id: str, query: SearchQuery) -> list[str] | None:
    """Return words of which each match has one: those with few entries. None: any job may match."""
    if not query.terms:
        return []
    each = [_expand(connection, account_id, term) if term.is_prefix else [term.text] for term in query.terms]
    choices = [words for words in each if words is not None]
    if len(choices) < 2:
        return choices[0] if choices else None
    counts = [_count(connection, account_id, words) for words in choices]
    return choices[counts.index(min(counts))]


def _count(connection: Connection, account_id: str, words: Sequence[str]) -> int:
    """Return the number of entries of these words, up to a limit."""
    if not words:
        return 0
    statement, *values = sql.among(_ENTRIES, words)
    return sql.run(connection, _COUNT.format(statement), account_id, *values, MAX_COUNTED)[0][0]


def _expand(connection: Connection, account_id: str, term: SearchTerm) -> list[str] | None:
    """Return the account's words that begin like this term, or None if there are too many."""
    end = term.text + "\U0010ffff"
    found = sql.run(connection, _EXPAND, account_id, term.text, end, account_id, end, MAX_EXPANSIONS)
    return None if len(found) > MAX_EXPANSIONS else [row[0] for row in found]


def _read_portion(
    connection: Connection, account_id: str, query: SearchQuery, words: list[str] | None, before: str, size: int
) -> _Portion:
    """Return the newest jobs before an id that have one of these words, or whose id begins like the query."""
    values: list[Any] = []
    if words is None:
        values += [account_id, "", before, size]
    elif query.id_prefix is not None:
        values += [account_id, query.id_prefix, min(before, query.id_prefix + LAST), size]
    by_id = bool(values)
    for word in words or ():
        values += [account_id, word, before, size]
    if not values:
        return _Portion([], None)
    ids = [row[0] for row in sql.run(connection, _union(by_id, len(words or ())), *values, size)]
    return _Portion(ids, ids[-1] if len(ids) == size else None)


@cache
def _union(by_id: bool, words: int) -> str:  # noqa: FBT001  only here
    parts = [_WITH_ID] * by_id + [_WITH_WORD] * words
    each = " UNION ".join(f"SELECT job_id FROM ({part}) AS part_{number}" for number, part in enumerate(parts))  # noqa: S608
    return f"{each} ORDER BY job_id DESC LIMIT ?"

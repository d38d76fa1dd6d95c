"""Queries: words that must all be in a job, or the beginning of its id."""

import re
from dataclasses import dataclass
from typing import Final

from penstock.domain.ids import ALPHABET
from penstock.domain.searching.words import is_unspaced, runs_of

MAX_TERMS: Final = 12
MIN_PREFIX_LENGTH: Final = 2
"""Shorter last words of a query must match a whole word."""
MIN_ID_LENGTH: Final = 8
"""The shortest beginning of an id that is recognised without `job_`: shorter ones are more likely words."""
_ID = re.compile(f"(job_)?([{ALPHABET}]+)")


@dataclass(frozen=True, slots=True)
class SearchTerm:
    """One word of a query: a whole word of the job, or the beginning of one."""

    text: str
    is_prefix: bool = False

    def is_in(self, words: set[str]) -> bool:
        """Return whether a job with these words has this one."""
        if self.text in words or not self.is_prefix:
            return self.text in words
        return any(word.startswith(self.text) for word in words)


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A query: all its terms must match, or the beginning of the job's id."""

    terms: tuple[SearchTerm, ...]
    id_prefix: str | None = None

    def matches(self, job_id: str, words: set[str]) -> bool:
        """Return whether a job with this id and these words is found."""
        if self.id_prefix is not None and job_id.startswith(self.id_prefix):
            return True
        return bool(self.terms) and all(term.is_in(words) for term in self.terms)


def read_query(text: str) -> SearchQuery | None:
    """Return the query that a text asks for, or None if it has no word in it."""
    found = _ID.fullmatch(text.strip().casefold())
    is_id = found is not None and (found[1] is not None or len(found[2]) >= MIN_ID_LENGTH)
    id_prefix = f"job_{found[2]}" if found is not None and is_id else None
    runs = runs_of(text)
    terms = [term for run in runs[:-1] for term in _terms_of(run)]
    if runs:
        terms += _terms_of(runs[-1], is_last=not text[-1:].isspace())
    unique = tuple(dict.fromkeys(terms))[-MAX_TERMS:]
    return SearchQuery(unique, id_prefix) if unique else None


def _terms_of(run: str, *, is_last: bool = False) -> list[SearchTerm]:
    """Return the terms of a run of letters. The last one of a query may be the beginning of a word."""
    if not is_unspaced(run):
        return [SearchTerm(run, is_last and len(run) >= MIN_PREFIX_LENGTH)]
    pairs = [run[place : place + 2] for place in range(len(run) - 1)]
    return [SearchTerm(pair) for pair in pairs] or [SearchTerm(run, is_prefix=True)]

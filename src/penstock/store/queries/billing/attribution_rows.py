"""Usage sums by tag, end user and session: a bounded number of values a day, and everything else together."""

from collections.abc import Mapping, Sequence
from operator import add as add_up
from typing import Final, Literal, NamedTuple, TypeAlias

from sqlalchemy import Connection

from penstock.domain.attribution.labels import Attribution
from penstock.store import sql
from penstock.store.queries.billing.attribution_tables import attribution_days

MAX_DAILY_VALUES: Final = 1_000
"""Values of a dimension that an account may have in a day with sums of their own.

A year of an account that always reaches it is about a million rows, and a report reads a month of them in well
below a second. More are counted together: nobody looks at the thousandth user of a day.
"""
VALUES_AT_ONCE: Final = 1_000
"""Values that one statement looks for."""
VALUE, OTHER, ANY = "value", "other", "any"
"""The parts of a dimension: one value; all values beyond the limit; all requests with a tag, each counted once."""
Kind: TypeAlias = Literal["chat", "job"]
DimensionName: TypeAlias = Literal["tag", "end_user", "session"]

_COUNT: Final = """
    INSERT INTO attribution_counts (account_id, dimension, day, number) VALUES (?, ?, ?, ?)
    ON CONFLICT (account_id, dimension, day) DO UPDATE SET number = attribution_counts.number + excluded.number
    RETURNING number
"""
_KNOWN: Final = (
    "SELECT DISTINCT value FROM attribution_days WHERE account_id = ? AND dimension = ? AND part = 'value' AND day = ? "
    "AND value IN"
)


class PartKey(NamedTuple):
    """The key of a usage sum of one dimension, in the order of the table's columns."""

    account_id: str
    dimension: str
    part: str
    day: int
    """Days since 1970-01-01, UTC."""
    value: str
    model: str
    vendor: str
    key_id: str
    kind: Kind


class _Scope(NamedTuple):
    """The place whose values are bounded together."""

    account_id: str
    dimension: str
    day: int


Parts: TypeAlias = Mapping[PartKey, tuple[int, ...]]
"""Sums to add, in the order of the table's columns."""


def split(
    attribution: Attribution, account_id: str, day: int, model: str, vendor: str, key_id: str, kind: Kind
) -> list[PartKey]:
    """Return the keys of all sums that a request with this attribution counts in."""
    rest = day, model, vendor, key_id, kind
    found = [_key(account_id, "tag", VALUE, tag, *rest) for tag in attribution.tags]
    if found:
        found.append(_key(account_id, "tag", ANY, "", *rest))
    if attribution.end_user:
        found.append(_key(account_id, "end_user", VALUE, attribution.end_user, *rest))
    if attribution.session:
        found.append(_key(account_id, "session", VALUE, attribution.session, *rest))
    return found


def _key(
    account_id: str,
    dimension: DimensionName,
    part: str,
    value: str,
    day: int,
    model: str,
    vendor: str,
    key_id: str,
    kind: Kind,
) -> PartKey:
    return PartKey(account_id, dimension, part, day, value, model, vendor, key_id, kind)


# -- adding


_NAMES = tuple(attribution_days.columns.keys())
_SUMS = _NAMES[len(PartKey._fields) :]
_ADDITION: Final = (
    f"INSERT INTO attribution_days ({', '.join(_NAMES)}) VALUES ({', '.join('?' * len(_NAMES))}) "  # noqa: S608  names of our own
    f"ON CONFLICT ({', '.join(PartKey._fields)}) DO UPDATE SET "
    + ", ".join(f"{name} = attribution_days.{name} + excluded.{name}" for name in _SUMS)
)


def add(connection: Connection, parts: Parts) -> None:
    """Add to the sums. Values beyond the limit of their day are added to those of all others."""
    if not parts:
        return
    known = _admit(connection, parts)
    added: dict[PartKey, tuple[int, ...]] = {}
    for place, sums in parts.items():
        if place.part == VALUE and place.value not in known[_scope(place)]:
            place = place._replace(part=OTHER, value="")  # noqa: PLW2901  it counts as one of the others
        before = added.get(place)
        added[place] = sums if before is None else tuple(map(add_up, before, sums))
    # Always in one order, and after the counts: so two writers never deadlock.
    sql.run_many(connection, _ADDITION, [(*place, *sums) for place, sums in sorted(added.items())])


def _admit(connection: Connection, parts: Parts) -> dict[_Scope, set[str]]:
    """Return the values that have sums of their own, new ones included as far as the limit allows."""
    costs: dict[_Scope, dict[str, int]] = {}
    for place, sums in parts.items():
        if place.part == VALUE:
            of_scope = costs.setdefault(_scope(place), {})
            of_scope[place.value] = of_scope.get(place.value, 0) + sums[-1]
    known = {scope: _find(connection, scope, list(values)) for scope, values in costs.items()}
    for scope in sorted(costs):
        missing = costs[scope].keys() - known[scope]
        if missing:  # the dearest come first
            wanted = sorted(missing, key=lambda value: (-costs[scope][value], value))
            known[scope] |= _admit_new(connection, scope, wanted)
    return known


def _admit_new(connection: Connection, scope: _Scope, values: Sequence[str]) -> set[str]:
    """Admit new values under the lock of their count: other writers may be adding some, too."""
    number = sql.run(connection, _COUNT, *scope, 0)[0][0]
    found = _find(connection, scope, values)
    new = [value for value in values if value not in found][: max(0, MAX_DAILY_VALUES - number)]
    if new:
        sql.run(connection, _COUNT, *scope, len(new))
    return found.union(new)


def _find(connection: Connection, scope: _Scope, values: Sequence[str]) -> set[str]:
    """Return those of the values that have sums already."""
    found: set[str] = set()
    for start in range(0, len(values), VALUES_AT_ONCE):
        marks, *padded = sql.among("", values[start : start + VALUES_AT_ONCE])
        found.update(row[0] for row in sql.run(connection, _KNOWN + marks, *scope, *padded))
    return found


def _scope(place: PartKey) -> _Scope:
    return _Scope(place.account_id, place.dimension, place.day)

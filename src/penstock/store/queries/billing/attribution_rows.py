"""Usage sums by tag, end user and session: a bounded number of values a day, and everything else together."""

from collections.abc import Collection, Mapping, Sequence
from operator import add as add_up
from typing import Final, Literal, NamedTuple, TypeAlias

from sqlalchemy import Connection, select, tuple_

from penstock.domain.attribution.labels import Attribution, Dimension
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

_COUNT: Final = """
    INSERT INTO attribution_counts (account_id, day, dimension, number) VALUES (?, ?, ?, ?)
    ON CONFLICT (account_id, day, dimension) DO UPDATE SET number = attribution_counts.number + excluded.number
    RETURNING number
"""


class PartKey(NamedTuple):
    """The key of a usage sum of one dimension, in the order of the table's columns."""

    account_id: str
    day: int
    """Days since 1970-01-01, UTC."""
    dimension: str
    part: str
    value: str
    model: str
    vendor: str
    key_id: str
    kind: Kind


class _Scope(NamedTuple):
    """The place whose values are bounded together."""

    account_id: str
    day: int
    dimension: str


Parts: TypeAlias = Mapping[PartKey, tuple[int, ...]]
"""Sums to add, in the order of the table's columns."""


def split(
    attribution: Attribution, account_id: str, day: int, model: str, vendor: str, key_id: str, kind: Kind
) -> list[PartKey]:
    """Return the keys of all sums that a request with this attribution counts in."""
    found: list[tuple[str, str, str]] = [(Dimension.TAG, VALUE, tag) for tag in attribution.tags]
    if found:
        found.append((Dimension.TAG, ANY, ""))
    if attribution.end_user:
        found.append((Dimension.END_USER, VALUE, attribution.end_user))
    if attribution.session:
        found.append((Dimension.SESSION, VALUE, attribution.session))
    return [PartKey(account_id, day, str(each[0]), *each[1:], model, vendor, key_id, kind) for each in found]


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
        if place.part == VALUE and (_scope(place), place.value) not in known:
            place = place._replace(part=OTHER, value="")  # noqa: PLW2901  it counts as one of the others
        before = added.get(place)
        added[place] = sums if before is None else tuple(map(add_up, before, sums))
    # Always in one order, and after the counts: so two writers never deadlock.
    sql.run_many(connection, _ADDITION, [(*place, *sums) for place, sums in sorted(added.items())])


def _admit(connection: Connection, parts: Parts) -> set[tuple[_Scope, str]]:
    """Return the values that have sums of their own, new ones included as far as the limit allows."""
    costs: dict[tuple[_Scope, str], int] = {}
    for place, sums in parts.items():
        if place.part == VALUE:
            value = _scope(place), place.value
            costs[value] = costs.get(value, 0) + sums[-1]
    known = _find(connection, costs)
    missing: dict[_Scope, list[str]] = {}
    for scope, value in sorted(costs.keys() - known, key=lambda each: (-costs[each], each)):  # the dearest come first
        missing.setdefault(scope, []).append(value)
    for scope in sorted(missing):
        known |= _admit_new(connection, scope, missing[scope])
    return known


def _admit_new(connection: Connection, scope: _Scope, values: Sequence[str]) -> set[tuple[_Scope, str]]:
    """Admit new values under the lock of their count: other writers may be adding some, too."""
    number = sql.run(connection, _COUNT, *scope, 0)[0][0]
    found = _find(connection, [(scope, value) for value in values])
    new = [value for value in values if (scope, value) not in found][: max(0, MAX_DAILY_VALUES - number)]
    if new:
        sql.run(connection, _COUNT, *scope, len(new))
    return found | {(scope, value) for value in new}


def _find(connection: Connection, wanted: Collection[tuple[_Scope, str]]) -> set[tuple[_Scope, str]]:
    """Return those of the values that have sums already."""
    table = attribution_days.c
    columns = (table.account_id, table.day, table.dimension, table.part, table.value)
    listed = [(*scope, VALUE, value) for scope, value in wanted]
    found: set[tuple[_Scope, str]] = set()
    for start in range(0, len(listed), VALUES_AT_ONCE):
        some = listed[start : start + VALUES_AT_ONCE]
        rows = connection.execute(select(*columns).where(tuple_(*columns).in_(some)).distinct())
        found.update((_Scope(*row[:3]), row[4]) for row in rows)
    return found


def _scope(place: PartKey) -> _Scope:
    return _Scope(place.account_id, place.day, place.dimension)

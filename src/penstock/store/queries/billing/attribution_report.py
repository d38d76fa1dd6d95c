"""Reports by tag, end user or session: the values with the highest costs, all others, and requests without one."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from operator import sub
from typing import Any, Final, NamedTuple

from sqlalchemy import BigInteger, ColumnElement, Connection, cast, func, null, select

from penstock.store.queries.billing import usage_rows
from penstock.store.queries.billing.attribution_rows import ANY, OTHER, VALUE
from penstock.store.queries.billing.attribution_tables import attribution_days
from penstock.store.queries.billing.usage_rows import (
    COLUMNS,
    EPOCH,
    Group,
    Totals,
    UsageLine,
    counted,
    month_of,
    names_of,
    total,
    with_names,
    write_days,
)

DIMENSIONS: Final = (Group.TAG, Group.END_USER, Group.SESSION)
NONE: Final = "none"
"""The part of requests without a value."""
_TABLE: Final = attribution_days


class UsageReport(NamedTuple):
    """The lines of a report, and the sum of all requests in it, each counted once."""

    lines: Sequence[UsageLine]
    total: Totals


class UsageQuery(NamedTuple):
    """The parameters of a report."""

    account_id: str | None
    """None: all accounts."""
    first: date
    last: date
    by: Sequence[Group]
    filters: Mapping[Group, str]
    top: int
    """The number of values with lines of their own."""


def report(connection: Connection, query: UsageQuery, limit: int) -> UsageReport:
    """Return the usage of these days, grouped. At most one of the three dimensions may be in it."""
    dimension = next((each for each in DIMENSIONS if each in query.by or each in query.filters), None)
    if dimension is None:
        lines = _report_plain(connection, query, query.by, limit)
        return UsageReport(lines, total(lines))
    others = [group for group in query.by if group is not dimension]
    plain = query._replace(filters={each: value for each, value in query.filters.items() if each is not dimension})
    where = _where(plain, dimension)
    if dimension in query.filters:
        value = query.filters[dimension]
        lines = _sum_up(connection, others, [*where, _TABLE.c.part == VALUE, _TABLE.c.value == value], limit)
        found = [_place(query.by, line, dimension, value, VALUE) for line in lines]
        return UsageReport(found, total(lines))
    everything = _report_plain(connection, plain, others, limit)
    if len(everything) >= limit:  # too many lines for a report
        return UsageReport(everything, Totals())
    top = _find_top(connection, where, query.top)
    shown = _read(connection, others, [*where, _TABLE.c.part == VALUE, _TABLE.c.value.in_(top)], limit, _TABLE.c.value)
    found = [_place(query.by, line, dimension, value or "", VALUE) for value, line in shown]
    attributed = _sum_up(connection, others, [*where, _TABLE.c.part != ANY], limit)
    found += _subtract(query.by, dimension, attributed, [line for _, line in shown], (OTHER, OTHER))
    if dimension is Group.TAG:
        attributed = _sum_up(connection, others, [*where, _TABLE.c.part == ANY], limit)
    found += _subtract(query.by, dimension, everything, attributed, ("", NONE))
    rank = {value: place for place, value in enumerate(top)}
    return UsageReport(sorted(found, key=lambda line: _order(line, query.by, dimension, rank)), total(everything))


def _report_plain(connection: Connection, query: UsageQuery, by: Sequence[Group], limit: int) -> list[UsageLine]:
    days = query.first, query.last
    return usage_rows.report(connection, query.account_id, *days, by, query.filters, limit)


def _where(query: UsageQuery, dimension: Group) -> list[ColumnElement[bool]]:
    table = _TABLE.c
    where = [table.day.between((query.first - EPOCH).days, (query.last - EPOCH).days)]
    where += [] if query.account_id is None else [table.account_id == query.account_id]
    where += [table[COLUMNS[group]] == value for group, value in query.filters.items()]
    return [*where, table.dimension == dimension.value]


def _find_top(connection: Connection, where: Sequence[ColumnElement[bool]], top: int) -> list[str]:
    """Return the values with the highest costs of all the days, the highest first."""
    value, requests, cost = _TABLE.c.value, func.sum(_TABLE.c.requests), func.sum(_TABLE.c.cost)
    query = select(value).where(*where, _TABLE.c.part == VALUE).group_by(value)
    return list(connection.execute(query.order_by(cost.desc(), requests.desc(), value).limit(top)).scalars())


def _subtract(
    by: Sequence[Group],
    dimension: Group,
    whole: Sequence[UsageLine],
    parts: Sequence[UsageLine],
    named: tuple[str, str],
) -> Iterator[UsageLine]:
    """Yield what is left of each line of the whole without its parts, with this value and this part."""
    left = {tuple(line.about.items()): line.totals for line in whole}
    for line in parts:
        place = tuple(line.about.items())
        left[place] = Totals(*map(sub, left.get(place, Totals()), line.totals))
    for place, totals in left.items():
        if any(totals):
            yield _place(by, UsageLine(dict(place), totals), dimension, *named)


def _sum_up(
    connection: Connection, by: Sequence[Group], where: Sequence[ColumnElement[bool]], limit: int
) -> list[UsageLine]:
    return [line for _, line in _read(connection, by, where, limit, null()) if any(line.totals)]


def _read(
    connection: Connection,
    by: Sequence[Group],
    where: Sequence[ColumnElement[bool]],
    limit: int,
    shown: ColumnElement[Any],
) -> list[tuple[str | None, UsageLine]]:
    """Return the sums of these groups and of `shown`, which the lines do not name."""
    month = [month_of(connection, _TABLE, where).label("month")] if Group.MONTH in by else []
    rows = select(*_TABLE.c, shown.label("shown"), *month).where(*where).subquery()
    groups = [rows.c[group.value if group is Group.MONTH else COLUMNS[group]].label(group.value) for group in by]
    # PostgreSQL would sum up to decimals.
    sums = [cast(func.coalesce(func.sum(each), 0), BigInteger).label(name) for name, each in counted(rows).items()]
    query: Any = select(*groups, *sums, rows.c.shown).group_by(*groups, rows.c.shown).limit(limit)
    names = [name for group in by for name in names_of(group)]
    found = connection.execute(with_names(query, by, "shown")).all()
    lines = [UsageLine(dict(zip(names, row, strict=False)), Totals(*row[len(names) : -1])) for row in found]
    lines = write_days(lines) if Group.DAY in by else lines
    return [(row[-1], line) for row, line in zip(found, lines, strict=True)]


def _place(by: Sequence[Group], line: UsageLine, dimension: Group, value: str, part: str) -> UsageLine:
    """Return the line with the value in the order of the groups."""
    about: dict[str, str] = {}
    for group in by:
        if group is dimension:
            about |= dict(zip(names_of(group), (value, part), strict=True))
        else:
            about |= {name: line.about[name] for name in names_of(group)}
    return UsageLine(about, line.totals)


def _order(line: UsageLine, by: Sequence[Group], dimension: Group, rank: Mapping[str, int]) -> tuple[Any, ...]:
    """Return the place of a line: the dearest values first, then all others, then requests without one."""
    part = line.about[f"{dimension.value}_part"]
    place = {OTHER: len(rank), NONE: len(rank) + 1}.get(part)
    own = rank[line.about[dimension.value]] if place is None else place
    return tuple(own if group is dimension else line.about[names_of(group)[0]] for group in by)

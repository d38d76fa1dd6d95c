"""Usage sums by account, UTC day, model, vendor, key and kind: updated with every record, and reported."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from enum import StrEnum
from functools import cache
from operator import add as add_up
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    FromClause,
    Select,
    String,
    Table,
    case,
    cast,
    func,
    literal,
    select,
)

from penstock.domain.attribution.labels import Attribution
from penstock.domain.jobs import Job, State
from penstock.domain.usage import ChatOutcome, Completion
from penstock.store import sql
from penstock.store.queries.billing import attribution_rows
from penstock.store.queries.billing.attribution_rows import Kind, PartKey
from penstock.store.sql import Statement
from penstock.store.tables import accounts, keys, usage_days, usage_key_days, usage_model_days

DAY_SECONDS: Final = 86_400
EPOCH: Final = date(1970, 1, 1)
FAILED_OUTCOMES: Final = frozenset((ChatOutcome.FAILED, ChatOutcome.CUT))
TABLES: Final = (usage_key_days, usage_model_days, usage_days)
"""From few rows to many: a report reads the first table that has all columns it needs."""


class UsageKey(NamedTuple):
    """The key of a usage sum."""

    account_id: str
    day: int
    """Days since 1970-01-01, UTC."""
    model: str
    vendor: str
    key_id: str
    kind: Kind


class Sums(NamedTuple):
    """The sums of a row. The cost is in 10⁻⁹ USD."""

    requests: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    estimated: int = 0
    unpriced: int = 0
    cost: int = 0


Additions: TypeAlias = Mapping[UsageKey | PartKey, Sums]
"""Amounts to add to the sums, made by `of_completions`, `of_job` and `refund`."""


# -- amounts to add


def of_completions(records: Sequence[Completion], charged: Mapping[str, int] | None = None) -> Additions:
    """Return what chat requests add. `charged` has, by id, the amounts below the records' costs."""
    found: dict[UsageKey | PartKey, list[int]] = {}
    for record in records:
        account_id, key_id = record.account_id, record.key_id
        place = UsageKey(account_id, day_of(record.created_at), record.model, record.vendor, key_id, "chat")
        _count(found, place, record, charged)
        if record.attribution is not None:
            for part in _split(place, record.attribution):
                _count(found, part, record, charged)
    return {place: Sums(*sums) for place, sums in found.items()}


def _count(
    found: dict[UsageKey | PartKey, list[int]],
    place: UsageKey | PartKey,
    record: Completion,
    charged: Mapping[str, int] | None,
) -> None:
    sums = found.get(place)
    if sums is None:
        sums = found[place] = [0] * len(Sums._fields)
    usage, cost = record.usage, record.cost
    sums[0] += 1
    sums[1] += record.outcome in FAILED_OUTCOMES
    sums[2] += usage.prompt
    sums[3] += usage.completion
    sums[4] += usage.cached
    sums[5] += usage.cache_writes
    sums[6] += usage.reasoning
    sums[7] += usage.estimated
    sums[8] += cost is None
    sums[9] += charged.get(record.id, cost or 0) if charged else cost or 0


def of_job(job: Job, charged: int | None = None) -> Additions:
    """Return what a finished job adds, on the day it was accepted. `charged` is set where it is below the cost."""
    sums = Sums(
        requests=1,
        failed=int(job.state in (State.FAILED, State.EXPIRED)),
        unpriced=int(job.final is None),
        cost=(job.final or 0) if charged is None else charged,
    )
    return _everywhere(job, sums)


def refund(subject: Completion | Job, amount: int) -> Additions:
    """Return what a refund changes: the cost, on the day of the original charge."""
    return _everywhere(subject, Sums(cost=-amount))


def join(parts: Sequence[Additions]) -> Additions:
    """Return the sums of several additions. Added at once, they cannot deadlock with those of other writers."""
    if len(parts) == 1:
        return parts[0]
    found: dict[UsageKey | PartKey, Sums] = {}
    for place, sums in (each for part in parts for each in part.items()):
        found[place] = Sums(*map(add_up, found.get(place, Sums()), sums))
    return found


def day_of(moment: float) -> int:
    """Return the UTC day of a moment, counted from 1970-01-01."""
    return int(moment // DAY_SECONDS)


def _everywhere(subject: Completion | Job, sums: Sums) -> Additions:
    """Return these sums for every place that a request counts in."""
    kind: Kind = "job" if isinstance(subject, Job) else "chat"
    day = day_of(subject.created_at)
    place = UsageKey(subject.account_id, day, subject.model, subject.vendor, subject.key_id, kind)
    found: dict[UsageKey | PartKey, Sums] = {place: sums}
    if subject.attribution is not None:
        found |= dict.fromkeys(_split(place, subject.attribution), sums)
    return found


def _split(place: UsageKey, attribution: Attribution) -> list[PartKey]:
    account_id, day, model, vendor, key_id, kind = place
    return attribution_rows.split(attribution, account_id, day, model, vendor, key_id, kind)


# -- adding


@cache
def _addition(table: Table) -> str:
    """Return a statement that adds a row to the existing sums, for SQLite and PostgreSQL."""
    names = [column.name for column in table.columns]
    return (
        f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))}) "  # noqa: S608
        f"ON CONFLICT ({', '.join(table.primary_key.columns.keys())}) DO UPDATE SET "
        + ", ".join(f"{name} = {table.name}.{name} + excluded.{name}" for name in Sums._fields)
    )


_KEYS = {table: attrgetter(*table.primary_key.columns.keys()) for table in TABLES}


def add(connection: Connection, additions: Additions) -> None:
    """Add to the sums. The caller makes sure that each record is added once."""
    places = {place: sums for place, sums in additions.items() if isinstance(place, UsageKey)}
    single: list[Statement] = []
    for table in TABLES if places else ():
        key_of = _KEYS[table]
        coarse: dict[tuple[str | int, ...], tuple[int, ...]] = {}
        for place, sums in places.items():
            key = key_of(place)
            before = coarse.get(key)
            coarse[key] = sums if before is None else tuple(map(add_up, before, sums))
        # Always in one order: so two writers never deadlock.
        rows = [(*key, *sums) for key, sums in sorted(coarse.items())]
        if len(places) == 1:
            single.append(Statement(_addition(table), rows[0]))
        else:
            sql.run_many(connection, _addition(table), rows)
    if single:
        sql.do_all(connection, *single)
    if len(places) < len(additions):
        parts = {place: sums for place, sums in additions.items() if isinstance(place, PartKey)}
        attribution_rows.add(connection, parts)


# -- reporting


class Group(StrEnum):
    """Columns by which a report can group."""

    DAY = "day"
    MONTH = "month"
    MODEL = "model"
    KEY = "key"
    VENDOR = "vendor"
    KIND = "kind"
    ACCOUNT = "account"
    TAG = "tag"
    END_USER = "end_user"
    SESSION = "session"


class Totals(NamedTuple):
    """Usage totals. The cost is in 10⁻⁹ USD."""

    requests: int = 0
    """Chat requests."""
    jobs: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    estimated: int = 0
    unpriced: int = 0
    cost: int = 0


class UsageLine(NamedTuple):
    """One line of a report: its group, and the totals."""

    about: Mapping[str, str]
    """The values of the groups by name, in the order of `names_of`."""
    totals: Totals


COLUMNS: Final[Mapping[Group, str]] = {
    Group.DAY: "day",
    Group.MODEL: "model",
    Group.KEY: "key_id",
    Group.VENDOR: "vendor",
    Group.KIND: "kind",
    Group.ACCOUNT: "account_id",
}


def report(
    connection: Connection,
    account_id: str | None,
    first: date,
    last: date,
    by: Sequence[Group],
    filters: Mapping[Group, str],
    limit: int,
) -> list[UsageLine]:
    """Return the usage from the first to the last day, grouped. Without an account, it covers all of them."""
    table = _smallest({COLUMNS[group] for group in (*by, *filters) if group is not Group.MONTH})
    where = [table.c.day.between((first - EPOCH).days, (last - EPOCH).days)]
    where += [] if account_id is None else [table.c.account_id == account_id]
    where += [table.c[COLUMNS[group]] == value for group, value in filters.items()]
    groups = [
        (month_of(connection, table, where) if group is Group.MONTH else table.c[COLUMNS[group]]).label(group.value)
        for group in by
    ]
    # PostgreSQL would sum up to decimals.
    sums = [cast(func.coalesce(func.sum(each), 0), BigInteger).label(name) for name, each in counted(table).items()]
    found = select(*groups, *sums).where(*where).group_by(*groups).order_by(*groups).limit(limit)
    names = [name for group in by for name in names_of(group)]
    rows = connection.execute(with_names(found, by)).all()
    lines = [UsageLine(dict(zip(names, row, strict=False)), Totals(*row[len(names) :])) for row in rows]
    return write_days(lines) if Group.DAY in by else lines


def total(lines: Sequence[UsageLine]) -> Totals:
    """Return the sum of all lines."""
    return Totals(*map(sum, zip(*(line.totals for line in lines), strict=True))) if lines else Totals()


def names_of(group: Group) -> tuple[str, ...]:
    """Return the names of a group's values. Keys and accounts can be renamed, so that their ids are included."""
    match group:
        case Group.KEY:
            return "key", "key_name"
        case Group.ACCOUNT:
            return "account", "account_id"
        case Group.TAG | Group.END_USER | Group.SESSION:
            return group.value, f"{group.value}_part"
        case _:
            return (group.value,)


def _smallest(columns: set[str]) -> Table:
    return next(table for table in TABLES if columns <= set(table.columns.keys()))


def counted(table: FromClause) -> Mapping[str, ColumnElement[int]]:
    """Return the summed columns by their names in a report."""
    of_chat = case((table.c.kind == "chat", table.c.requests), else_=0)
    of_jobs = case((table.c.kind == "job", table.c.requests), else_=0)
    return {"requests": of_chat, "jobs": of_jobs} | {name: table.c[name] for name in Totals._fields[2:]}


def month_of(connection: Connection, table: Table, where: Sequence[ColumnElement[bool]]) -> ColumnElement[str]:
    """Return an expression for the month of a row. The databases have no common function, but both compare days."""
    first = connection.execute(select(func.min(table.c.day)).where(*where)).scalar()
    last = connection.execute(select(func.max(table.c.day)).where(*where)).scalar()
    if first is None or last is None:
        return cast(table.c.day, String)  # there is no row
    months: list[tuple[ColumnElement[bool], ColumnElement[str]]] = []
    begins, ends = EPOCH + timedelta(first), EPOCH + timedelta(last)
    while begins <= ends:
        after = (begins.replace(day=1) + timedelta(31)).replace(day=1)
        # As literals: two parameters of equal value would be different groups.
        is_before = table.c.day < literal((after - EPOCH).days, literal_execute=True)
        months.append((is_before, literal(begins.isoformat()[:7], literal_execute=True)))
        begins = after
    return case(*months)


def with_names(found: Select[Any], by: Sequence[Group], *more: str) -> Select[Any]:
    """Return the rows with the names of their keys and accounts. Deleted ones have no name. `more` columns are last."""
    rows = found.subquery()
    about: list[ColumnElement[Any]] = []
    source: FromClause = rows
    for group in by:
        match group:
            case Group.KEY:
                source = source.outerjoin(keys, keys.c.public_id == rows.c.key)
                about += [rows.c.key, func.coalesce(keys.c.name, "")]
            case Group.ACCOUNT:
                source = source.outerjoin(accounts, accounts.c.id == rows.c.account)
                about += [func.coalesce(accounts.c.name, ""), rows.c.account]
            case _:
                about.append(rows.c[group.value])
    order = [rows.c[group.value] for group in by]
    columns = [rows.c[name] for name in (*Totals._fields, *more)]
    return select(*about, *columns).select_from(source).order_by(*order)


def write_days(lines: Sequence[UsageLine]) -> list[UsageLine]:
    """Return the lines with their days as ISO dates. Each date is computed once."""
    known: dict[Any, str] = {}
    for day in {line.about["day"] for line in lines}:
        known[day] = (EPOCH + timedelta(int(day))).isoformat()
    return [UsageLine({**line.about, "day": known[line.about["day"]]}, line.totals) for line in lines]

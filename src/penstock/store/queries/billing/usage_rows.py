"""Sums of what was used, by account, UTC day, model, vendor, key and kind: kept up with every record, and reported."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from enum import StrEnum
from functools import cache
from operator import add as add_up
from operator import attrgetter
from typing import Any, Final, Literal, NamedTuple, TypeAlias

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

from penstock.domain.jobs import Job, State
from penstock.domain.usage import ChatOutcome, Completion
from penstock.store import sql
from penstock.store.sql import Statement
from penstock.store.tables import accounts, keys, usage_days, usage_key_days, usage_model_days

DAY_SECONDS: Final = 86_400
EPOCH: Final = date(1970, 1, 1)
FAILED: Final = frozenset((ChatOutcome.FAILED, ChatOutcome.CUT))
TABLES: Final = (usage_key_days, usage_model_days, usage_days)
"""From few rows to many: a report reads the first that tells apart what it asks for."""
Kind: TypeAlias = Literal["chat", "job"]


class UsageKey(NamedTuple):
    """What is summed up together: the key of a row."""

    account_id: str
    day: int
    """Since 1970-01-01, UTC."""
    model: str
    vendor: str
    key_id: str
    kind: Kind


class Sums(NamedTuple):
    """What is summed up; the cost in 10⁻⁹ USD."""

    requests: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    estimated: int = 0
    unpriced: int = 0
    cost: int = 0


Additions: TypeAlias = Mapping[UsageKey, Sums]
"""What is to be added to the rows; made by `of_completions`, `of_job` and `refund`."""


# -- what records add


def of_completions(records: Sequence[Completion], charged: Mapping[str, int] | None = None) -> Additions:
    """What chat requests add; `charged` tells, by id, the amounts that are less than the records' costs."""
    found: dict[UsageKey, list[int]] = {}
    for record in records:
        account_id, key_id = record.account_id, record.key_id
        place = UsageKey(account_id, day_of(record.created_at), record.model, record.vendor, key_id, "chat")
        sums = found.get(place)
        if sums is None:
            sums = found[place] = [0] * len(Sums._fields)
        usage, cost = record.usage, record.cost
        sums[0] += 1
        sums[1] += record.outcome in FAILED
        sums[2] += usage.prompt
        sums[3] += usage.completion
        sums[4] += usage.cached
        sums[5] += usage.reasoning
        sums[6] += usage.estimated
        sums[7] += cost is None
        sums[8] += charged.get(record.id, cost or 0) if charged else cost or 0
    return {place: Sums(*sums) for place, sums in found.items()}


def of_job(job: Job, charged: int | None = None) -> Additions:
    """What a finished job adds, on the day it was accepted; `charged` where that is less than it cost."""
    sums = Sums(
        requests=1,
        failed=int(job.state is not State.SUCCEEDED),
        unpriced=int(job.final is None),
        cost=(job.final or 0) if charged is None else charged,
    )
    return {_place(job): sums}


def refund(subject: Completion | Job, amount: int) -> Additions:
    """What giving back an amount changes: the cost, on the day of what it was paid for."""
    return {_place(subject): Sums(cost=-amount)}


def day_of(moment: float) -> int:
    """The UTC day of a moment, counted from 1970-01-01."""
    return int(moment // DAY_SECONDS)


def _place(subject: Completion | Job) -> UsageKey:
    kind: Kind = "job" if isinstance(subject, Job) else "chat"
    day = day_of(subject.created_at)
    return UsageKey(subject.account_id, day, subject.model, subject.vendor, subject.key_id, kind)


# -- adding


@cache
def _words(table: Table) -> str:
    """Adds a row to what is there, in SQLite and PostgreSQL."""
    names = [column.name for column in table.columns]
    return (
        f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))}) "  # noqa: S608
        f"ON CONFLICT ({', '.join(table.primary_key.columns.keys())}) DO UPDATE SET "
        + ", ".join(f"{name} = {table.name}.{name} + excluded.{name}" for name in Sums._fields)
    )


_KEYS = {table: attrgetter(*table.primary_key.columns.keys()) for table in TABLES}


def add(connection: Connection, additions: Additions) -> None:
    """Add to the sums; the caller sees to it that each record is added once."""
    single: list[Statement] = []
    for table in TABLES if additions else ():
        key_of = _KEYS[table]
        coarse: dict[tuple[str | int, ...], tuple[int, ...]] = {}
        for place, sums in additions.items():
            key = key_of(place)
            before = coarse.get(key)
            coarse[key] = sums if before is None else tuple(map(add_up, before, sums))
        # Always in the same order: so two writers never wait for each other in a ring.
        rows = [(*key, *sums) for key, sums in sorted(coarse.items())]
        if len(additions) == 1:
            single.append(Statement(_words(table), rows[0]))
        else:
            sql.run_many(connection, _words(table), rows)
    if single:
        sql.do_all(connection, *single)


# -- reporting


class Group(StrEnum):
    """What a report can tell apart."""

    DAY = "day"
    MONTH = "month"
    MODEL = "model"
    KEY = "key"
    VENDOR = "vendor"
    KIND = "kind"
    ACCOUNT = "account"


class Totals(NamedTuple):
    """What was used; the cost in 10⁻⁹ USD."""

    requests: int = 0
    """Chat requests."""
    jobs: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    estimated: int = 0
    unpriced: int = 0
    cost: int = 0


class UsageLine(NamedTuple):
    """One line of a report: what it is about, and what was used."""

    about: Mapping[str, str]
    """By name, in the order of the report's groups, as in `names_of`."""
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
    """What was used from the first to the last day, in groups; without an account, of all of them."""
    table = _smallest({COLUMNS[group] for group in (*by, *filters) if group is not Group.MONTH})
    where = [table.c.day.between((first - EPOCH).days, (last - EPOCH).days)]
    where += [] if account_id is None else [table.c.account_id == account_id]
    where += [table.c[COLUMNS[group]] == value for group, value in filters.items()]
    groups = [
        (_month(connection, table, where) if group is Group.MONTH else table.c[COLUMNS[group]]).label(group.value)
        for group in by
    ]
    # PostgreSQL would sum up to decimals.
    sums = [cast(func.sum(counted), BigInteger).label(name) for name, counted in _counted(table).items()]
    found = select(*groups, *sums).where(*where).group_by(*groups).order_by(*groups).limit(limit)
    names = [name for group in by for name in names_of(group)]
    rows = connection.execute(_name(found, by)).all()
    lines = [UsageLine(dict(zip(names, row, strict=False)), Totals(*row[len(names) :])) for row in rows]
    return _write_days(lines) if Group.DAY in by else lines


def total(lines: Sequence[UsageLine]) -> Totals:
    """All lines together."""
    return Totals(*map(sum, zip(*(line.totals for line in lines), strict=True))) if lines else Totals()


def names_of(group: Group) -> tuple[str, ...]:
    """The names of what tells lines of a group apart: of keys and accounts, which can be renamed, also their ids."""
    match group:
        case Group.KEY:
            return "key", "key_name"
        case Group.ACCOUNT:
            return "account", "account_id"
        case _:
            return (group.value,)


def _smallest(columns: set[str]) -> Table:
    return next(table for table in TABLES if columns <= set(table.columns.keys()))


def _counted(table: Table) -> Mapping[str, ColumnElement[int]]:
    """What is summed up, by its name in a report."""
    of_chat = case((table.c.kind == "chat", table.c.requests), else_=0)
    of_jobs = case((table.c.kind == "job", table.c.requests), else_=0)
    return {"requests": of_chat, "jobs": of_jobs} | {name: table.c[name] for name in Totals._fields[2:]}


def _month(connection: Connection, table: Table, where: Sequence[ColumnElement[bool]]) -> ColumnElement[str]:
    """The month of a row. No two databases have the same words for it, but all can compare days."""
    first = connection.execute(select(func.min(table.c.day)).where(*where)).scalar()
    last = connection.execute(select(func.max(table.c.day)).where(*where)).scalar()
    if first is None or last is None:
        return cast(table.c.day, String)  # there is no row
    months: list[tuple[ColumnElement[bool], ColumnElement[str]]] = []
    begins, ends = EPOCH + timedelta(first), EPOCH + timedelta(last)
    while begins <= ends:
        after = (begins.replace(day=1) + timedelta(31)).replace(day=1)
        # Written out, as two parameters of the same value are not the same group.
        is_before = table.c.day < literal((after - EPOCH).days, literal_execute=True)
        months.append((is_before, literal(begins.isoformat()[:7], literal_execute=True)))
        begins = after
    return case(*months)


def _name(found: Select[Any], by: Sequence[Group]) -> Select[Any]:
    """The same rows with the names of their keys and accounts; those that are gone have none."""
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
    return select(*about, *(rows.c[name] for name in Totals._fields)).select_from(source).order_by(*order)


def _write_days(lines: Sequence[UsageLine]) -> list[UsageLine]:
    """With days as people write them; each is worked out once."""
    known: dict[Any, str] = {}
    for day in {line.about["day"] for line in lines}:
        known[day] = (EPOCH + timedelta(int(day))).isoformat()
    return [UsageLine({**line.about, "day": known[line.about["day"]]}, line.totals) for line in lines]

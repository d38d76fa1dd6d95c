"""Sums of what was used, by account, UTC day, model, vendor, key and kind: kept up with every record, and reported."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from sqlalchemy import Connection, text

from penstock.jobs import Job, State
from penstock.usage_records import Completion, Outcome

DAY_SECONDS: Final = 86_400
FAILED: Final = frozenset((Outcome.FAILED, Outcome.CUT))
Kind: TypeAlias = Literal["chat", "job"]


class Slice(NamedTuple):
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


Additions: TypeAlias = Mapping[Slice, Sums]
"""What is to be added to the rows; made by `of_completions`, `of_job` and `refund`."""

# Words that both SQLite and PostgreSQL understand; the rows' order is fixed so that two writers never wait in a ring.
ADD = text(
    f"INSERT INTO usage_days ({', '.join((*Slice._fields, *Sums._fields))}) "  # noqa: S608  names of our own
    f"VALUES ({', '.join(f':{name}' for name in (*Slice._fields, *Sums._fields))}) "
    f"ON CONFLICT ({', '.join(Slice._fields)}) DO UPDATE SET "
    + ", ".join(f"{name} = usage_days.{name} + excluded.{name}" for name in Sums._fields)
)


# -- what records add


def of_completions(records: Sequence[Completion], charged: Mapping[str, int] | None = None) -> Additions:
    """What chat requests add; `charged` tells, by id, the amounts that are less than the records' costs."""
    found: dict[Slice, list[int]] = {}
    for record in records:
        account_id, key_id = record.account_id, record.key_id
        place = Slice(account_id, day_of(record.created_at), record.model, record.vendor, key_id, "chat")
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


def _place(subject: Completion | Job) -> Slice:
    kind: Kind = "job" if isinstance(subject, Job) else "chat"
    day = day_of(subject.created_at)
    return Slice(subject.account_id, day, subject.model, subject.vendor, subject.key_id, kind)


def add(connection: Connection, additions: Additions) -> None:
    """Add to the sums; the caller sees to it that each record is added once."""
    if additions:
        rows = [{**place._asdict(), **sums._asdict()} for place, sums in sorted(additions.items())]
        connection.execute(ADD, rows)

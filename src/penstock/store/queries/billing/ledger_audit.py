"""Audit of the ledger: every balance follows from the entries, and every entry from what happened."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, Text, and_, cast, func, literal, or_, select

from penstock.domain.budgets import Period
from penstock.domain.money import format_usd
from penstock.store.queries.jobs import event_rows
from penstock.store.queries.retention import roll_up_rows
from penstock.store.queries.retention.roll_up_rows import SIGN
from penstock.store.tables import (
    completions,
    holds,
    jobs,
    ledger,
    ledger_checkpoints,
    purses,  # the balances
    usage_days,
)

MAX_REPORTED = 100
"""The number of problems of a kind that are reported."""


def check(connection: Connection) -> list[str]:
    """Return all problems found, one line each. An empty list means that the ledger is right."""
    checks = (_orders, _jobs, _unpaid_jobs, _completions, _balances, _caps, _checkpoints, _usage)
    return [problem for check_one in checks for problem in check_one(connection)]


def count(connection: Connection) -> dict[str, int]:
    """Return what was checked: the entries by kind, the balances and the open holds."""
    rows = connection.execute(select(ledger.c.kind, func.count()).group_by(ledger.c.kind))
    found = {f"{kind} entries": number for kind, number in rows}
    for name, table in (("purses", purses), ("open holds", holds)):
        found[name] = connection.execute(select(func.count()).select_from(table)).scalar() or 0
    carried = sum(sums.entries for sums in roll_up_rows.carried_of(connection).values())
    return found | ({"entries in checkpoints": carried} if carried else {})


def _has(kind: str, subject: Any) -> Any:
    other = ledger.alias()
    return select(other.c.subject).where(other.c.subject == subject, other.c.kind == kind).exists()


def _orders(connection: Connection) -> Iterator[str]:
    """Check that each entry follows the one that it needs."""
    is_job = ledger.c.subject.like("job\\_%", escape="\\")
    lonely = or_(
        and_(ledger.c.kind == "refund", ~_has("settle", ledger.c.subject)),
        and_(ledger.c.kind.in_(("settle", "release")), is_job, ~_has("hold", ledger.c.subject)),
    )
    for row in connection.execute(select(ledger.c.subject, ledger.c.kind).where(lonely).limit(MAX_REPORTED)):
        yield f"{row.subject}: its {row.kind} follows nothing."
    wrong = select(ledger.c.subject, ledger.c.kind).where(or_(ledger.c.amount < 0, ledger.c.overrun < 0))
    for row in connection.execute(wrong.limit(MAX_REPORTED)):
        yield f"{row.subject}: its {row.kind} is less than nothing."


def _jobs(connection: Connection) -> Iterator[str]:
    """Check that a job's hold is open while the job is, and that afterwards both have ended alike."""
    held = select(ledger.c.subject, ledger.c.amount, jobs.c.done, jobs.c.document).join_from(
        ledger, jobs, jobs.c.id == ledger.c.subject, isouter=True
    )
    query = held.where(ledger.c.kind == "hold")
    ended = _ended(connection)
    reported = 0
    for row in connection.execute(query.execution_options(yield_per=1000)):
        kinds = ended.get(row.subject, {})
        problem = _judge_job(row, kinds)
        if problem and reported < MAX_REPORTED:
            reported += 1
            yield f"{row.subject}: {problem}"


def _ended(connection: Connection) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    query = select(ledger.c.subject, ledger.c.kind, ledger.c.amount, ledger.c.overrun).where(
        ledger.c.kind.in_(("settle", "release")), _has("hold", ledger.c.subject)
    )
    for row in connection.execute(query):
        found.setdefault(row.subject, {})[row.kind] = row.amount + row.overrun
    return found


def _judge_job(row: Any, kinds: dict[str, int]) -> str | None:
    if row.document is None:
        return "money is held for a job that does not exist."
    job = event_rows.decode_job(row.document)
    if not row.done:
        return "it is not finished, but its hold is ended." if kinds else None
    if job.charged and kinds.get("settle") != job.final:
        settled = "nothing" if "settle" not in kinds else format_usd(kinds["settle"])
        return f"it costs {format_usd(job.final or 0)}, {settled} is settled."
    if job.charged is False and "release" not in kinds and "settle" not in kinds:
        return "it is finished and costs nothing, but its hold is still open."
    return None


def _unpaid_jobs(connection: Connection) -> Iterator[str]:
    """Check that charged jobs have settle entries."""
    is_postgres = connection.dialect.name == "postgresql"
    text = func.convert_from(jobs.c.document, "UTF8") if is_postgres else cast(jobs.c.document, Text)
    later = and_(ledger_checkpoints.c.account_id == jobs.c.account_id, ledger_checkpoints.c.until > jobs.c.created_at)
    is_removed = select(ledger_checkpoints.c.until).where(later).exists()
    unpaid = (jobs.c.done == 1, text.like('%"charged":true%'), ~_has("settle", jobs.c.id), ~is_removed)
    query = select(jobs.c.id).where(*unpaid)
    for row in connection.execute(query.limit(MAX_REPORTED)):
        yield f"{row.id}: it was charged, but the ledger has no settle."


def _completions(connection: Connection) -> Iterator[str]:
    """Check that every chat request with a cost is settled once, at its cost."""
    settled = and_(ledger.c.subject == completions.c.id, ledger.c.kind == "settle")
    joined = select(completions.c.id, completions.c.cost, ledger.c.amount, ledger.c.overrun).join_from(
        completions, ledger, settled, isouter=True
    )
    wrong = joined.where(
        completions.c.cost > 0, func.coalesce(ledger.c.amount + ledger.c.overrun, -1) != completions.c.cost
    )
    for row in connection.execute(wrong.limit(MAX_REPORTED)):
        yield f"{row.id}: it cost {format_usd(row.cost)}, settled is {row.amount and format_usd(row.amount)}."
    is_chat = ledger.c.subject.like("chat\\_%", escape="\\")
    known = select(literal(1)).where(completions.c.id == ledger.c.subject).exists()
    for row in connection.execute(select(ledger.c.subject).where(is_chat, ~known).limit(MAX_REPORTED)):
        yield f"{row.subject}: it is settled, but there is no record of it."


def _balances(connection: Connection) -> Iterator[str]:
    """Check that each balance equals its entries and holds. Of a past period, some may be in a checkpoint."""
    cut = connection.execute(select(func.max(ledger_checkpoints.c.until))).scalar() or 0.0
    for balance in connection.execute(select(purses)).all():
        within = and_(roll_up_rows.is_of(balance.owner), ledger.c.at >= balance.start, ledger.c.at < balance.ends)
        entries = select(func.coalesce(func.sum(ledger.c.amount * SIGN), 0)).where(within).scalar_subquery()
        is_total = balance.period == Period.TOTAL
        carried = roll_up_rows.select_carried(balance.owner) if is_total else 0
        spent = connection.execute(select(entries + carried)).scalar_one()
        is_whole = is_total or balance.start >= cut
        here = (holds.c.owner == balance.owner, holds.c.period == balance.period, holds.c.start == balance.start)
        held = connection.execute(select(func.sum(holds.c.amount)).where(*here)).scalar() or 0
        name = f"{balance.owner}, {balance.period} from {balance.start:g}"
        if spent > balance.spent or (spent != balance.spent and is_whole):
            yield f"{name}: {format_usd(balance.spent)} is said to be spent, the entries say {format_usd(int(spent))}."
        if held != balance.held:
            yield f"{name}: {format_usd(balance.held)} is said to be held, the holds say {format_usd(int(held))}."


def _caps(connection: Connection) -> Iterator[str]:
    """Check that no balance exceeds the highest cap it ever had. A cap may be lowered below what was spent."""
    for row in connection.execute(select(purses).where(purses.c.spent + purses.c.held > purses.c.most)):
        used, most = format_usd(row.spent + row.held), format_usd(row.most)
        yield f"{row.owner}, {row.period} from {row.start:g}: {used} is spent or held of {most}."


def _checkpoints(connection: Connection) -> Iterator[str]:
    """Check that the sums by lineage equal those of the checkpoints."""
    by_lineage = roll_up_rows.carried_of(connection)
    names = ("entries", "spent", "overrun")
    sums = select(ledger_checkpoints.c.account_id, *(func.sum(ledger_checkpoints.c[name]) for name in names))
    by_cut = {row[0]: row[1:] for row in connection.execute(sums.group_by(ledger_checkpoints.c.account_id))}
    for account in sorted({*by_lineage, *by_cut}):
        carried, summed = by_lineage.get(account, (0, 0, 0)), tuple(map(int, by_cut.get(account, (0, 0, 0))))
        if tuple(carried) != summed:
            yield f"{account}: its checkpoints sum up to {summed}, its lineages to {tuple(carried)}."


def _usage(connection: Connection) -> Iterator[str]:
    """Check that the usage sums equal what the ledger says was spent."""
    spent = select(ledger.c.account_id, func.sum(ledger.c.amount * SIGN)).group_by(ledger.c.account_id)
    used = select(usage_days.c.account_id, func.sum(usage_days.c.cost)).group_by(usage_days.c.account_id)
    by_ledger = {account: carried.spent for account, carried in roll_up_rows.carried_of(connection).items()}
    for account, amount in connection.execute(spent):
        by_ledger[account] = by_ledger.get(account, 0) + int(amount)
    by_usage = {row[0]: int(row[1]) for row in connection.execute(used)}
    for account in sorted({*by_ledger, *by_usage}):
        if by_ledger.get(account, 0) != by_usage.get(account, 0):
            sums = format_usd(by_usage.get(account, 0)), format_usd(by_ledger.get(account, 0))
            yield f"{account}: its usage comes to {sums[0]}, the ledger to {sums[1]}."

"""Changes of claimed jobs: many in one transaction, each fenced by its own claim.

Locks are taken in one order, so that two writers never deadlock: jobs by id, ledger entries, balances, sums, storage.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from sqlalchemy import Connection

from penstock.domain.jobs import Claim, Job, ResultMark
from penstock.store import sql
from penstock.store.queries.files import asset_rows, result_rows, storage_rows
from penstock.store.queries.jobs import change_rows, event_rows, job_rows
from penstock.store.queries.jobs.change_rows import Change

_LOCK: Final = "SELECT id, owner, epoch, document FROM jobs WHERE id IN"
_IN_ORDER: Final = f" ORDER BY id{sql.LOCKING}"


@dataclass(frozen=True, slots=True)
class Amendment:
    """A runner's change of a job that it has claimed."""

    claim: Claim
    change: Callable[[Job], Job]
    now: float
    delivers: bool = False
    """The job ends with its outputs, which are written as assets."""
    mark: ResultMark | None = None
    """The mark of the result, by which it may be reused."""


class _Applied(NamedTuple):
    amendment: Amendment
    before: Job
    after: Job


def amend(connection: Connection, amendment: Amendment) -> Job:
    """Write one change. Raise FenceLost if its claim has ended."""
    claim, change, now = amendment.claim, amendment.change, amendment.now
    if amendment.delivers:
        return asset_rows.deliver(connection, claim, change, now, amendment.mark)
    return job_rows.amend(connection, claim, change, now)


def amend_all(connection: Connection, wanted: Sequence[Amendment]) -> list[Job | None]:
    """Write many changes in one transaction. Return the jobs as they are then.

    Return None for each change that must be written alone: its claim has ended, it fails, its job has another change
    here, or its job belongs to a pipeline, whose other jobs it may change, too.
    """
    if len(wanted) == 1:
        return [amend(connection, wanted[0])]
    found = _lock(connection, [amendment.claim for amendment in wanted])
    applied = [_apply(amendment, found.pop(amendment.claim, None)) for amendment in wanted]
    changed = [each for each in applied if each is not None and each.after is not each.before]
    written = iter(_write(connection, changed))
    return [None if each is None else each.before if each.after is each.before else next(written) for each in applied]


def _lock(connection: Connection, claims: Sequence[Claim]) -> dict[Claim, Job]:
    """Lock the jobs. Return those of claims that still hold."""
    statement, *ids = sql.among(_LOCK, sorted({claim.job_id for claim in claims}))
    rows = {row[0]: row for row in sql.run(connection, f"{statement}{_IN_ORDER}", *ids)}
    held = (claim for claim in claims if rows.get(claim.job_id, ())[1:3] == (claim.owner, claim.epoch))
    return {claim: event_rows.decode_job(rows[claim.job_id][3]) for claim in held}


def _apply(amendment: Amendment, job: Job | None) -> _Applied | None:
    """Return the changed job; None if the change must be written alone."""
    if job is None or job.pipeline_id is not None:
        return None
    try:
        after = amendment.change(job)
    except Exception:  # noqa: BLE001  raised again when it is written alone
        return None
    if after == job:
        return _Applied(amendment, job, job)
    return None if job.done else _Applied(amendment, job, after)


def _write(connection: Connection, changed: Sequence[_Applied]) -> list[Job]:
    if not changed:
        return []
    now = max(each.amendment.now for each in changed)
    written = change_rows.write_all(
        connection, [Change(each.before, each.after, each.amendment.now) for each in changed]
    )
    delivered = [
        (job, each.amendment.mark) for each, job in zip(changed, written, strict=True) if each.amendment.delivers
    ]
    _add_outputs(connection, delivered)
    change_rows.close(connection, [job for job in written if job.done], now)
    _count_bytes(connection, [job for job, _ in delivered])
    return written


def _add_outputs(connection: Connection, delivered: Sequence[tuple[Job, ResultMark | None]]) -> None:
    """Write the outputs of finished jobs, and the marks of their results."""
    assets = [row for job, _ in delivered for row in asset_rows.describe(job)]
    marks = [result_rows.describe(job, mark) for job, mark in delivered if mark is not None]
    statements = [*asset_rows.addition(assets), *result_rows.addition(marks)]
    if statements:
        sql.do_all(connection, *statements)


def _count_bytes(connection: Connection, delivered: Sequence[Job]) -> None:
    """Count the bytes of outputs. This locks accounts, so that it comes last."""
    sizes: Counter[str] = Counter()
    for job in delivered:
        sizes[job.account_id] += sum(asset.bytes for asset in job.outputs)
    for account_id, size in sorted(sizes.items()):
        storage_rows.change(connection, account_id, assets=size)

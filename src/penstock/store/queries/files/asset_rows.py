"""Assets: the stored outputs of jobs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, func, select, update

from penstock.domain.files import StoredAsset
from penstock.domain.jobs import Claim, Job, ResultMark
from penstock.errors import AssetExpired, AssetNotFound
from penstock.store import locks, sql
from penstock.store.queries.files import lineage_rows, result_rows, storage_rows
from penstock.store.queries.jobs import job_rows
from penstock.store.sql import Statement
from penstock.store.tables import assets, jobs


def describe(job: Job) -> list[dict[str, Any]]:
    """Return the rows of a job's outputs."""
    return [
        {
            "id": asset.id,
            "account_id": job.account_id,
            "job_id": job.id,
            "filename": asset.filename,
            "content_type": asset.content_type,
            "bytes": asset.bytes,
            "sha256": asset.sha256,
        }
        for asset in job.outputs
    ]


def addition(rows: Sequence[Mapping[str, Any]]) -> list[Statement]:
    """Return the statements that write these rows, in the transaction that makes their jobs succeed."""
    return [sql.insertion(assets, rows)] if rows else []


def get(connection: Connection, asset_id: str, account_id: str | None, now: float) -> StoredAsset:
    """Return an asset: for its account, or for the holder of a signed link (`account_id` None)."""
    query = select(assets, jobs.c.expires_at).join(jobs, jobs.c.id == assets.c.job_id, isouter=True)
    row = connection.execute(query.where(assets.c.id == asset_id)).one_or_none()
    if row is None or account_id not in (None, row.account_id):
        raise AssetNotFound
    if row.removed is not None or (row.expires_at is not None and row.expires_at <= now):
        raise AssetExpired
    return StoredAsset(row.id, row.account_id, row.job_id, row.filename, row.content_type, row.bytes, row.sha256)


def deliver(
    connection: Connection, claim: Claim, change: Callable[[Job], Job], now: float, mark: ResultMark | None = None
) -> Job:
    """Write a job's success, its assets and the mark of its result in one transaction."""
    job = job_rows.amend(connection, claim, change, now)
    marks = [] if mark is None else [result_rows.describe(job, mark)]
    sql.do_all(connection, *addition(describe(job)), *result_rows.addition(marks))
    storage_rows.change(connection, job.account_id, assets=sum(asset.bytes for asset in job.outputs))
    return job


def hide_of_job(connection: Connection, job_id: str, reason: str) -> None:
    """Hide a job's assets at once. Their rows stay, and until `swept` their bytes are still to be removed."""
    connection.execute(update(assets).where(assets.c.job_id == job_id).values(removed=reason))


def unswept(connection: Connection, limit: int) -> Sequence[str]:
    """Return jobs whose assets are hidden but still on disk, and needed by no open job."""
    query = select(assets.c.job_id).where(assets.c.removed.is_not(None), assets.c.swept == 0).distinct()
    return list(connection.execute(query.where(lineage_rows.unneeded(assets.c.job_id)).limit(limit)).scalars())


def mark_swept(connection: Connection, job_id: str) -> None:
    """Record that the bytes of a job's assets are removed."""
    locks.hold(connection, "sweep", job_id)  # two sweeps of a job count it once
    kept = (assets.c.job_id == job_id) & (assets.c.swept == 0)
    query = select(assets.c.account_id, func.sum(assets.c.bytes)).where(kept).group_by(assets.c.account_id)
    freed = connection.execute(query).all()
    connection.execute(update(assets).where(kept).values(swept=1))
    for account_id, size in freed:
        storage_rows.change(connection, account_id, assets=-int(size))

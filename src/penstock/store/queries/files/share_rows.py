"""Share links. Only the hash of a link's token is stored."""

from dataclasses import asdict, replace
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, func, insert, or_, select, update

from penstock.domain.jobs import Job, State
from penstock.domain.sharing.links import MAX_LIVE_LINKS, REVOKED_RETENTION_SECONDS, ShareLink
from penstock.errors import Gone, JobNotShareable, ShareNotFound, TooManyShares
from penstock.store.locks import hold
from penstock.store.queries.jobs import event_rows, job_rows
from penstock.store.tables import accounts, jobs, shares

_SHOWN = tuple(column for column in shares.c if column.name not in ("token_hash", "revoked_at"))


class SharedJob(NamedTuple):
    """A link that works, and its job."""

    link: ShareLink
    job: Job


def add(connection: Connection, link: ShareLink, token_hash: str) -> ShareLink:
    """Store a new link, which ends no later than its job. Raise if the job or the account cannot have one."""
    hold(connection, "shares", link.account_id)
    job = job_rows.get(connection, link.account_id, link.job_id, lock=True)  # a deletion comes before or after
    if job.is_past(link.created_at):
        raise Gone
    if job.state is not State.SUCCEEDED or not job.outputs:
        raise JobNotShareable
    live = shares.c.revoked_at.is_(None) & (shares.c.expires_at > link.created_at)
    count = select(func.count()).where(shares.c.account_id == link.account_id, live)
    if connection.execute(count).scalar_one() >= MAX_LIVE_LINKS:
        raise TooManyShares(f"The account has {MAX_LIVE_LINKS} share links, as many as it may have at a time.")
    expires_at = link.expires_at if job.expires_at is None else min(link.expires_at, job.expires_at)
    made = replace(link, expires_at=expires_at)
    row = {**asdict(made), "include_input": int(made.include_input), "token_hash": token_hash}
    connection.execute(insert(shares), row)
    return made


def page(
    connection: Connection, account_id: str, job_id: str | None, now: float, before: str | None, limit: int
) -> list[ShareLink]:
    """Return the account's links that work, newest first: all of them, or those of one job."""
    query = select(*_SHOWN).join(jobs, jobs.c.id == shares.c.job_id)
    query = query.where(shares.c.account_id == account_id, *_works(now))
    if job_id is not None:
        query = query.where(shares.c.job_id == job_id)
    if before is not None:
        query = query.where(shares.c.id < before)
    return [_link(row) for row in connection.execute(query.order_by(shares.c.id.desc()).limit(limit))]


def revoke(connection: Connection, account_id: str, share_id: str, now: float) -> None:
    """End a link now. Revoking it again changes nothing; another account's link is not found."""
    mine = (shares.c.id == share_id) & (shares.c.account_id == account_id)
    row = connection.execute(select(shares.c.revoked_at, shares.c.expires_at).where(mine).with_for_update()).first()
    if row is None:
        raise ShareNotFound
    if row.revoked_at is None:
        kept_until = min(row.expires_at, now + REVOKED_RETENTION_SECONDS)
        connection.execute(update(shares).where(mine).values(revoked_at=now, expires_at=kept_until))


def open_link(connection: Connection, token_hash: str, now: float) -> SharedJob:
    """Return the link with this token and its job. Raise if either has ended, or the account is closed."""
    query = select(*_SHOWN, jobs.c.document).join(jobs, jobs.c.id == shares.c.job_id)
    query = query.join(accounts, accounts.c.id == shares.c.account_id)
    query = query.where(shares.c.token_hash == token_hash, accounts.c.closed_at.is_(None), *_works(now))
    row = connection.execute(query).one_or_none()
    if row is None:
        raise ShareNotFound
    return SharedJob(_link(row), event_rows.decode_job(row.document))


def remove_of_job(connection: Connection, job_id: str) -> None:
    """Remove the links of a job together with it."""
    connection.execute(delete(shares).where(shares.c.job_id == job_id))


def remove_expired(connection: Connection, now: float, limit: int) -> int:
    """Remove links that have expired, at most `limit` of them. Return their number."""
    old = select(shares.c.id).where(shares.c.expires_at <= now).order_by(shares.c.expires_at).limit(limit)
    return connection.execute(delete(shares).where(shares.c.id.in_(old))).rowcount


def _works(now: float) -> tuple[Any, ...]:
    """Return the conditions of a link that works. They read the job, which older code deletes without its links."""
    is_kept = or_(jobs.c.expires_at.is_(None), jobs.c.expires_at > now)
    return shares.c.revoked_at.is_(None), shares.c.expires_at > now, jobs.c.removed.is_(None), is_kept


def _link(row: Any) -> ShareLink:
    return ShareLink(
        id=row.id,
        account_id=row.account_id,
        job_id=row.job_id,
        include_input=bool(row.include_input),
        created_at=row.created_at,
        expires_at=row.expires_at,
    )

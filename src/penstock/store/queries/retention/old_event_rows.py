"""Removal of old events, except those that watchers, deliveries and the search index still need."""

from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, delete, or_, select

from penstock.domain.events import BUDGET_EVENT
from penstock.store import sql
from penstock.store.tables import deliveries, events, jobs, pipelines

_INDEXED: Final = "SELECT coalesce(min(position), 0) FROM search_progress"


class Portion(NamedTuple):
    """A part of the event log that was gone through."""

    position: int
    """The last position seen; the next portion begins after it."""
    removed: int
    is_last: bool


def remove(connection: Connection, cut: float, after: int, limit: int) -> Portion:
    """Remove events of before the cut among the next `limit` after a position.

    The last event of a job or pipeline stays with it, so that watchers still learn how it ended.
    """
    indexed = sql.run(connection, _INDEXED)[0][0]
    query = select(events.c.position, events.c.created_at).where(
        events.c.position > after, events.c.position <= indexed
    )
    rows = connection.execute(query.order_by(events.c.position).limit(limit)).all()
    seen = [row.position for row in rows if row.created_at < cut]
    if not seen:
        return Portion(after, 0, is_last=True)
    removed = connection.execute(delete(events).where(events.c.position.in_(_find_free(seen)))).rowcount
    return Portion(seen[-1], removed, is_last=len(seen) < limit)


def _find_free(positions: list[int]) -> Any:
    """Select those of these events that nothing needs."""
    here, later = events.alias("here"), events.alias("later")
    of_subject = select(later.c.position).where(later.c.job_id == here.c.job_id, later.c.sequence > here.c.sequence)
    of_account = select(later.c.position).where(
        later.c.account_id == here.c.account_id, later.c.position > here.c.position
    )
    unfinished = [
        select(table.c.id).where(table.c.id == here.c.job_id, table.c.done == 0).exists() for table in (jobs, pipelines)
    ]
    sending = (deliveries.c.subject == here.c.job_id, deliveries.c.sequence == here.c.sequence)
    is_due = select(deliveries.c.position).where(*sending, deliveries.c.status == "pending").exists()
    return select(here.c.position).where(
        here.c.position.in_(positions),
        or_(here.c.type == BUDGET_EVENT, of_subject.exists()),
        of_account.exists(),  # cursors are compared with an account's last position
        ~or_(*unfinished, is_due),
    )

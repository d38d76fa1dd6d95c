"""Listens for writes of other processes to PostgreSQL, and polls the event log for what it missed."""

import asyncio
import logging
from typing import Any, Final, TypeAlias

import psycopg
from sqlalchemy import URL

from penstock.domain.events import EventType
from penstock.domain.jobs import State
from penstock.store.postgres.connection_watchdog import shut_down
from penstock.store.postgres.notifier import CHANNEL
from penstock.store.signals import QUEUE, Signals, nudge

CATCH_UP_SECONDS: Final = 1.0
RECONNECT_SECONDS: Final = 0.5
STUCK_SECONDS: Final = 5.0
"""Seconds after which an unanswered connection is given up: it may be dead without being closed."""
BATCH: Final = 5_000
OVERLAP: Final = 2_000
"""The number of positions that are read again: an earlier transaction may have committed later."""
KEEPALIVE: Final[dict[str, Any]] = {
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 8000,
}
LISTEN: Final = f"LISTEN {CHANNEL}"
TOP: Final = "SELECT coalesce(max(position), 0) FROM events"
NEWS: Final = (
    "SELECT events.position, events.job_id, events.account_id, events.type, jobs.state "
    "FROM events LEFT JOIN jobs ON jobs.id = events.job_id "
    "WHERE events.position > %s AND events.position <= %s ORDER BY events.position"
)
_EventRow: TypeAlias = tuple[int, str, str, str, str | None]
"""Position, job, account, event type, and the job's current state."""

log = logging.getLogger(__name__)


class Listener:
    """One connection that only listens. It reconnects when lost, and catches up from the event log."""

    def __init__(self, url: URL, signals: Signals, own: str) -> None:
        self._address = url.set(drivername="postgresql").render_as_string(hide_password=False)
        self._signals = signals
        self._own = own
        self._seen: int | None = None
        self._recent: set[int] = set()
        self._task: asyncio.Task[None] | None = None
        self._is_over = False

    async def start(self) -> None:
        """Start listening. Return once it listens, or once the server is known to be away."""
        listening = asyncio.Event()
        self._task = asyncio.create_task(self._listen_forever(listening), name="listener")
        await listening.wait()

    async def stop(self) -> None:
        """Stop listening. A server that hangs during cancellation ends the task with an error."""
        self._is_over = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _listen_forever(self, listening: asyncio.Event) -> None:
        is_logged = False
        while not self._is_over:
            try:
                await self._listen(listening)
            except (psycopg.Error, OSError) as error:
                if not is_logged:
                    log.warning("listening to the store failed; it is retried", extra={"fields": {"why": str(error)}})
                is_logged = True
            else:
                is_logged = False
            listening.set()
            await asyncio.sleep(RECONNECT_SECONDS)

    async def _listen(self, listening: asyncio.Event) -> None:
        connection = await psycopg.AsyncConnection.connect(
            self._address, autocommit=True, connect_timeout=3, application_name="penstock listener", **KEEPALIVE
        )
        async with connection:
            await _ask(connection, LISTEN)
            await self._catch_up(connection, after_outage=True)
            listening.set()
            while True:
                async for heard in connection.notifies(timeout=CATCH_UP_SECONDS, stop_after=100):
                    sender, *topics = heard.payload.split(" ")
                    if sender != self._own:
                        self._signals.ring(topics)
                await self._catch_up(connection)

    async def _catch_up(self, connection: psycopg.AsyncConnection[Any], *, after_outage: bool = False) -> None:
        """Signal what was written since the last poll, except what was signaled already."""
        top = int((await _ask(connection, TOP))[0][0])
        if self._seen is None:
            self._seen = top
        begin = max(0, self._seen - OVERLAP)
        while begin < top:
            end = min(top, begin + BATCH)
            rows = await _ask(connection, NEWS, begin, end)
            self._ring([row for row in rows if row[0] not in self._recent], after_outage=after_outage)
            self._recent.update(row[0] for row in rows)
            begin = end
        self._seen = top
        self._recent = {position for position in self._recent if position > top - OVERLAP}

    def _ring(self, rows: list[_EventRow], *, after_outage: bool) -> None:
        """Signal topics. A job's runner is nudged only where it may have missed something."""
        topics = {topic for row in rows for topic in row[1:3]}
        topics |= {nudge(row[1]) for row in rows if after_outage or row[4] == State.CANCELING}
        if any(row[3] == EventType.QUEUED for row in rows):
            topics.add(QUEUE)
        self._signals.ring(topics)


async def _ask(connection: psycopg.AsyncConnection[Any], statement: str, *values: int) -> list[Any]:
    """Run a query and return its rows. Close a connection that does not answer."""
    stuck = asyncio.get_running_loop().call_later(STUCK_SECONDS, shut_down, connection.fileno())
    try:
        cursor = await connection.execute(statement.encode(), values)
        return await cursor.fetchall() if cursor.description else []
    finally:
        stuck.cancel()

"""Hears what other processes have written to PostgreSQL, and finds it by itself where nobody could tell."""

import asyncio
import logging
from typing import Any, Final, TypeAlias

import psycopg
from sqlalchemy import URL

from penstock.domain.events import EventType
from penstock.domain.jobs import State
from penstock.store.postgres.connection_watchdog import hang_up
from penstock.store.postgres.notifier import CHANNEL
from penstock.store.signals import QUEUE, Signals, nudge

CATCH_UP_SECONDS: Final = 1.0
RECONNECT_SECONDS: Final = 0.5
STUCK_SECONDS: Final = 5.0
"""How long an answer is waited for: a connection may be dead that nobody has closed."""
BATCH: Final = 5_000
OVERLAP: Final = 2_000
"""So many positions are looked at again: a transaction that began earlier may have ended later."""
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
_News: TypeAlias = tuple[int, str, str, str, str | None]
"""Where it stands, its job, whose that is, what it is, and the job's state by now."""

log = logging.getLogger(__name__)


class Listener:
    """One connection that only listens. Lost, it is made anew; what was said meanwhile is read from the event log."""

    def __init__(self, url: URL, signals: Signals, own: str) -> None:
        self._address = url.set(drivername="postgresql").render_as_string(hide_password=False)
        self._signals = signals
        self._own = own
        self._seen: int | None = None
        self._recent: set[int] = set()
        self._task: asyncio.Task[None] | None = None
        self._is_over = False

    async def start(self) -> None:
        """Returns once it listens, or once it is clear that the server is away."""
        listening = asyncio.Event()
        self._task = asyncio.create_task(self._listen_forever(listening), name="listener")
        await listening.wait()

    async def stop(self) -> None:
        """Hang up. A server that hangs while the driver tells it to stop ends as an error, not as cancelled."""
        self._is_over = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _listen_forever(self, listening: asyncio.Event) -> None:
        is_told = False
        while not self._is_over:
            try:
                await self._listen(listening)
            except (psycopg.Error, OSError) as error:
                if not is_told:
                    log.warning("the store cannot be listened to; tried again", extra={"fields": {"why": str(error)}})
                is_told = True
            else:
                is_told = False
            listening.set()
            await asyncio.sleep(RECONNECT_SECONDS)

    async def _listen(self, listening: asyncio.Event) -> None:
        connection = await psycopg.AsyncConnection.connect(
            self._address, autocommit=True, connect_timeout=3, application_name="penstock listener", **KEEPALIVE
        )
        async with connection:
            await _ask(connection, LISTEN)
            await self._catch_up(connection, after_silence=True)
            listening.set()
            while True:
                async for heard in connection.notifies(timeout=CATCH_UP_SECONDS, stop_after=100):
                    sender, *topics = heard.payload.split(" ")
                    if sender != self._own:
                        self._signals.ring(topics)
                await self._catch_up(connection)

    async def _catch_up(self, connection: psycopg.AsyncConnection[Any], *, after_silence: bool = False) -> None:
        """Ring for what was written since the last look; what was rung for already is known again."""
        top = int((await _ask(connection, TOP))[0][0])
        if self._seen is None:
            self._seen = top
        begin = max(0, self._seen - OVERLAP)
        while begin < top:
            end = min(top, begin + BATCH)
            rows = await _ask(connection, NEWS, begin, end)
            self._ring([row for row in rows if row[0] not in self._recent], after_silence=after_silence)
            self._recent.update(row[0] for row in rows)
            begin = end
        self._seen = top
        self._recent = {position for position in self._recent if position > top - OVERLAP}

    def _ring(self, rows: list[_News], *, after_silence: bool) -> None:
        """Who runs a job is nudged where that may have been missed: its own progress is no news to it."""
        topics = {topic for row in rows for topic in row[1:3]}
        topics |= {nudge(row[1]) for row in rows if after_silence or row[4] == State.CANCELING}
        if any(row[3] == EventType.QUEUED for row in rows):
            topics.add(QUEUE)
        self._signals.ring(topics)


async def _ask(connection: psycopg.AsyncConnection[Any], said: str, *values: int) -> list[Any]:
    """What is found; a connection that says nothing for long is given up."""
    stuck = asyncio.get_running_loop().call_later(STUCK_SECONDS, hang_up, connection.fileno())
    try:
        cursor = await connection.execute(said.encode(), values)
        return await cursor.fetchall() if cursor.description else []
    finally:
        stuck.cancel()

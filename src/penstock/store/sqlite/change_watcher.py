"""Detects writes of other processes to a SQLite store, so that listeners in this one are woken too."""

import asyncio
import math
import sqlite3
import time
from collections import deque
from typing import Final

from penstock.domain.events import EventType
from penstock.store.signals import DELIVERIES, QUEUE, Signals, nudge

RECENT_SECONDS: Final = 30.0
BATCH_ROWS: Final = 1_000
"""The number of rows read at once: own writes come in between."""
TOPS: Final = "SELECT name, seq FROM sqlite_sequence WHERE name IN ('events', 'nudges')"
EVENTS: Final = (
    "SELECT position, job_id, account_id, type FROM events"
    " WHERE position > ? AND position <= ? ORDER BY position LIMIT ?"
)
NUDGES: Final = "SELECT position, job_id FROM nudges WHERE position > ? AND position <= ? ORDER BY position LIMIT ?"


class Watcher:
    """Runs in the writer's thread. Row ids grow in the order of commits: rows that are not ours are others'."""

    def __init__(self, signals: Signals) -> None:
        self._signals = signals
        self._loop = asyncio.get_running_loop()
        self._tops: dict[str, int] | None = None
        self._unread: deque[tuple[str, int, int]] = deque()
        self._heard_at = -math.inf

    @property
    def is_behind(self) -> bool:
        """Return whether writes of others are still unread."""
        return bool(self._unread)

    @property
    def has_recent(self) -> bool:
        """Return whether others have written lately."""
        return time.monotonic() - self._heard_at < RECENT_SECONDS

    def look(self, driver: sqlite3.Connection) -> None:
        """Note which rows others have added. Call it while no write of our own is open."""
        tops = self.count(driver)
        if self._tops is not None:
            for log, top in tops.items():
                known = self._tops.get(log, 0)
                if top > known:
                    self._unread.append((log, known, top))
                    self._heard_at = time.monotonic()
        self._tops = tops

    def count(self, driver: sqlite3.Connection) -> dict[str, int]:
        """Return the latest position of each log, as this connection sees them."""
        return dict(driver.execute(TOPS).fetchall())

    def pass_over(self, tops: dict[str, int]) -> None:
        """Record the positions after our own commit: our own rows need no signal."""
        self._tops = tops

    def signal(self, driver: sqlite3.Connection) -> None:
        """Read some of the rows that others have added, and signal them."""
        log, after, until = self._unread[0]
        rows = driver.execute(EVENTS if log == "events" else NUDGES, (after, until, BATCH_ROWS)).fetchall()
        if len(rows) == BATCH_ROWS:
            self._unread[0] = (log, rows[-1][0], until)
        else:
            self._unread.popleft()
        topics = {nudge(row[1]) for row in rows}
        if log == "events":
            topics.update(topic for row in rows for topic in row[1:3])
            topics.add(DELIVERIES)
            if any(row[3] == EventType.QUEUED for row in rows):
                topics.add(QUEUE)
        if topics and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._signals.ring, topics)

"""A queue of writers in several processes: one that has just written does not overtake one that waits."""

import fcntl
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

MAX_QUEUE_SECONDS: Final = 1.0
"""The longest wait for the queue's lock: its holder may be frozen."""
QUEUE_POLL_SECONDS: Final = 0.001
"""The polling interval for the queue's lock."""
WRITE_POLL_SECONDS: Final = 0.0005
"""The polling interval of the next writer. SQLite itself soon polls only ten times a second."""


class WriterQueue:
    """A file lock that is held while waiting to write, and not while writing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def begin(self, driver: sqlite3.Connection, timeout: float) -> None:
        """Begin a write transaction in turn. Raise SQLite's error when the timeout is over."""
        if self._file is None:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        file, now = self._file, time.monotonic()
        _poll_until(now + min(MAX_QUEUE_SECONDS, timeout), QUEUE_POLL_SECONDS, lambda: _take(file))
        try:
            if not _poll_until(now + timeout, WRITE_POLL_SECONDS, lambda: _begin(driver)):
                driver.execute("BEGIN IMMEDIATE")
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the lock file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _poll_until(deadline: float, interval: float, is_done: Callable[[], bool]) -> bool:
    while not is_done():
        if time.monotonic() > deadline:
            return False
        time.sleep(interval)
    return True


def _take(file: int) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _begin(driver: sqlite3.Connection) -> bool:
    try:
        driver.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise
        return False
    return True

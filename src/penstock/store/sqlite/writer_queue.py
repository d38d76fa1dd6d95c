"""Where the writers of several processes stand in line: who has just written does not overtake one who waits."""

import fcntl
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

COURTESY_SECONDS: Final = 1.0
"""How long to stand in line for the turnstile: whoever holds it may be frozen."""
QUEUE_SECONDS: Final = 0.001
"""How often those further back look whether it is their turn to be next."""
NEXT_SECONDS: Final = 0.0005
"""How often the next one looks; SQLite itself soon looks only ten times a second, and lets others pass meanwhile."""


class WriterQueue:
    """A lock that is held from the wish to write until the store lets one write, and not while writing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def begin(self, driver: sqlite3.Connection, patience: float) -> None:
        """Begin a write transaction, in turn; raises what SQLite says when the patience is at its end."""
        if self._file is None:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        file, now = self._file, time.monotonic()
        _look_until(now + min(COURTESY_SECONDS, patience), QUEUE_SECONDS, lambda: _take(file))
        try:
            if not _look_until(now + patience, NEXT_SECONDS, lambda: _begin(driver)):
                driver.execute("BEGIN IMMEDIATE")
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _look_until(deadline: float, interval: float, is_done: Callable[[], bool]) -> bool:
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

"""Connections that wait for an answer, and since when: a server that hangs would keep them for ever."""

import os
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, Final

from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import ConnectionPoolEntry

MADE_AT: Final = "made at"


class ConnectionWatchdog:
    """Every connection that a thread uses now; one that takes too long is cut, which frees its thread.

    Those that nobody uses then may be dead as well, and are not trusted any more.
    """

    def __init__(self, *engines: Engine) -> None:
        self._used: dict[int, tuple[float, int]] = {}
        self._cut_at = 0.0
        for engine in engines:
            event.listen(engine, "connect", _note_time)
            event.listen(engine, "checkout", self._check)

    @contextmanager
    def connect(self, engine: Engine) -> Generator[Connection]:
        """A connection for the block; it is in use until it is given back, for which the server is asked, too."""
        connection = engine.connect()
        self._used[id(connection)] = time.monotonic(), connection.connection.driver_connection.fileno()  # type: ignore[union-attr]
        try:
            with connection:
                yield connection
        finally:
            del self._used[id(connection)]

    def cut(self, seconds: float) -> None:
        """Hang up on a server that has not answered for so long, from whichever thread."""
        self._cut_at = now = time.monotonic()
        for since, file in list(self._used.values()):
            if now - since >= seconds:
                hang_up(file)

    def _check(self, _connection: Any, entry: ConnectionPoolEntry, _user: Any) -> None:
        if entry.info[MADE_AT] <= self._cut_at:
            raise DisconnectionError  # by which the pool makes another


def _note_time(_connection: Any, entry: ConnectionPoolEntry) -> None:
    entry.info[MADE_AT] = time.monotonic()


def hang_up(file: int) -> None:
    """End a connection under whoever waits for it: closing it could be felt by no one."""
    with suppress(OSError), socket.socket(fileno=os.dup(file)) as line:
        line.shutdown(socket.SHUT_RDWR)
